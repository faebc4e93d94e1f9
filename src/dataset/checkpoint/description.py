"""Human-readable description of saved states, from the last operator to the source.

This module does not depend on operators: it reads the fields of a Position (runtime/position.py) in plain form.
Own entries without words here are shown as they are. A state may be untrusted, so nothing in it is assumed to be valid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import numpy as np

from dataset.amounts import TEXT_MAX
from dataset.checkpoint import container
from dataset.checkpoint.state_files import load
from dataset.errors import StateError
from dataset.plan.drawing.brief import brief_bytes
from dataset.plan.drawing.summary import ALIGNED_MAX, printable, shortened, table
from dataset.plan.fingerprints.plan_diff import chain, is_outline
from dataset.plan.plain import digest, nbytes_of_plain, unwrapped
from dataset.runtime.state.envelope import STATE_VERSION
from dataset.world import time

_PATH_MAX = 250
_LINES_MAX = 200
_DEPTH_MAX = 400


def describe(state: dict[str, Any] | str | os.PathLike[str]) -> str:
    """Describe a saved state in words: its pipeline, its position, and what each operator holds.

    Args:
        state: the result of ``state_dict()`` or ``to_json()``, or the path of a file that ``save`` wrote.

    Returns:
        Lines of text, with the last operator first and its inputs below it.

    Raises:
        StateError: it is not a state, or the file is damaged. A state of another version is described as far as
            possible.
        OSError: the file cannot be read.

    >>> from dataset import Dataset, checkpoint
    >>> iterator = iter(Dataset.range(100).take(90).batch(8))
    >>> _ = next(iterator), next(iterator)
    >>> print(checkpoint.describe(iterator.state_dict()).splitlines()[1])
    after 2 elements
    """
    lines = []
    if isinstance(state, str | os.PathLike):
        saved = load(state)
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(max(0.0, min(saved.saved, 2.0**37))))
        lines.append(
            f"{printable(os.fspath(state))}: saved {when} by version {printable(saved.library)}, "
            f"{brief_bytes(saved.nbytes)}"
        )
        state = saved.state
    state = unwrapped(state)
    if type(state) is not dict or not state:
        raise StateError(f"expected a state (a dict) or the path of a file with a state, got {state!r:.100}")
    try:
        return "\n".join([*lines, *_described(state)])
    except RecursionError:
        raise StateError("the state is nested too deeply to be the state of an iterator") from None


def _described(state: dict[Any, Any]) -> Iterator[str]:
    found = list(_envelopes(state, ""))
    if not found:
        yield f"it contains no state of an iterator over a Dataset, {_size(state)}"
        yield from (f"  {line}" for line in _tree(state))
    for place, envelope in found:
        if place:
            yield f"{place}:"
        yield from _one(envelope)
        if place and len(found) == 1 and (around := _facts(state)):
            yield f"outside it: {', '.join(around)}"


def _envelopes(data: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the states of iterators in nested data, each with its path."""
    if type(data) is dict and {"fingerprint", "operator"} <= data.keys():
        yield place, data
    elif type(data) is dict:
        for key, value in data.items():
            yield from _envelopes(value, f"{place}{'.' if place else ''}{_short(key)}")
    elif type(data) in {list, tuple}:
        for number, value in enumerate(data):
            yield from _envelopes(value, place if len(data) == 1 else f"{place}[{number}]")


def _one(state: dict[str, Any]) -> Iterator[str]:
    plan, elements, place = state.get("plan"), state.get("elements"), state["operator"]
    of = printable(chain(plan)) if is_outline(plan) else "an unnamed pipeline"
    yield f"state of {of}"
    after = f"after {_count(elements, 'element')}" if type(elements) is int else "after an unknown number of elements"
    yield f"{after}, at the end" if place is None else after
    about = [f"version {_short(state.get('version'))}", f"of library {_short(state.get('library'))}", _size(state)]
    if not _is_whole(state):
        about.append("DAMAGED: its digest does not match its content")
    yield ", ".join(about)
    if place is not None:
        yield ""
        yield from (f"  {line}" for line in _tree(place))


def _is_whole(state: dict[str, Any]) -> bool:
    found = state.get("digest")
    if type(state.get("version")) is not int or type(found) is not str:
        return False
    rest = {key: value for key, value in state.items() if key != "digest"}
    return state["version"] != STATE_VERSION or found == digest(rest)


def _size(state: Any) -> str:
    return brief_bytes(sum(map(len, container.pack(state))))


def _tree(place: Any) -> list[str]:
    rows = list(_rows(place, "", "", "", 0))
    left_out = len(rows) - _LINES_MAX
    lines = table([(row[0], row[1]) for row in rows[:_LINES_MAX]], aligned_max=ALIGNED_MAX)
    return [*lines, f"... and {left_out:,} more lines"] if left_out > 0 else lines


def _rows(place: Any, label: str, first: str, rest: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield a line for each operator: the tree branches and its name, and its facts."""
    if type(place) is not dict or depth > _DEPTH_MAX:
        yield f"{first}{label}", _value(place)
        return
    inputs = place.get("inputs")
    children = [child for child in inputs if child is not None] if type(inputs) is list else []
    title = " ".join(filter(None, [label, _short(place["op"]) if "op" in place else ""]))
    yield f"{first}{title or '(operator)'}", ", ".join(_facts(place))
    if len(children) == 1:
        yield from _rows(children[0], "", rest, rest, depth + 1)
        return
    for number, child in enumerate(children, start=1):
        last = number == len(children)
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _rows(child, f"input {number}:", rest + branch, rest + below, depth + 1)


def _facts(place: dict[str, Any]) -> list[str]:
    """Return the fields of a position in words, except for its inputs."""
    own = place.get("own")
    facts = {"at": place.get("at", 0), **(own if type(own) is dict else {})} if "op" in place else dict(place)
    found = []
    if type(facts.get("epoch")) is int and type(facts.get("iteration")) is int:
        found.append(f"order of iteration {facts['iteration'] + 1}, epoch {facts['epoch'] + 1}")
    found += [words for key, value in facts.items() if key not in _SILENT and (words := _fact(key, value))]
    given = place.get("given")
    if type(given) is list and given:
        skipped = sum(sum(run[1:]) for run in given if type(run) is list and all(type(part) is int for part in run))
        found.append(f"{_count(skipped, 'element')} to skip after the position below")
    held = place.get("held")
    if type(held) is dict:
        found += [f"{_HELD.get(key, _short(key))} {_held(value) or _value(value)}" for key, value in held.items()]
    return found


def _fact(key: str, value: Any) -> str:
    """Return a key and its value in words; an empty text if there is nothing to say."""
    if value is None or value is False or (type(value) in {list, dict, bytes} and not value):
        return ""
    name = _short(key).lstrip("_")
    if type(value) is np.ndarray and not value.ndim and not value.dtype.hasobject:
        value = value[()].item() if value.dtype.kind in "biuf" else value
    elif type(value) is np.ndarray and not value.size:
        return ""
    if type(value) is int and name in _NUMBERS:
        return _NUMBERS[name](value)
    if value is True:
        return _TRUE.get(name, name)
    if type(value) is dict and {"path", "offset"} <= value.keys():
        number = f", record {value['number']:,}" if type(value.get("number")) is int else ""
        at = f"{value['offset']:,}" if type(value["offset"]) is int else _short(value["offset"])
        path = shortened(printable(repr(value["path"])[: 4 * _PATH_MAX]), _PATH_MAX)
        return f"in {path} at byte {at}{number}"
    if type(value) is dict and {"key", "iteration", "epoch", "drawn"} <= value.keys():
        return ", ".join(_facts(value))
    return f"{name}: {_held(value) or _value(value)}"


def _is_chunk(value: Any) -> TypeGuard[dict[str, Any]]:
    return type(value) is dict and {"length", "structure", "columns"} <= value.keys()


def _is_error(value: Any) -> bool:
    return type(value) is dict and {"error", "message"} <= value.keys()


def _held(value: Any) -> str:
    """Return the number and size of elements by value; an empty text if it is something else."""
    if type(value) is dict and {"parts", "files"} <= value.keys():  # see ops/shuffle/buffer_checkpoint.py
        way = "value" if value["files"] is None else "reference to files"
        return f"elements by {way} ({brief_bytes(nbytes_of_plain(value))})"
    items = value if type(value) is list else [value]
    if not all(_is_chunk(item) or _is_error(item) for item in items):
        return ""
    lengths = [item["length"] for item in items if _is_chunk(item)]
    elements = sum(length for length in lengths if type(length) is int)
    errors = sum(map(_is_error, items))
    parts = [_count(elements, "element")] if lengths else []
    parts += [_count(errors, "exception")] if errors else []
    return f"{' and '.join(parts)} by value ({brief_bytes(nbytes_of_plain(value))})"


def _value(value: Any) -> str:
    if type(value) is np.ndarray:
        return f"{_count(value.size, 'number')} of {value.dtype} ({brief_bytes(value.nbytes)})"
    if type(value) is int:
        return f"{value:,}" if abs(value) < 2**64 else "a long number"
    if type(value) in {list, tuple, dict} and nbytes_of_plain(value) > TEXT_MAX:
        return f"{_count(len(value), 'entry', 'entries')} ({brief_bytes(nbytes_of_plain(value))})"
    return _short(repr(value))


def _short(value: Any) -> str:
    return shortened(printable(str(value)[: 4 * TEXT_MAX]), TEXT_MAX) if not isinstance(value, int) else str(value)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


_SILENT = frozenset(
    [
        "key",
        "iteration",
        "epoch",
        "turn",
        "left",
        "batch_size",
        "since",
        "base",
        "pass_is_empty",
        "hole",
        "gone",
        "order",
    ]
)

_NUMBERS: dict[str, Callable[[int], str]] = {
    "at": lambda n: f"at element {n:,}" if n else "",
    "elements": lambda n: f"elements: {n:,}" if n >= 0 else "",  # else unknown or infinite
    "next": lambda n: f"next is number {n:,}",
    "remaining": lambda n: f"{n:,} remaining" if n else "",
    "finished": lambda n: f"{_count(n, 'epoch')} finished" if n else "in the first epoch",
    "dropped": lambda n: f"{n:,} dropped" if n else "",
    "drawn": lambda n: f"{_count(n, 'random number')} drawn",
    "opened": lambda n: f"{_count(n, 'dataset')} opened",
    "record": lambda n: f"record {n:,}",
    "offset": lambda n: f"at byte {n:,}",
    "current": lambda n: f"in input {n + 1}",
    "gap": lambda n: f"{_count(n, 'element')} to skip before the next window" if n else "",
    "kept": lambda n: f"{n:,} kept",
    "raised": lambda n: f"{_count(n, 'exception')} raised" if n else "",
    "before": lambda n: f"{n:,} before this record" if n else "",
    "failures": lambda n: f"{n:,} failed" if n else "",
    "part": lambda n: f"reads the shard of process {n}",
}

_TRUE = {"ended": "its input has ended", "source_ended": "its input has ended"}

_HELD = {
    "held": "holds",
    "items": "holds",
    "elements": "holds",
    "element": "holds",
    "groups": "holds",
    "waiting": "holds for the next",
    "outbox": "computed, not produced:",
    "todo": "read, not processed:",
    "ahead": "read ahead:",
    "argument": "for",
}

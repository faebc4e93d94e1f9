"""Membership index: whether the pipeline's own input contains an element that a saved state names.

A saved state may come from an untrusted source, so a file is never opened because a state names it. If a position in
the input is sufficient, the input itself provides the element (``ReplayLog``). Otherwise the state holds names: of the
files that a shuffle's elements are read from, and of whatever an unrepeatable input has read ahead. These are looked up
here among the elements of the input, which is run once more at the first look-up, and only as far as needed.

Names are compared without the secrets in them (redaction.py), and after applying the user's ``moved``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np

from dataset.errors import StateError
from dataset.plan.epochs import openings
from dataset.plan.node import Node, inputs_first
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.context import ExecutionContext, Moved, open_beside, unmoved
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import digest, save_value

REMEDY = (
    "build the pipeline over the same files in the same order; if they were renamed, use "
    "load_state_dict(state, moved={old prefix: new prefix})"
)
"""What to do about a state that names other files."""

_ELEMENTS_MAX = 1 << 22  # elements searched before a name is considered missing
_VARYING_MAX = 1 << 16  # the same if there are repetitions whose elements vary, perhaps without end


def mapping_of(moved: Moved | Mapping[str, str] | None) -> Moved:
    """Return the user's ``moved`` as a function.

    Raises:
        TypeError: if it is neither a function nor a mapping from str to str.
    """
    if moved is None:
        return unmoved
    if isinstance(moved, Mapping):
        pairs = [(old, new) for old, new in moved.items()]
        if not all(isinstance(part, str) for pair in pairs for part in pair):
            raise TypeError(f"load_state_dict(): moved must map strings to strings, got {moved!r:.200}")
        pairs.sort(key=lambda pair: len(pair[0]), reverse=True)
        return lambda name: next((new + name[len(old) :] for old, new in pairs if name.startswith(old)), name)
    if callable(moved):
        return moved
    raise TypeError(
        "load_state_dict(): moved must be a dict from old file name prefixes to new ones, or a function of a name, "
        f"got {moved!r:.200} of type {type(moved).__name__}"
    )


def name_of(path: str, context: ExecutionContext) -> str:
    """Return the current name for a name in a saved state.

    Raises:
        StateError: if it is not a string.
    """
    if type(path) is not str:
        raise StateError(f"the state is damaged: a file name must be a string, got {path!r:.100}")
    moved = context.iteration.moved(path)
    if not isinstance(moved, str):
        raise TypeError(f"load_state_dict(): moved must return a string, got {moved!r:.100} for {path!r:.100}")
    return redacted(moved)


class OwnElements:
    """The elements of an input by key.

    Args:
        context: the context of the operator that reads from the input.
        plan: the input.
        key: returns the key of an element, given as a chunk of one; None for elements that are never looked up.
    """

    def __init__(self, context: ExecutionContext, plan: Node, key: Callable[[Chunk], Any]) -> None:
        self._context = context
        self._plan = plan
        self._key = key
        self._found: dict[Any, Chunk] = {}
        self._rest: Generator[Chunk] | None = None

    def get(self, key: Any) -> Chunk | None:
        """Return the first element with this key, or None."""
        if key not in self._found:
            next((True for own, _ in self._new() if own == key), None)
        return self._found.get(key)

    def assembled(self, argument: Chunk, key: Callable[[list[Any]], str]) -> Chunk | None:
        """Return a batch like ``argument`` from rows of the elements.

        Args:
            argument: an element.
            key: returns the key of a row for what ``names_in`` would return for it.

        Returns:
            A chunk of one; None if ``argument`` is not a batch, or one of its rows is in no element.
        """
        batches = [column[0] for column in argument.columns()]
        if not _are_batches(batches):
            return None
        keys = [key(_plain_values(row)) for row in _rows(batches)]
        missing, found = set(keys), dict[str, list[Any]]()
        known = list(self._found.items())
        for _, element in itertools.chain(known, self._new()):
            for row in _rows([column[0] for column in element.columns()]):
                found.setdefault(digest(_plain_values(row)), row)
            missing -= found.keys()
            if not missing:
                break
        if missing or not keys:
            return None
        columns: list[Column] = []
        for batch, parts in zip(batches, zip(*map(found.__getitem__, keys), strict=True), strict=True):
            flat = np.concatenate([np.asarray(part, batch.dtype).ravel() for part in parts])
            columns.append([flat.reshape(batch.shape)])
        return Chunk(argument.structure, 1, columns)

    def _new(self) -> Iterator[tuple[Any, Chunk]]:
        """Iterate over further elements and their keys."""
        if self._rest is None:
            self._rest = self._run()
        for element in self._rest:
            own = self._key(element)
            if own is not None:
                self._found.setdefault(own, element)
                yield own, element

    def close(self) -> None:
        """Close the input, which is reopened by the next look-up."""
        rest, self._rest = self._rest, None
        if rest is not None:
            rest.close()

    def _run(self) -> Generator[Chunk]:
        plan = _once(self._plan)
        varies = any(node.traits.passes != 1 and _varies(node) for node in inputs_first(plan))
        coordinator, operator = open_beside(self._context, plan)
        try:
            for _ in range(_VARYING_MAX if varies else _ELEMENTS_MAX):
                try:
                    chunk = operator.pull(1)
                except Exception:  # noqa: BLE001, S112  # in the place of an element without a name
                    continue
                if chunk is None:
                    return
                yield chunk
        finally:
            coordinator.shut_down(operator.close, wait=True)


def _once(plan: Node, *, may_be_rows: bool = True) -> Node:
    """Return the plan without the repetitions that only repeat its elements, or rows of them.

    Args:
        plan: the plan.
        may_be_rows: whether rows may take the place of batches; not below an op that computes something from batches.
    """
    traits = plan.traits
    if traits.passes != 1:
        source = _unselected(plan.inputs[0])
        return plan.with_inputs([source]) if _varies(source) else _once(source, may_be_rows=may_be_rows)
    if traits.batches and traits.rows:  # drops the last rows of each pass
        return _once(plan.inputs[0]) if may_be_rows else plan
    if len(plan.inputs) != 1 or not (traits.separable or traits.permutes):
        return plan  # which elements it has may depend on their positions
    (source,) = plan.inputs
    once = _once(source, may_be_rows=may_be_rows and traits.only_reorders and traits.pure)
    return plan if once is source else plan.with_inputs([once])


def _unselected(plan: Node) -> Node:
    """Return the plan without selections from a random order, such as take: another pass may select any element."""
    traits = plan.traits
    selects = traits.positional and not traits.permutes and bool(openings(plan))
    if len(plan.inputs) != 1 or not (traits.separable or traits.permutes or selects):
        return plan
    (source,) = plan.inputs
    found = _unselected(source)
    if selects:
        return found
    return plan if found is source else plan.with_inputs([found])


def _varies(plan: Node) -> bool:
    """Return whether the plan may have other elements in each pass because of random numbers."""
    return any(map(_adds_variation, inputs_first(plan)))


def _adds_variation(node: Node) -> bool:
    traits = node.traits
    if traits.permutes or traits.passes != 1 or (traits.batches and traits.rows):
        return False
    if node.random is not None:
        return not node.random.of_functions  # the functions are assumed to return the same elements in each pass
    return not traits.separable and any(not random.of_functions for random in openings(node))


def holds_text(argument: Chunk) -> bool:
    """Return whether an element may name a file."""
    for column in argument.columns():
        value = column[0]
        if isinstance(value, bytes) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
            return True
    return False


def names_in(argument: Chunk) -> list[Any] | None:
    """Return the plain data of an element with text, without the secrets in URLs; None for elements without text."""
    return _plain_values([column[0] for column in argument.columns()]) if holds_text(argument) else None


def _plain_values(values: list[Any]) -> list[Any]:
    return [_plain(value) for value in values]


def _are_batches(values: list[Any]) -> bool:
    return all(isinstance(value, np.ndarray) and value.ndim for value in values) and len({*map(len, values)}) == 1


def _rows(values: list[Any]) -> list[list[Any]]:
    """Return the rows of batches, in order, down to the level at which a value is not a batch of the same length."""
    if not _are_batches(values):
        return [values]
    return [row for parts in zip(*values, strict=True) for row in _rows(list(parts))]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return os.fsencode(redacted(os.fsdecode(value)))
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return [str(value.shape), *map(_plain, value.ravel().tolist())]
    return save_value(value)


def key_of(argument: Chunk) -> str | None:
    """Return the key of an element with text in it, or None."""
    names = names_in(argument)
    return None if names is None else digest(names)


def saved_key(names: Any, context: ExecutionContext) -> str:
    """Return the key for the result of ``names_in`` in a saved state."""
    if type(names) is not list:
        raise StateError(f"the state is damaged: not the name of an element: {names!r:.100}")
    return digest([_moved(name, context) for name in names])


def _moved(name: Any, context: ExecutionContext) -> Any:
    if type(name) is bytes:
        return os.fsencode(name_of(os.fsdecode(name), context))
    return [_moved(part, context) for part in name] if type(name) is list else name


def holds_values(position: Position) -> bool:
    """Return whether a part of a saved position determines elements: by value, or by byte offsets in a file."""
    waiting: list[Any] = [position.to_plain()]
    while waiting:
        part = waiting.pop()
        if type(part) is dict:
            if "columns" in part or "referred" in part or part.get("offset") is not None:
                return True
            waiting.extend(part.values())
        elif type(part) in {list, tuple}:
            waiting.extend(part)
    return False

"""Outlines of plans, stored in saved states, and the description of how two plans differ.

The text is for people. Whether two plans are equal is decided by the fingerprint, which covers more than the text.
"""

from __future__ import annotations

import hashlib
from itertools import zip_longest
from typing import Any

from dataset.amounts import TEXT_MAX
from dataset.plan.drawing.summary import printable, shortened
from dataset.plan.fingerprints.fingerprint import own_text
from dataset.plan.node import Node, walk

_ALL_MAX = 700  # characters in total, so that the state of a long pipeline stays small
_CHAIN_MAX = 200
_ENTRY_MAX = 16  # characters of an entry in addition to the op's text


def outline(plan: Node) -> list[Any]:
    """Return the plan as plain data: for each op, sources first, its number of inputs, its digest, and its text.

    For a long plan, only the first ops are included; the last entry is then the number of omitted ops.

    >>> from dataset import Dataset
    >>> [text for _, _, text in outline(Dataset.range(100).shuffle(10).batch(4).plan)]
    ['range(100)', 'shuffle(10)', 'batch(4)']
    """
    nodes = list(walk(plan))[::-1]
    entries: list[Any] = []
    length = 0
    for node in nodes:
        text = shortened(printable(node.label()), TEXT_MAX)
        length += len(text) + _ENTRY_MAX
        if length > _ALL_MAX and entries:
            return [*entries, len(nodes) - len(entries)]
        digest = hashlib.blake2b(own_text(node).encode(), digest_size=3).hexdigest()
        entries.append([len(node.inputs), digest, text])
    return entries


def chain(entries: Any, length: int = _CHAIN_MAX) -> str:
    """Return an outline in one line, as a user would write it.

    >>> from dataset import Dataset
    >>> chain(outline(Dataset.zip(Dataset.range(3), Dataset.range(4).map(str)).batch(4).plan))
    'zip(range(3), range(4).map(str)).batch(4)'
    """
    done: list[str] = []
    for entry in entries:
        if type(entry) is int:
            done.append(f"... {entry} more")
            continue
        count, _, text = entry
        inputs = done[len(done) - count :][::-1] if count else []
        del done[len(done) - len(inputs) :]
        if len(inputs) > 1:
            text = f"{text}({', '.join(inputs)})"
        elif inputs:
            text = f"{inputs[0]}.{text}"
        done.append(text)
    line = ", ".join(done)
    return line if len(line) <= length else f"{line[: length // 2]} ... {line[-length // 2 :]}"


def difference(there: Any, here: Any) -> str:
    """Return a description of how two plans with different fingerprints differ.

    Args:
        there: the outline in the state.
        here: the outline of the pipeline into which the state is loaded.
    """
    return f"the state is of {chain(there)}; this pipeline is {chain(here)}; {_where(there, here)}"


def _where(there: Any, here: Any) -> str:
    for number, (theirs, ours) in enumerate(zip_longest(there, here), start=1):
        if theirs == ours:
            continue
        if type(theirs) is int or type(ours) is int:
            break
        texts = [None if entry is None else entry[2] for entry in (theirs, ours)]
        if texts[0] == texts[1]:
            return f"they differ at op {number}: {texts[0]} in both, with arguments that its text does not show"
        there_text, here_text = ("no op" if text is None else text for text in texts)
        return f"they differ at op {number}: {there_text} there, {here_text} here"
    return "they differ in ops or arguments that are not shown"


def is_outline(data: Any) -> bool:
    """Return whether data from a state has the form of an ``outline``, as the other functions require."""
    return type(data) is list and all(map(_is_entry, data))


def _is_entry(entry: Any) -> bool:
    if type(entry) is int:
        return True
    return type(entry) is list and [type(part) for part in entry] == [int, str, str] and entry[0] >= 0

"""A plan in few words for a saved state, and what tells two plans apart: which op differs, and how.

The words are for people. Whether two plans are the same says the fingerprint, which is made of more than they show.
"""

from __future__ import annotations

import hashlib
from itertools import zip_longest
from typing import Any

from dataset.plan.fingerprint import own_text
from dataset.plan.node import Node, walk
from dataset.plan.summary import printable, shortened

_TEXT_MAX = 60  # characters of an op
_ALL_MAX = 700  # characters of all of them, so that the state of a long pipeline stays small
_CHAIN_MAX = 200
_ENTRY_MAX = 16  # characters beside the op's own in an entry


def outline(plan: Node) -> list[Any]:
    """The plan as plain data: for each op, sources first, how many inputs it has, a digest of it, and its text.

    Of a long plan the first ops only; the last entry then is how many are left out.

    >>> from dataset import Dataset
    >>> [text for _, _, text in outline(Dataset.range(100).shuffle(10).batch(4).plan)]
    ['range(100)', 'shuffle(10)', 'batch(4)']
    """
    nodes = list(walk(plan))[::-1]
    entries: list[Any] = []
    length = 0
    for node in nodes:
        text = shortened(printable(node.described()), _TEXT_MAX)
        length += len(text) + _ENTRY_MAX
        if length > _ALL_MAX and entries:
            return [*entries, len(nodes) - len(entries)]
        digest = hashlib.blake2b(own_text(node).encode(), digest_size=3).hexdigest()
        entries.append([len(node.inputs), digest, text])
    return entries


def chain(entries: Any, length: int = _CHAIN_MAX) -> str:
    """An outline in one line, as a user would write it.

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
    """What tells two plans apart whose fingerprints differ, in words.

    Args:
        there: the outline in a state.
        here: that of the pipeline which the state was loaded into.
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
    """Whether something that a state says is what ``outline`` gives, so that the other functions can be called."""
    return type(data) is list and all(map(_is_entry, data))


def _is_entry(entry: Any) -> bool:
    if type(entry) is int:
        return True
    return type(entry) is list and [type(part) for part in entry] == [int, str, str] and entry[0] >= 0

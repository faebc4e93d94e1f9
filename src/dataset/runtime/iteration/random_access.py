"""Random access to elements by index, without computing earlier elements: ``dataset[i]``."""

from __future__ import annotations

import operator
from typing import Any

from dataset.plan.cardinality import is_known
from dataset.plan.node import Node, has_random_access, walk
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import open_plan
from dataset.runtime.contract import seek


def element_at(plan: Node, index: Any) -> Any:
    """Return element ``index`` of a plan with random access; negative indices count from the end.

    Raises:
        TypeError: if ``index`` is not an int, or the plan has no random access; the message names the op.
        IndexError: if ``index`` is out of range.
    """
    position = _position(plan, index)
    if plan.traits.indexable:
        source: Any = plan  # with the method that the trait declares
        return source.element(position)
    coordinator, root = open_plan(plan, probing=True)
    try:
        seek(root, position)
        chunk = root.pull(1)
    finally:
        coordinator.shut_down(root.close, wait=True)
    if chunk is None:
        raise IndexError(f"element {index} does not exist")
    return chunk.only()


def first_elements(plan: Node, count: int) -> Chunk:
    """Return the first ``count`` elements of a plan as one chunk. Uses up no random order."""
    coordinator, root = open_plan(plan, probing=True)
    parts: list[Chunk] = []
    try:
        while count:
            chunk = root.pull(count)
            if chunk is None:
                raise IndexError(f"{plan} has {count} elements fewer than its cardinality")
            parts.append(chunk)
            count -= chunk.length
    finally:
        coordinator.shut_down(root.close, wait=True)
    return Chunk.concatenate(parts)


def _position(plan: Node, index: Any) -> int:
    try:
        position = operator.index(index)
    except TypeError:
        hint = "; use skip() and take()" if isinstance(index, slice) else ""
        raise TypeError(f"a dataset is indexed by an int, got {index!r}{hint}") from None
    if not (plan.traits.indexable or has_random_access(plan)):
        sequential = next(node for node in walk(plan) if not node.traits.seekable)
        raise TypeError(
            f"this dataset has no random access, because {sequential} must run from its start; a DataLoader takes "
            "dataset.to_torch()"
        )
    count = plan.cardinality()
    if position < 0 and is_known(count):
        position += count
    if position < 0 or (is_known(count) and position >= count):
        dataset = f"a dataset of {count} elements" if is_known(count) else "an endless dataset"
        raise IndexError(f"index {index} is out of range for {dataset}")
    return position

"""Arguments of user functions, from the elements in a chunk."""

from __future__ import annotations

from typing import Any

from dataset.plan.structure import LEAF, is_tuple
from dataset.runtime.chunks.chunk import Chunk


def arguments(inputs: Chunk) -> list[Any]:
    """Return, for each argument, an iterable over its values: the items of a tuple, otherwise the element."""
    structure = inputs.structure
    if not is_tuple(structure):
        return [inputs.rows()]
    if all(child is LEAF for child in structure.children):
        return list(inputs.columns())
    return list(zip(*inputs.rows(), strict=True))

"""Node and operator of unique(): drop duplicate elements, keeping the first occurrence."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import StateError
from dataset.ops.element_keys import OBJECTS, keys_of, number_dtype
from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Unique(UnaryNode, counted=False):
    """Node that passes on elements that differ from all earlier elements."""

    op: ClassVar[str] = "unique"

    def lower(self, context: ExecutionContext) -> Operator:
        return UniqueOperator(context(self.source), self)


class UniqueOperator(ChunkTransformOperator):
    """Operator that remembers the keys of all elements it has returned."""

    def __init__(self, source: Operator, node: Unique) -> None:
        super().__init__(source, node)
        self._seen: dict[str, set[Any]] = {}

    def convert(self, inputs: Chunk) -> Chunk | None:
        kind, keys = keys_of(inputs)
        seen = self._seen.setdefault(kind, set())
        if seen.issuperset(keys):
            return None
        add = seen.add
        new = [index for index, key in enumerate(keys) if key not in seen and not add(key)]
        return inputs if len(new) == inputs.length else inputs.take(np.array(new, np.intp))

    def save(self) -> Position:
        seen = {kind: self._saved(kind, keys) for kind, keys in self._seen.items() if keys}
        return super().save().having(own={"seen": seen})

    def _saved(self, kind: str, keys: set[Hashable]) -> Any:
        if kind == OBJECTS:
            raise StateError(
                f"{self.node}: the state holds objects, which cannot be saved as plain data, such as "
                f"{next(iter(keys))!r:.200}"
            )
        dtype = number_dtype(kind)
        return list(keys) if dtype is None else np.fromiter(keys, dtype, len(keys))

    def load(self, position: Position) -> None:
        super().load(position)
        self._seen = {
            kind: set(keys.tolist() if isinstance(keys, np.ndarray) else keys)
            for kind, keys in position.own["seen"].items()
        }

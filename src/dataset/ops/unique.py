"""unique(): each element once, where it comes first."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import StateError
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.node import UnaryNode
from dataset.runtime.calls import placed
from dataset.runtime.chunk import Chunk
from dataset.runtime.keys import OBJECTS, keys_of, number_dtype
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending


@dataclass(frozen=True, eq=False)
class Unique(UnaryNode):
    """The elements that are equal to none before them."""

    op: ClassVar[str] = "unique"

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def lower(self, build: Build) -> Operator:
        return UniqueOperator(build(self.source), self)


class UniqueOperator(UnaryOperator):
    """Remembers the key of every element that it has given."""

    def __init__(self, source: Operator, node: Unique) -> None:
        super().__init__(source)
        self.node = node
        self.position = 0
        self._seen: dict[str, set[Any]] = {}
        self._ready = Pending()  # elements and failures of a chunk that was gone through one by one

    def pull(self, n: int) -> Chunk | None:
        while not self._ready:
            chunk = self._next(n)
            if chunk is None:
                return None
            self._give_new(chunk)
        return self._ready.give(n)

    def _next(self, n: int) -> Chunk | None:
        try:
            return self.source.pull(n)
        except Exception:
            self.position += 1
            raise

    def _give_new(self, chunk: Chunk) -> None:
        try:
            output = self._new_of(chunk)
        except Exception as error:  # noqa: BLE001  # keys of several kinds, or an object that can be no key
            if chunk.length > 1:
                for index in range(chunk.length):
                    self._give_new(chunk.slice(index, index + 1))
            else:
                self._ready.put(placed(error, self.node, self.position))
                self.position += 1
        else:
            self.position += chunk.length
            if output is not None:
                self._ready.put(output)

    def _new_of(self, chunk: Chunk) -> Chunk | None:
        kind, keys = keys_of(chunk)
        seen = self._seen.setdefault(kind, set())
        if seen.issuperset(keys):
            return None
        add = seen.add
        new = [index for index, key in enumerate(keys) if key not in seen and not add(key)]
        return chunk if len(new) == chunk.length else chunk.take(np.array(new, np.intp))

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "position": self.position,
            "seen": {kind: self._saved(kind, keys) for kind, keys in self._seen.items() if keys},
            "ready": self._ready.save(),
        }

    def _saved(self, kind: str, keys: set[Hashable]) -> Any:
        if kind == OBJECTS:
            raise StateError(
                f"{self.node.located()}: it has seen objects, which cannot be saved as plain data, such as "
                f"{next(iter(keys))!r:.200}"
            )
        dtype = number_dtype(kind)
        return list(keys) if dtype is None else np.fromiter(keys, dtype, len(keys))

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.position = int(state["position"])
        self._seen = {
            kind: set(keys.tolist() if isinstance(keys, np.ndarray) else keys) for kind, keys in state["seen"].items()
        }
        self._ready.load(state["ready"], lambda: self.node.element_spec)

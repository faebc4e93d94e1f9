"""Chunk transforms without user code: the base of unique, select, sparse_batch and the selectors of mixed datasets."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.resources.exceptions import with_location


class ChunkTransformOperator(UnaryOperator):
    """Operator that converts chunks. If that fails, each element is converted alone, so that only the bad one fails."""

    one_to_one: ClassVar[bool] = False
    """Whether each input yields one element or one exception."""

    def __init__(self, source: Operator, node: Node) -> None:
        super().__init__(source)
        self.node = node
        self.position = 0  # elements taken from the input, including failed ones
        self._ready = OutcomeQueue()

    @abstractmethod
    def convert(self, inputs: Chunk) -> Chunk | None:
        """Return the output for these inputs, which begin at number ``position``; None if there is none.

        If an input cannot be converted, raises before any state changes.
        """

    def pull(self, n: int) -> Chunk | None:
        while not self._ready:
            inputs = self._next(n)
            if inputs is None:
                return None
            self._convert(inputs)
        return self._ready.give(n)

    def _next(self, n: int) -> Chunk | None:
        try:
            return self.source.pull(n)
        except Exception:
            self.position += 1
            raise

    def _convert(self, inputs: Chunk) -> None:
        try:
            output = self.convert(inputs)
        except Exception as error:  # noqa: BLE001  # raised in its place
            if inputs.length > 1:
                for index in range(inputs.length):
                    self._convert(inputs.slice(index, index + 1))
                return
            self._ready.put(with_location(error, self.node, self.position))
        else:
            if output is not None:
                self._ready.put(output)
        self.position += inputs.length

    def save(self) -> State:
        return {"op": self.node.op, **super().save(), "position": self.position, "ready": self._ready.save()}

    def advance(self, state: State, count: int) -> State | None:
        source = self.source.advance(state["source"], count) if self.one_to_one and not state["ready"] else None
        return None if source is None else {**state, "source": source, "position": int(state["position"]) + count}

    def load(self, state: State) -> None:
        super().load(state)
        self.position = int(state["position"])
        self._ready.load(state["ready"], lambda: self.node.element_spec)

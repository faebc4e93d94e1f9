"""Chunk transforms without user code: the base of unique, select, sparse_batch and the selectors of mixed datasets."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator
from dataset.runtime.resources.exceptions import with_location


class ChunkTransformOperator(BufferedUnaryOperator):
    """Operator that converts chunks. If that fails, each element is converted alone, so that only the bad one fails."""

    one_to_one: ClassVar[bool] = False
    """Whether each input yields one element or one exception."""

    def __init__(self, source: Operator, node: Node) -> None:
        super().__init__(source, node)
        self.position = 0  # elements taken from the input, including failed ones

    @abstractmethod
    def convert(self, inputs: Chunk) -> Chunk | None:
        """Return the output for these inputs, which begin at number ``position``; None if there is none.

        If an input cannot be converted, raises before any state changes.
        """

    def produce(self, n: int) -> Chunk | None:
        while True:
            try:
                inputs = self.source.pull(n)
            except Exception:
                self.position += 1
                raise
            if inputs is None:
                return None
            output, fails = None, False
            try:
                output = self.convert(inputs)
            except Exception:  # noqa: BLE001  # raised again in the place of the element that causes it
                fails = True
            if fails:
                self._convert_singly(inputs)
                if self.outbox:
                    return self.outbox.give(n)
            else:
                self.position += inputs.length
            if output is not None:
                return output

    def _convert_singly(self, inputs: Chunk) -> None:
        for index in range(inputs.length):
            try:
                output = self.convert(inputs.slice(index, index + 1))
            except Exception as error:  # noqa: BLE001  # raised in its place
                self.outbox.put(with_location(error, self.node, self.position))
            else:
                if output is not None:
                    self.outbox.put(output)
            self.position += 1

    def save(self) -> State:
        return {**super().save(), "position": self.position}

    def advance(self, state: State, count: int) -> State | None:
        source = self.source.advance(state["source"], count) if self.one_to_one and "outbox" not in state else None
        return None if source is None else {**state, "source": source, "position": int(state["position"]) + count}

    def load(self, state: State) -> None:
        super().load(state)
        self.position = int(state["position"])

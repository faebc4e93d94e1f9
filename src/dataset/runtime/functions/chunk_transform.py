"""Chunk transforms without user code: the base of unique, select, sparse_batch and the selectors of mixed datasets."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import with_location


class ChunkTransformOperator(BufferedUnaryOperator):
    """Operator that converts chunks. If that fails, each element is converted alone, so that only the bad one fails."""

    one_to_one: ClassVar[bool] = False
    """Whether each input yields one element or one exception."""

    def __init__(self, source: Operator, node: Node) -> None:
        super().__init__(source, node)

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
                self.at += 1
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
                self.at += inputs.length
            if output is not None:
                return output

    def _convert_singly(self, inputs: Chunk) -> None:
        for index in range(inputs.length):
            try:
                output = self.convert(inputs.slice(index, index + 1))
            except Exception as error:  # noqa: BLE001  # raised in its place
                self.outbox.put(with_location(error, self.node, self.at))
            else:
                if output is not None:
                    self.outbox.put(output)
            self.at += 1

    def advance(self, position: Position, count: int) -> Position | None:
        return self.advance_input(position, count) if self.one_to_one else None

"""Chunks turned into others without user code: what unique, select, sparse_batch and the choices of a mix share."""

from __future__ import annotations

from abc import abstractmethod

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.functions.calls import placed
from dataset.runtime.parallel.pending import Pending


class ChunkTransformOperator(UnaryOperator):
    """Turns chunks into others. Where that fails, each element is tried by itself, so that it fails alone."""

    def __init__(self, source: Operator, node: Node) -> None:
        super().__init__(source)
        self.node = node
        self.position = 0  # elements taken from the input; one that failed there has its number, too
        self._ready = Pending()

    @abstractmethod
    def convert(self, inputs: Chunk) -> Chunk | None:
        """What becomes of these inputs, the first of which is number ``position``; None for nothing.

        Raises, before it has changed anything, if there is no telling what becomes of one of them.
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
        except Exception as error:  # noqa: BLE001  # raised at its place
            if inputs.length > 1:
                for index in range(inputs.length):
                    self._convert(inputs.slice(index, index + 1))
                return
            self._ready.put(placed(error, self.node, self.position))
        else:
            if output is not None:
                self._ready.put(output)
        self.position += inputs.length

    def seek(self, count: int) -> None:
        self.position += count
        self.source.seek(count)

    def state_dict(self) -> State:
        return {"op": self.node.op, **super().state_dict(), "position": self.position, "ready": self._ready.save()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.position = int(state["position"])
        self._ready.load(state["ready"], lambda: self.node.element_spec)

"""Buffered operator: the base class of operators that may find more outcomes than were requested."""

from __future__ import annotations

from abc import abstractmethod

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position


class BufferedOperator(Operator):
    """An operator with an outbox: outcomes that were found, but not requested yet.

    The outbox holds elements, and exceptions in their places. This class hands them out, saves them by value and drops
    them at the end, so that a subclass only implements ``produce``.

    Args:
        node: the node of the operator.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.outbox = OutcomeQueue()

    def pull(self, n: int) -> Chunk | None:
        outbox = self.outbox
        return outbox.give(n) if outbox.items else self.produce(n)

    @abstractmethod
    def produce(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements, or None at the end, while the outbox is empty.

        What is found in addition, such as an exception after these elements, goes into the outbox.
        """

    def save(self) -> Position:
        position = super().save()
        return position.having(held={"outbox": self.outbox.save()}) if self.outbox else position

    def load(self, position: Position) -> None:
        super().load(position)
        self.outbox.load(position.held.get("outbox", ()), lambda: self.node.element_spec)

    def close(self) -> None:
        self.outbox.clear()  # an exception in it would keep its frames alive
        super().close()


class BufferedUnaryOperator(BufferedOperator, UnaryOperator):
    """An operator with an outbox and one input."""

    def __init__(self, source: Operator, node: Node) -> None:
        BufferedOperator.__init__(self, node)
        UnaryOperator.__init__(self, source)

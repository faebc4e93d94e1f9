"""Buffered input: one of several inputs of an operator, for zip and the ops that mix datasets."""

from __future__ import annotations

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, holds_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.position import INPUT, Position, holding
from dataset.runtime.state.saved_chunks import load_chunk, load_error, save_chunk, save_error


class BufferedInput:
    """An open input, and the elements pulled from it before they were needed.

    Attributes:
        left: elements still to be given according to the cardinality: -1 if infinite, None if unknown.
        seen_early: whether reading ahead would be visible to the user.
        length: the number of buffered elements.
        error: the exception after the buffered elements, if any.
        ended: whether the input ends after the buffered elements.
    """

    def __init__(self, node: Node, source: Operator) -> None:
        self.node = node
        self.source = source
        cardinality = node.cardinality()
        self.left = None if cardinality == UNKNOWN_CARDINALITY else cardinality
        self.seen_early = holds_user_code(node)
        self.length = 0
        self.error: Exception | None = None
        self.ended = False
        self._waiting: list[Chunk] = []

    @property
    def is_endless(self) -> bool:
        """Whether the input is known to be infinite."""
        return self.left == INFINITE_CARDINALITY

    def gather(self, n: int) -> None:
        """Buffer ``n`` elements; fewer before an exception or the end."""
        while self.length < n and not self.ended and self.error is None:
            try:
                chunk = self.source.pull(n - self.length)
            except Exception as error:  # noqa: BLE001  # raised in its place
                self.error = error
                return
            if chunk is None:
                self.ended = True
            else:
                self._waiting.append(chunk)
                self.length += chunk.length

    def give(self, n: int) -> Chunk:
        """Return the next ``n`` elements, which must be buffered."""
        joined = Chunk.concatenate(self._waiting)
        self._waiting = [joined.slice(n, joined.length)] if joined.length > n else []
        self.length -= n
        self._count(n)
        return joined.slice(0, n)

    def take_error(self) -> Exception | None:
        """Remove and return the exception, if it is next."""
        if self.length or self.error is None:
            return None
        error, self.error = self.error, None
        self._count(1)  # it took the place of an element
        return error

    def _count(self, n: int) -> None:
        if self.left is not None and self.left > 0:
            self.left = max(0, self.left - n)

    def save(self) -> Position:
        """Return the position of this input."""
        return Position(
            INPUT,
            inputs=(self.source.save(),),
            held=holding(
                error=None if self.error is None else save_error(self.error),
                waiting=save_chunk(Chunk.concatenate(self._waiting)) if self._waiting else None,
            ),
            own={"left": self.left, "ended": self.ended},
        )

    def advance(self, position: Position, count: int) -> Position | None:
        """Return the position ``count`` elements after a saved one, or None if arithmetic cannot tell."""
        if position.own["ended"] or position.held:
            return None
        left, below = position.own["left"], self.source.advance(position.source, count)
        passed = left if left is None or left <= 0 else max(0, left - count)
        return None if below is None else position.after(0, below, left=passed)

    def load(self, position: Position) -> None:
        """Restore a saved position."""
        self.source.load(position.source)
        self.left = None if position.own["left"] is None else position.like("left", INFINITE_CARDINALITY)
        self.ended = position.like("ended", False)
        error, waiting = position.held.get("error"), position.held.get("waiting")
        self.error = None if error is None else load_error(error)
        elements = load_chunk(waiting, lambda: self.node.element_spec)
        self._waiting = [] if elements is None else [elements]
        self.length = 0 if elements is None else elements.length

    def close(self) -> None:
        """Close the input."""
        self.source.close()

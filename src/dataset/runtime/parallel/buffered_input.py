"""Buffered input: one of several inputs of an operator, for zip and the ops that mix datasets."""

from __future__ import annotations

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, holds_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State
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

    def save(self) -> State:
        """Return the position of this input, as plain data."""
        return {
            "source": self.source.save(),
            "left": self.left,
            "ended": self.ended,
            "error": None if self.error is None else save_error(self.error),
            "waiting": save_chunk(Chunk.concatenate(self._waiting)) if self._waiting else None,
        }

    def advance(self, state: State, count: int) -> State | None:
        """Return the position ``count`` elements after a saved one, or None if arithmetic cannot tell."""
        if state["ended"] or state["error"] is not None or state["waiting"] is not None:
            return None
        below = self.source.advance(state["source"], count)
        left = state["left"]
        passed = left if left is None or left <= 0 else max(0, left - count)
        return None if below is None else {**state, "source": below, "left": passed}

    def load(self, state: State) -> None:
        """Restore a saved position."""
        self.source.load(state["source"])
        self.left = None if state["left"] is None else int(state["left"])
        self.ended = bool(state["ended"])
        self.error = None if state["error"] is None else load_error(state["error"])
        waiting = load_chunk(state["waiting"], lambda: self.node.element_spec)
        self._waiting = [] if waiting is None else [waiting]
        self.length = 0 if waiting is None else waiting.length

"""One of several inputs that an operator reads side by side. zip and the ops that mix datasets share it."""

from __future__ import annotations

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, holds_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State
from dataset.runtime.state.saved_chunks import load_chunk, load_error, save_chunk, save_error


class BufferedInput:
    """An open input, and what was pulled from it before it was needed.

    Attributes:
        left: elements still to be given, as far as the cardinality tells: -1 where endless, None where unknown.
        seen_early: whether a user could notice that it was read ahead.
        length: elements that wait here.
        error: an exception that comes behind those.
        ended: whether nothing comes behind those.
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
        """Whether it is known that it never ends."""
        return self.left == INFINITE_CARDINALITY

    def gather(self, n: int) -> None:
        """Wait for ``n`` elements; fewer where an exception is next, or the end."""
        while self.length < n and not self.ended and self.error is None:
            try:
                chunk = self.source.pull(n - self.length)
            except Exception as error:  # noqa: BLE001  # raised at its place
                self.error = error
                return
            if chunk is None:
                self.ended = True
            else:
                self._waiting.append(chunk)
                self.length += chunk.length

    def give(self, n: int) -> Chunk:
        """The next ``n`` elements, which have been gathered."""
        joined = Chunk.concatenate(self._waiting)
        self._waiting = [joined.slice(n, joined.length)] if joined.length > n else []
        self.length -= n
        self._count(n)
        return joined.slice(0, n)

    def take_error(self) -> Exception | None:
        """The exception, if it is next."""
        if self.length or self.error is None:
            return None
        error, self.error = self.error, None
        self._count(1)  # it had the place of an element
        return error

    def _count(self, n: int) -> None:
        if self.left is not None and self.left > 0:
            self.left = max(0, self.left - n)

    def save(self) -> State:
        """The place of this input, as plain data."""
        return {
            "source": self.source.state_dict(),
            "left": self.left,
            "ended": self.ended,
            "error": None if self.error is None else save_error(self.error),
            "waiting": save_chunk(Chunk.concatenate(self._waiting)) if self._waiting else None,
        }

    def state_after(self, state: State, count: int) -> State | None:
        """The place ``count`` elements behind a saved one, where arithmetic tells."""
        if state["ended"] or state["error"] is not None or state["waiting"] is not None:
            return None
        below = self.source.state_after(state["source"], count)
        left = state["left"]
        passed = left if left is None or left <= 0 else max(0, left - count)
        return None if below is None else {**state, "source": below, "left": passed}

    def load(self, state: State) -> None:
        """Go to a saved place."""
        self.source.load_state_dict(state["source"])
        self.left = None if state["left"] is None else int(state["left"])
        self.ended = bool(state["ended"])
        self.error = None if state["error"] is None else load_error(state["error"])
        waiting = load_chunk(state["waiting"], lambda: self.node.element_spec)
        self._waiting = [] if waiting is None else [waiting]
        self.length = 0 if waiting is None else waiting.length

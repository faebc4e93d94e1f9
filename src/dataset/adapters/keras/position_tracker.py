"""Position tracker: the position after the last batch that Keras has trained on, although more are prefetched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

State = dict[str, Any]


class Place(NamedTuple):
    """A position in the batches.

    Attributes:
        state: the state of an iterator over the batches.
        behind: how many batches to skip after restoring the state.
    """

    state: State
    behind: int


class Places:
    """Tracker of the positions of a training: iterator states, each with the number of batches returned before it.

    One thread returns batches and another one trains on them; a few batches are in between. Batches are counted from
    the start of the training in this process, over all its passes.

    Args:
        every: save a state each time this many batches were returned; None to save states only at the ends of passes.
        done: how many batches of the first epoch were trained on before.
    """

    def __init__(self, every: int | None, done: int) -> None:
        self._lock = threading.Lock()  # guards the attributes below
        self._every = every
        self._done = done
        self._marks: list[tuple[int, State]] = []
        self._given = 0
        self._trained = 0
        self.paused = False
        """Whether the model is being tested; the passes of a test are not part of the training."""

    def begin_pass(self, state: Callable[[], State]) -> None:
        """Record that a pass starts or resumes."""
        self._leave(self._given, state)

    def give(self, state: Callable[[], State], *, is_last: bool) -> None:
        """Record that a batch is about to be returned."""
        self._given += 1
        if is_last or (self._every is not None and (self._given + self._done) % self._every == 0):
            self._leave(self._given, state)

    def end_pass(self, state: Callable[[], State]) -> None:
        """Record that the pass has ended."""
        self._leave(self._given, state)

    def _leave(self, count: int, state: Callable[[], State]) -> None:
        mark = count, state()
        with self._lock:
            self._marks = [*(old for old in self._marks if old[0] != count), mark]
            self._forget()

    def _forget(self) -> None:
        while len(self._marks) > 1 and self._marks[1][0] <= self._trained:
            del self._marks[0]

    def train(self, count: int) -> None:
        """Record that ``count`` more batches were trained on."""
        with self._lock:
            self._trained += count
            self._forget()

    def now(self) -> Place | None:
        """Return the position after the last batch that was trained on; None before the first state."""
        with self._lock:
            if not self._marks or self._marks[0][0] > self._trained:
                return None
            count, state = self._marks[0]
            return Place(state, self._trained - count)

"""Where the batches stand that Keras has trained on, however many more have been made for it by then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

State = dict[str, Any]


class Place(NamedTuple):
    """A place in the batches.

    Attributes:
        state: of an iterator over them.
        behind: how many batches are to be passed over there.
    """

    state: State
    behind: int


class Places:
    """What a training notes of its batches: states, each with how many batches had been given by then.

    Batches are given in one thread and trained on in another; on their way there are a few more. They are counted from
    the beginning of the training in this process, over all its passes.

    Args:
        every: leave a state each time that so many batches were given; None for the ends of passes only.
        done: how many batches of the first epoch were trained on before.
    """

    def __init__(self, every: int | None, done: int) -> None:
        self._lock = threading.Lock()  # guards what follows
        self._every = every
        self._done = done
        self._marks: list[tuple[int, State]] = []
        self._given = 0
        self._trained = 0
        self.paused = False
        """While the model is tested; then passes are none of the training."""

    def begin_pass(self, state: Callable[[], State]) -> None:
        """A pass begins, or goes on from a place."""
        self._leave(self._given, state)

    def give(self, state: Callable[[], State], *, is_last: bool) -> None:
        """A batch is about to be given."""
        self._given += 1
        if is_last or (self._every is not None and (self._given + self._done) % self._every == 0):
            self._leave(self._given, state)

    def end_pass(self, state: Callable[[], State]) -> None:
        """The pass has come to its end."""
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
        """So many more batches were trained on."""
        with self._lock:
            self._trained += count
            self._forget()

    def now(self) -> Place | None:
        """The place behind the batches that were trained on; None before the first."""
        with self._lock:
            if not self._marks or self._marks[0][0] > self._trained:
                return None
            count, state = self._marks[0]
            return Place(state, self._trained - count)

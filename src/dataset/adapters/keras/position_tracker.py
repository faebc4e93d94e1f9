"""Position tracker: the position after the last batch that Keras has trained on, although more are prefetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dataset.dataset import replay_marks

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
    """Tracker of the positions of a training, as marks in the batches that were returned.

    One thread returns batches and another one trains on them; a few batches are in between. Batches are counted from
    the start of the training in this process, over all its passes.

    Args:
        every: save a state each time this many batches were returned; None to save states only at the ends of passes.
        done: how many batches of the first epoch were trained on before.
    """

    def __init__(self, every: int | None, done: int) -> None:
        self._marks = replay_marks()
        self._every = every
        self._done = done
        self._trained = 0
        self.paused = False
        """Whether the model is being tested; the passes of a test are not part of the training."""

    def leave(self, state: State) -> None:
        """Store the state in which a pass starts, resumes or ends."""
        self._marks.leave(self._marks.read, state)

    def give(self, state: Callable[[], State], *, is_last: bool) -> None:
        """Record that a batch is about to be returned."""
        self._marks.read += 1
        if is_last or (self._every is not None and (self._marks.read + self._done) % self._every == 0):
            self.leave(state())

    def train(self, count: int) -> None:
        """Record that ``count`` more batches were trained on."""
        self._trained += count
        self._marks.forget(self._trained)

    def now(self) -> Place | None:
        """Return the position after the last batch that was trained on; None before the first state."""
        mark = self._marks.mark_before(self._trained)
        return None if mark is None else Place(mark[1], self._trained - mark[0])

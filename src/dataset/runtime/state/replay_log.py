"""Where an input was, for those that read it ahead: they save a place behind them instead of what they hold.

Whoever reads ahead leaves marks: states of its input, each with how many elements had been read there. Its own state is
then the last mark before what has been given, and how many elements lie between. From there the few elements are made
again that had been made and not given; so a state waits for no work in progress, and holds no elements.

Marks cost time. They are left as often as that takes a small part of it, so often where elements take long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dataset.errors import StateError
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State
from dataset.runtime.resources.exceptions import concerns_iteration

_SHARE = 50
"""A mark is left once as many times as long as it takes has passed: 2% of the time at the most."""

_RETRY_SECONDS = 0.1

_PASS_SECONDS = 1e-3  # of work between two looks at whether to stop, where elements take less

_MARKS_MAX = 16  # in front of what has been given; beyond that, every second one is dropped


class ReplayLog:
    """The marks that one reader leaves in its input. Elements are counted from where the first mark is.

    One thread at a time may read; any may ask for the place meanwhile. An exception counts as an element.

    Args:
        source: the input.
    """

    def __init__(self, source: Operator) -> None:
        self._source = source
        self._lock = threading.Lock()  # guards _marks
        self._marks: list[tuple[int, State]] = []
        self._due = 0.0  # when the next mark is to be left, on the clock of time.perf_counter
        self.read = 0
        """Elements that were read since the first mark."""
        self.given = 0
        """Of these, how many had been given where the saved state was taken that this began with."""

    def step(self) -> bool:
        """To be called before each reading: leaves a mark if it is time for one, and says so."""
        now = time.perf_counter()
        if now < self._due:
            return False
        left, rest = True, 0.0
        try:
            self.leave(self.read, self._source.state_dict())
        except Exception:  # noqa: BLE001  # it holds what is no plain data: nobody minds who does not ask for a state
            left, rest = False, _RETRY_SECONDS
        ended = time.perf_counter()
        self._due = ended + max(rest, _SHARE * (ended - now))
        return left

    def leave(self, count: int, state: State) -> None:
        """Leave a mark behind ``count`` elements, where the input is or was in this state."""
        with self._lock:
            if self._marks and self._marks[-1][0] == count:
                self._marks[-1] = count, state
                return
            self._marks.append((count, state))
            if len(self._marks) > _MARKS_MAX:
                del self._marks[1::2]

    @property
    def is_long(self) -> bool:
        """Whether it is time to say what may be forgotten, or every second mark goes."""
        return len(self._marks) > _MARKS_MAX // 2

    def forget(self, given: int) -> None:
        """Drop the marks that are of no use any more now that so many elements have been given."""
        if len(self._marks) < 2:
            return  # in most cases, which a look without the lock tells
        with self._lock:
            while len(self._marks) > 1 and self._marks[1][0] <= given:
                del self._marks[0]

    def mark_before(self, count: int) -> tuple[int, State] | None:
        """The last mark that is not behind ``count`` elements, with its own count; None where there is none."""
        with self._lock:
            return next((mark for mark in reversed(self._marks) if mark[0] <= count), None)

    def place(self, given: int) -> State:
        """The state behind ``given`` elements: of the input, and how many of its elements are to be passed over."""
        with self._lock:
            if not self._marks:
                return self._without_marks(given)
            count, state = next(mark for mark in reversed(self._marks) if mark[0] <= given)
        behind = given - count
        if behind:
            exact = self._source.state_after(state, behind)
            if exact is not None:
                return {"source": exact, "behind": 0}
        return {"source": state, "behind": behind}

    def _without_marks(self, given: int) -> State:
        if self._due:  # the input may be read from right now
            raise StateError(
                "the input could not say where it was as plain data, before anything was read of it; does it hold "
                "elements of user classes?"
            )
        return {"source": self._source.state_dict(), "behind": given}

    def load(self, state: State) -> None:
        """Begin at a place that was saved; the input goes there. Nothing is made before ``go_on``."""
        self._source.load_state_dict(state["source"])
        self.given = int(state["behind"])
        if self.given < 0:
            raise StateError(f"the saved place is {self.given} elements behind another one")
        self.leave(0, state["source"])

    def pull(self, n: int) -> Chunk | None:
        """Read 1 to ``n`` elements of the input, and count them. An exception counts as one, an interrupt does not."""
        try:
            chunk = self._source.pull(n)
        except Exception:
            self.read += 1
            raise
        if chunk is not None:
            self.read += chunk.length
        return chunk

    @property
    def is_behind(self) -> bool:
        """Whether something is still to be passed over."""
        return self.read < self.given

    def go_on(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """To be called before each reading, in the thread that reads: passes over what had been given.

        Few elements at a time, where they take long, so that it ends soon once ``stopped`` says so.
        """
        count = 1
        while self.is_behind and not stopped():
            started = time.perf_counter()
            passed = 1  # an exception, which was raised when its turn was
            try:
                passed = self._source.pass_over(min(count, self.given - self.read))
            except Exception as error:
                if concerns_iteration(error) or isinstance(error, StateError):
                    raise
            if not passed:
                return  # the input has become shorter: it has ended, which the next reading finds
            self.read += passed
            count = 2 * count if time.perf_counter() - started < _PASS_SECONDS else max(1, count // 2)

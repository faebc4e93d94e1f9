"""Replay log: recent positions of an input that is read ahead, saved in the place of the elements held.

An operator that reads ahead stores marks: positions of its input, each with the number of elements read before it. Its
own position is the last mark before the elements given so far, plus the number of elements in between. After a resume,
the few elements that had been computed and not given are recomputed. So saving a state does not wait for work in
progress, and the state holds no elements.

Marks cost time. Their interval is chosen so that they take a small share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dataset.amounts import REST_FACTOR
from dataset.errors import StateError
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position, skipping
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.world import threading, time

M = TypeVar("M")


_RETRY_SECONDS = 0.1

_PASS_SECONDS = 1e-3  # time between two checks of the stop flag, if elements take less

_MARKS_MAX = 16  # marks kept; if there are more, every second one is dropped


class _Replay(threading.local):
    """Whether this thread is computing elements again that were given before a state was saved."""

    is_active = False


replay = _Replay()


class ReplayMarks(Generic[M]):
    """Marks in a sequence of elements: positions, each with the number of elements read before it.

    One thread at a time may store marks; any thread may request one meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _marks
        self._marks: list[tuple[int, M]] = []
        self.read = 0
        """Elements read since the first mark."""

    def leave(self, count: int, position: M) -> None:
        """Store a mark after ``count`` elements, where the input is or was at this position."""
        with self._lock:
            if self._marks and self._marks[-1][0] == count:
                self._marks[-1] = count, position
                return
            self._marks.append((count, position))
            if len(self._marks) > _MARKS_MAX:
                del self._marks[1::2]

    @property
    def is_long(self) -> bool:
        """Whether ``forget`` should be called before every second mark is dropped."""
        return len(self._marks) > _MARKS_MAX // 2

    def forget(self, given: int) -> None:
        """Drop the marks that are not needed after ``given`` elements have been given."""
        if len(self._marks) < 2:
            return  # the usual case, tested without the lock
        with self._lock:
            while len(self._marks) > 1 and self._marks[1][0] <= given:
                del self._marks[0]

    def mark_before(self, count: int) -> tuple[int, M] | None:
        """Return the last mark that is not after ``count`` elements, with its count; None if there is none."""
        with self._lock:
            return next((mark for mark in reversed(self._marks) if mark[0] <= count), None)


class ReplayLog(ReplayMarks[Position]):
    """The marks that one reader stores for its input. Elements are counted from the first mark.

    One thread at a time may read; any thread may request the position meanwhile. An exception counts as an element.

    Args:
        source: the input.
        op: the operation that reads it.
    """

    def __init__(self, source: Operator, op: str) -> None:
        super().__init__()
        self._source = source
        self._op = op
        self._due = 0.0  # when the next mark is due, on the clock of time.perf_counter
        self.given = 0
        """How many of these had been given when the loaded state was saved."""

    def step(self, now: float | None = None) -> bool:
        """Store a mark if it is time for one, and return whether it was. Must be called before each read.

        Args:
            now: a recent time on the clock of ``time.perf_counter``; default: it is read.
        """
        now = time.perf_counter() if now is None else now
        if now < self._due:
            return False
        left, rest = True, 0.0
        try:
            self.leave(self.read, self._source.save())
        except Exception:  # noqa: BLE001  # it holds data that cannot be saved: only an error if a state is requested
            left, rest = False, _RETRY_SECONDS
        ended = time.perf_counter()
        self._due = ended + max(rest, REST_FACTOR * (ended - now))
        return left

    def place(self, given: int) -> Position:
        """Return the position after ``given`` elements: that of a mark, and how many elements to skip from there."""
        with self._lock:
            if not self._marks:
                return self._without_marks(given)
            count, mark = next(mark for mark in reversed(self._marks) if mark[0] <= given)
        exact = self._source.advance(mark, given - count) if given > count else None
        return self._position(mark, given - count) if exact is None else self._position(exact, 0)

    def _position(self, source: Position, given: int) -> Position:
        return Position(self._op, inputs=(source,), given=skipping(given))

    def _without_marks(self, given: int) -> Position:
        if self._due:  # another thread may be reading the input
            raise StateError(
                "the position of the input could not be saved as plain data before the first element was read; does it "
                "hold elements of user classes?"
            )
        return self._position(self._source.save(), given)

    def load(self, position: Position) -> None:
        """Restore a saved position of the reader. No element is computed before ``go_on``."""
        self._source.load(position.source)
        self.given = position.skipped
        self.leave(0, position.source)

    def pull(self, n: int) -> Chunk | None:
        """Pull 1 to ``n`` elements from the input and count them. An exception counts as one, an interrupt does not."""
        was_active, replay.is_active = replay.is_active, False  # even if a reader of this one replays
        try:
            chunk = self._source.pull(n)
        except Exception:
            self.read += 1
            raise
        finally:
            replay.is_active = was_active
        if chunk is not None:
            self.read += chunk.length
        return chunk

    @property
    def position(self) -> int:
        """Elements read, or given before the loaded state was saved, since the first mark."""
        return max(self.read, self.given)

    def present(self) -> Position:
        """Return the present position of the input, and how many elements are still to be skipped from there."""
        return self._position(self._source.save(), max(0, self.given - self.read))

    @property
    def is_behind(self) -> bool:
        """Whether elements must still be skipped."""
        return self.read < self.given

    def go_on(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Skip the elements that had been given. Must be called before each read, in the reading thread.

        Slow elements are skipped a few at a time, so that the method returns soon once ``stopped`` is true.
        """
        count = 1
        while self.is_behind and not stopped():
            started = time.perf_counter()
            passed = 1  # an exception, which was raised in its place before
            was_active, replay.is_active = replay.is_active, True
            try:
                passed = self._source.skip(min(count, self.given - self.read))
            except Exception as error:
                if concerns_iteration(error):
                    raise
            finally:
                replay.is_active = was_active
            if not passed:
                return  # the input has become shorter: the next read finds its end
            self.read += passed
            count = 2 * count if time.perf_counter() - started < _PASS_SECONDS else max(1, count // 2)

"""Window operator: gathers a window of input elements, and returns the rows that are made of it.

The state is the position of the input at the window's start and the number of rows returned since. A resume gathers the
window again and skips these rows, so the state holds no elements, whatever the size of the window.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import StateError
from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position, holding
from dataset.runtime.random.streams import RandomPass
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, concerns_iteration
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import load_chunk, load_pending, save_chunk, save_pending

_NO_LENGTHS = np.empty(0, np.int64)


class RowsOfWindowsOperator(UnaryOperator):
    """Base operator that makes rows of each window of elements.

    A failed element is raised when it is reached, before the rows of its window, and takes no place in the window. From
    an input that cannot repeat its elements, those of an incomplete window are saved by value, and so are the rows.

    Args:
        context: the execution context.
        source: the input.
        node: the node of the op.
        window: the number of elements of a window.
    """

    def __init__(self, context: ExecutionContext, source: Operator, node: UnaryNode, window: int) -> None:
        super().__init__(source)
        self.node = node
        self._context = context
        self._window = window
        self._random: RandomPass | None = None
        if node.random is not None:
            epochs = context.iteration.epochs
            self._random = RandomPass(context.draws(node.random), epochs, node.random, again=False)
        self._log = ReplayLog(source, node.op)
        self._start: int | None = 0  # of the window, in elements of the log; None if the window was saved by value
        self._index = 0  # of the window
        self._origin = 0  # elements and failures of the input before the window
        self._passed = 0  # elements and failures of the window
        self._pulled = 0  # elements of the window
        self._unaccepted: Chunk | None = None  # pulled, and not accepted because of an interrupt
        self._parts: list[Chunk] = []  # elements of the window that go into rows
        self._failures: deque[Exception] = deque()  # found in elements of the window, and not raised yet
        self._given = 0  # rows and failures of the window that were returned or raised
        self._behind = 0  # of these, how many are found again after a resume
        self._window_lengths = _NO_LENGTHS  # of the accepted elements of the window, once its rows are planned
        self._checksum: int | None = None  # of these
        self._count = self._next = 0  # rows of the window that are planned, and made
        self._made = OutcomeQueue()
        self._demand = 1  # the largest number of rows that was requested
        self._input_ended = self._ended = False

    @abstractmethod
    def accept(self, chunk: Chunk, position: int) -> Chunk | None:
        """Return the elements of a chunk that go into rows, and ``fail`` for others.

        Args:
            chunk: elements of the input.
            position: the position of the first in the input.
        """

    def part_spec(self) -> Any:
        """Return the spec of the elements that ``accept`` returns; by default, those of the input."""
        return self.node.source.element_spec

    @abstractmethod
    def lengths_in(self, parts: list[Chunk]) -> npt.NDArray[np.int64]:
        """Return the lengths of the accepted elements of a window, of which there is at least one."""

    @abstractmethod
    def plan(self, parts: list[Chunk], *, is_last: bool) -> int:
        """Decide on the rows of a window, given its accepted elements, and return their number.

        An exception takes the place of all rows of the window.
        """

    @abstractmethod
    def make(self, start: int, stop: int) -> Chunk:
        """Return rows ``start`` to ``stop`` of the window."""

    @property
    def rows_at_once(self) -> int:
        """How many rows to make at once, to amortize the fixed cost. Making few keeps them in the processor's cache."""
        return 1

    def fail(self, error: Exception) -> None:
        """Raise an exception before the rows of the window, in the place of an element that is not accepted."""
        self._failures.append(error)

    def permutation(self, count: int) -> Any:
        """Return the random order of ``count`` rows of the window; it depends on the seed, the epoch and the window."""
        assert self._random is not None
        return self._random.stream.permutation(count, self._index)

    def pull(self, n: int) -> Chunk | None:
        while not self._ended:
            if self._made or self._next < self._count or self._plan_window():
                return self._give(n)
            self._begin_window()
        return None

    def _give(self, n: int) -> Chunk | None:
        if not self._made:
            # Requests of one size get slices of one array, which batch does not copy. A smaller one completes a batch.
            self._demand = max(self._demand, n)
            count = n if n < self._demand else n * max(1, self.rows_at_once // n)
            self._made.put(self._make(min(self._count, self._next + count)))
        waiting = len(self._made)
        try:
            return self._made.give(n)
        finally:
            self._given += waiting - len(self._made)
            self._begin_next()

    def _make(self, stop: int) -> Chunk:
        """Make the rows up to ``stop``, or those before the first that fails. An exception takes the place of a row."""
        try:
            made = self.make(self._next, stop)
        except Exception as error:
            if concerns_iteration(error):
                raise
            if stop - self._next > 1:
                return self._make(self._next + 1)
            self._next += 1
            self._given += 1
            self._begin_next()
            raise
        self._next = stop
        return made

    def _row(self, number: int) -> Outcome:
        """Return one row, or the exception in its place."""
        try:
            return self.make(number, number + 1)
        except Exception as error:
            if concerns_iteration(error):
                raise
            return error

    def _begin_next(self) -> None:
        """Begin the next window if all rows of this one were returned."""
        if not self._made and self._next == self._count:
            self._begin_window()

    def _plan_window(self) -> bool:
        """Gather the elements of the window and plan its rows. Return whether there are any to return."""
        self._gather()
        self._check_replay()
        try:
            count = self.plan(self._parts, is_last=self._input_ended)
        except Exception as error:
            if concerns_iteration(error):
                raise
            if self._behind:
                return False  # it was raised before the state was saved
            self._begin_window()
            raise
        self._parts = []
        self._next, self._count, self._behind = min(self._behind, count), count, 0
        return self._next < count

    def _check_replay(self) -> None:
        """Check that a window that was gathered again after a resume has the sequences that it had."""
        self._window_lengths = self.lengths_in(self._parts) if self._parts else _NO_LENGTHS
        found = zlib.crc32(self._window_lengths.astype("<i8").tobytes())
        if self._checksum not in {None, found}:
            error = StateError(
                f"{self.node}: cannot resume within window {self._index}: its {self._pulled:,} elements from element "
                f"{self._origin:,} on have other lengths than when the state was saved. The data, a function, or the "
                "weights of a mix have changed for some of them, or a function is random: use random_map() for that, "
                "and change weights only for later elements"
            )
            error.add_note(f"in {self.node}: {CANNOT_CONTINUE}")
            raise error
        self._checksum = found

    def _gather(self) -> None:
        """Gather the elements of the window. Raise the exceptions among them."""
        log = self._log
        while self._pulled < self._window and not self._input_ended:
            self._raise_failure()
            if log.position == self._start:
                log.forget(self._start)
                log.step()
            log.go_on()
            try:
                chunk = self._unaccepted or log.pull(self._window - self._pulled)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                self._passed += 1
                if self._behind:
                    self._behind -= 1  # it was raised before the state was saved
                    continue
                self._given += 1
                raise
            if chunk is None:
                self._input_ended = True
                break
            self._unaccepted = chunk
            accepted = self.accept(chunk, self._origin + self._passed)
            self._unaccepted = None
            self._passed += chunk.length
            self._pulled += chunk.length
            if accepted is not None:
                self._parts.append(accepted)
        self._raise_failure()

    def _raise_failure(self) -> None:
        while self._failures:
            error = self._failures.popleft()
            if self._behind:
                self._behind -= 1
                continue
            self._given += 1
            try:
                raise error
            finally:
                del error  # see runtime/contract.py on stored exceptions

    def _begin_window(self) -> None:
        self._start = self._log.position
        self._origin += self._passed
        self._index += 1
        self._passed = self._pulled = self._given = self._behind = self._next = self._count = 0
        self._parts = []
        self._checksum = None
        self._ended = self._input_ended

    def save(self) -> Position:
        own: dict[str, Any] = {
            "window": self._index,
            "given": self._given,
            "checksum": self._checksum,
            "ended": self._ended,
            "random": None if self._random is None else self._random.save(),
            "by_value": False,
        }
        log, start = self._log, self._start
        if start == log.position:
            return log.present().having(at=self._origin, own=own)
        if start is not None and self._context.input_is_replayable and log.mark_before(start) is not None:
            return log.place(start).having(at=self._origin, own=own)
        own |= {"by_value": True, "passed": self._passed, "pulled": self._pulled, "input_ended": self._input_ended}
        held = holding(
            unaccepted=save_chunk(self._unaccepted),
            parts=[save_chunk(part) for part in self._parts],
            failures=save_pending(list(self._failures)),
            rows=save_pending([*self._made.outcomes(), *map(self._row, range(self._next, self._count))]),
        )
        return log.present().having(at=self._origin, held=held, own=own)

    def load(self, position: Position) -> None:
        self._log.load(position)
        self._start = self._log.position
        self._index, self._origin = position.count("window"), position.at
        self._given = self._behind = position.count("given")
        self._checksum = None if position.own["checksum"] is None else position.count("checksum")
        self._ended = position.like("ended", False)
        if self._random is not None:
            self._random.load(position.own["random"])
        if position.like("by_value", False):
            self._load_held(position)

    def _load_held(self, position: Position) -> None:
        self._start, self._checksum, self._behind = None, None, 0
        self._passed, self._pulled = position.count("passed"), position.count("pulled")
        if self._pulled > min(self._passed, self._window):
            raise StateError(f"{self.node}: the state is damaged: its window has {self._pulled} elements")
        held = position.held
        self._unaccepted = load_chunk(held.get("unaccepted"), lambda: self.node.source.element_spec)
        parts = [load_chunk(part, self.part_spec) for part in held.get("parts", ())]
        self._parts = [part for part in parts if part is not None]
        self._failures.extend(load_pending(held.get("failures", []), lambda: None))  # type: ignore[arg-type]  # only errors
        self._made.load(held.get("rows", ()), lambda: self.node.element_spec)
        self._input_ended = position.like("input_ended", False)

    def close(self) -> None:
        self._failures.clear()  # an exception in it would keep its frames alive
        self._made.clear()
        super().close()

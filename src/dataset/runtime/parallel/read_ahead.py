"""Read-ahead operator: pulls more than requested if a pull is expensive and reading ahead is unobservable.

The fixed cost of a pull is high for arithmetic on whole columns, and for an op that mixes a thousand datasets, which
pulls from each of them whatever the request.
"""

from __future__ import annotations

from dataset.amounts import FEW_ELEMENTS
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import UnaryOperator
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.tasks import Divisible
from dataset.runtime.position import Position
from dataset.runtime.state.replay_log import ReplayLog
from dataset.shared_calls import CallingFor


class ReadAheadOperator(UnaryOperator):
    """Operator that doubles the size of its pulls up to a limit, and holds what was not requested yet.

    It never reads ahead more elements than it has returned, so the first few elements stay cheap.

    Its position is that of the input after the returned elements, where arithmetic gives it or the input can express
    what to skip, so pipelines without this operator can load it. Otherwise, it is an earlier position of the input and
    how many elements to skip. If the input cannot repeat its elements, the held ones go into the input's outbox.

    Args:
        source: the input, which calls no user code.
        context: says whether the source can repeat its elements.
        elements_max: the maximum number of elements per pull.
        bytes_max: the maximum number of bytes per pull; a single element may be larger.
        is_steady: whether a pull of fewer elements than requested is usual. Otherwise, the next pull is small: an input
            of the source has ended, and the source may have to redo its work.
    """

    op = "read_ahead"
    source: BufferedOperator

    def __init__(
        self,
        source: BufferedOperator,
        context: ExecutionContext,
        *,
        elements_max: int,
        bytes_max: int,
        is_steady: bool,
    ) -> None:
        super().__init__(source)
        self._context = context
        self._elements_max = elements_max
        self._bytes_max = bytes_max
        self._is_steady = is_steady
        self._log = ReplayLog(source, self.op)
        self._held = OutcomeQueue()
        self._step = 1
        self.shared: CallingFor | None = None
        """The context in which a function that is called for the elements pulled last shares its calls."""
        self.whole: Chunk | None = None
        """The chunk that was read last, if it is handed out in parts. Others are not kept, so that their arrays have
        no other holder."""
        self.part: Chunk | None = None
        """The part of it that was returned last, which ends there at ``end``."""
        self.end = 0
        self.unpacks = False
        """Whether to convert packed columns to lists."""

    def pull(self, n: int) -> Chunk | None:
        held = self._held
        if not held.items:
            self.whole = self.part = None
            chunk = self._read(n)
            if self.shared is not None:
                self.shared.settle()
                self.shared = None
            if chunk is None or chunk.length <= min(n, FEW_ELEMENTS):
                return chunk
            if self.unpacks and chunk.is_packed:
                chunk = chunk.unpacked()
            held.put(chunk)
            self.shared = None if chunk.is_packed else CallingFor(chunk.length, chunk.columns)
            self.whole, self.end = chunk, 0
        self.part = part = held.give(n)
        assert part is not None  # there are held elements
        self.end += part.length
        return part

    def unread(self, elements: Chunk) -> None:
        """Put back elements that were returned last; they are returned again."""
        self._held.put_first(elements)
        self.end -= elements.length

    def _read(self, n: int) -> Chunk | None:
        log = self._log
        count = max(n, self._step - self._step % n)  # whole batches, so that none is joined from two chunks
        if count > 1 and self._context.input_is_replayable:
            log.forget(log.position)
            log.step()
        log.go_on()
        chunk = log.pull(count)
        if chunk is not None:
            self._step = self._next_step(count, chunk)
        return chunk

    def _next_step(self, count: int, chunk: Chunk) -> int:
        if chunk.length < count and not self._is_steady:
            return 1
        in_bytes = self._bytes_max * chunk.length // max(1, chunk.nbytes)
        return min(2 * count, self._elements_max, in_bytes)

    def save(self) -> Position:
        log = self._log
        given = log.position - len(self._held)
        if self._held:
            is_known = self._context.input_is_replayable and log.mark_before(given) is not None
            position = self._merged(log.place(given)) if is_known else None
            if position is not None:
                return position
            for outcome in reversed(self._held.take_all()):
                self.source.outbox.put_first(outcome)
        position = self._merged(log.present())
        return self.source.save() if position is None else position

    def _merged(self, position: Position) -> Position | None:
        """Return a position of this operator as one of its input; None if the elements must be saved by value."""
        before, skipped = position.source, position.skipped
        if not skipped:
            return before
        if not isinstance(self.source, Divisible):
            return position
        if before.held or before.given:
            return None
        return self.source.with_given(before, [(before.at, 0, skipped)], before.at)

    def load(self, position: Position) -> None:
        if position.op == self.op:
            self._log.load(position)
        else:
            self.source.load(position)

    def advance(self, position: Position, count: int) -> Position | None:
        if position.op == self.op:
            return self.source.advance(position.source, position.skipped + count)
        return self.source.advance(position, count)

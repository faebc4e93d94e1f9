"""Bulk reading operator: pulls more than requested if a pull is expensive and reading ahead is unobservable.

One pull of an op that mixes a thousand datasets pulls from each of them, regardless of the requested count.
"""

from __future__ import annotations

from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import SpecGetter


class BulkOperator(UnaryOperator):
    """Operator that doubles the number of elements it pulls, up to a limit, and buffers the surplus.

    It never reads ahead more elements than it has returned. If the source returns fewer elements than requested, the
    count restarts small: an input of the source has ended, and the source may have to redo its work.

    A state is the position after the returned elements, found by the marks of a replay log. If the source cannot repeat
    its elements, nothing is read ahead.

    Args:
        source: the input, which calls no user code.
        context: says whether the source can repeat its elements.
        spec: the spec of the elements.
        elements_max: the maximum number of buffered elements.
        bytes_max: the maximum number of buffered bytes; a single element may be larger.
    """

    def __init__(
        self, source: Operator, context: ExecutionContext, spec: SpecGetter, *, elements_max: int, bytes_max: int
    ) -> None:
        super().__init__(source)
        self._context = context
        self._spec = spec
        self._elements_max = elements_max
        self._bytes_max = bytes_max
        self._log = ReplayLog(source)
        self._given = 0  # elements, as the replay log counts them
        self._held = OutcomeQueue()
        self._step = 1

    def pull(self, n: int) -> Chunk | None:
        try:
            if not self._held:
                chunk = self._read(n)
                if chunk is None:
                    return None
                self._held.put(chunk)
            given = self._held.give(n)
        except Exception:
            self._given += 1
            raise
        assert given is not None
        self._given += given.length
        return given

    def _read(self, n: int) -> Chunk | None:
        log = self._log
        count = max(n, self._step) if self._context.input_is_replayable else n
        if count > n:
            log.forget(self._given)
            log.step()
        if log.is_behind:
            log.go_on()
        chunk = log.pull(count)
        if chunk is not None:
            self._step = self._next_step(n, count, chunk)
        return chunk

    def _next_step(self, n: int, count: int, chunk: Chunk) -> int:
        if chunk.length < count:
            return 1
        in_bytes = self._bytes_max * chunk.length // max(1, chunk.nbytes)
        step = min(2 * count, self._elements_max, in_bytes)
        return step - step % n  # whole batches, so that none is assembled from two chunks

    def save(self) -> State:
        log = self._log
        if self._held and self._context.input_is_replayable and self._given >= log.given:
            return {**log.place(self._given), "held": []}
        behind = max(0, log.given - log.read)
        return {"source": self.source.save(), "behind": behind, "held": self._held.save()}

    def load(self, state: State) -> None:
        self._log.load(state)
        self._held.load(state["held"], self._spec)
        self._given = self._log.given - len(self._held)

"""Speculative pulls: computes more elements than requested if unobservable, to spread the fixed cost of a step."""

from __future__ import annotations

from dataset.errors import StateError
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.parallel.tasks import holds_elements

_AHEAD_ELEMENTS = 8192  # with this many elements, the fixed cost of a step is small
_AHEAD_BYTES = 256 * 1024  # stays in the processor's cache


def state_before(source: Operator, context: ExecutionContext) -> State | None:
    """Return the state of an op's input before more is read from it, if that is cheap."""
    if not context.input_is_replayable:
        return None
    try:
        return source.save()
    except StateError:  # an operator holds data that cannot be saved; save() reports it
        return None


class AheadOperator(UnaryOperator):
    """Operator that doubles the size of its pulls up to a limit, and holds what was not requested yet.

    Only for inputs that merely compute. The first few elements stay cheap. A state is a state of the input, either
    before the current chunk or after the elements given from it. So pipelines without this operator can load it, and
    vice versa. Held elements are added to the input's pending elements only if the input has such elements, or cannot
    repeat itself.

    Args:
        source: the input.
        context: knows whether the state of the input is cheap enough to be taken for each chunk.
    """

    source: ElementwiseOperator

    def __init__(self, source: ElementwiseOperator, context: ExecutionContext) -> None:
        super().__init__(source)
        self._context = context
        self._ready = source.outbox
        self._chunk: Chunk | None = None
        self._given = 0  # elements given from the chunk
        self._place = 0  # the position of the chunk's first element among all pulled elements
        self._before: State | None = None  # the state of the input before the chunk
        self._step = 1

    def pull(self, n: int) -> Chunk | None:
        chunk, start = self._chunk, self._given
        if chunk is None or start == chunk.length:
            self._forget()
            self._before = state_before(self.source, self._context)
            chunk, start = self.source.pull(max(n, self._step)), 0
            if chunk is None:
                return None
            self._step = self._next_step(n, chunk)
            self._chunk = chunk
        self._given = stop = min(start + n, chunk.length)
        if n == 1 and stop == chunk.length:  # nothing goes back into it; the consumer may become its only owner
            self._forget()
        return chunk.slice(start, stop)

    def _forget(self) -> None:
        """Drop the chunk, which was handed out or is held elsewhere."""
        self._place += self._given
        self._chunk, self._given = None, 0

    @property
    def lends(self) -> int:
        held = 0 if self._chunk is None else self._chunk.length - self._given
        return held or self._step

    def pulled(self) -> int:
        return self._place + self._given

    def go_back(self, place: int) -> None:
        self._given = place - self._place

    def _next_step(self, n: int, chunk: Chunk) -> int:
        in_cache = _AHEAD_BYTES * chunk.length // max(1, chunk.nbytes)
        step = min(2 * max(n, self._step), _AHEAD_ELEMENTS, in_cache)
        return step - step % n  # whole batches, so that no batch is joined from two parts

    def save(self) -> State:
        chunk, given = self._chunk, self._given
        if chunk is not None and given < chunk.length:
            state = self._state_behind(given)
            if state is not None:
                return state
            self._ready.put_first(chunk.slice(given, chunk.length))
            self._forget()
        return self.source.save()

    def _state_behind(self, given: int) -> State | None:
        """Return the state after ``given`` elements of the chunk; None if it must contain the chunk's elements."""
        before = self._before
        if before is None or holds_elements(before):
            return None
        run = before["position"], 0, given
        return self.source.advance(before, given) or self.source.with_given(before, [run], before["position"])

    def load(self, state: State) -> None:
        self.source.load(state)

    def advance(self, state: State, count: int) -> State | None:
        return self.source.advance(state, count)

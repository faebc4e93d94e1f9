"""Making more elements in one go than were asked for, where nobody can notice: the fixed cost of a step is shared."""

from __future__ import annotations

from dataset.errors import StateError
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.functions.calls import ElementwiseOperator
from dataset.runtime.parallel.tasks import holds_elements

_AHEAD_ELEMENTS = 8192  # beside so many, the fixed cost of a step is small
_AHEAD_BYTES = 256 * 1024  # stays in the processor's cache


def state_before(source: Operator, build: ExecutionContext) -> State | None:
    """Where the input of an op stands before more is read of it, if it says so cheaply; ``build`` is the op's."""
    if not build.repeats_input:
        return None
    try:
        return source.state_dict()
    except StateError:  # something below holds what is no plain data: who asks for a state will be told
        return None


class AheadOperator(UnaryOperator):
    """Asks for twice as many elements each time, up to a limit, and holds what is left over.

    For an input that only computes. A look at the first few elements stays cheap. A state is one of the input,
    before the chunk that is being given or behind what has been given of it. So it goes to pipelines that hold nothing,
    and back. Only where the input has elements ready, or cannot repeat itself, what is held is added to those.

    Args:
        source: the input.
        build: says whether the state of the input can be asked for each time.
    """

    source: ElementwiseOperator

    def __init__(self, source: ElementwiseOperator, build: ExecutionContext) -> None:
        super().__init__(source)
        self._build = build
        self._ready = source.ready
        self._chunk: Chunk | None = None
        self._given = 0  # elements of it
        self._place = 0  # where it begins, among all that were pulled
        self._before: State | None = None  # of the input, before that chunk
        self._step = 1

    def pull(self, n: int) -> Chunk | None:
        chunk, start = self._chunk, self._given
        if chunk is None or start == chunk.length:
            self._forget()
            self._before = state_before(self.source, self._build)
            chunk, start = self.source.pull(max(n, self._step)), 0
            if chunk is None:
                return None
            self._step = self._next_step(n, chunk)
            self._chunk = chunk
        self._given = stop = min(start + n, chunk.length)
        if n == 1 and stop == chunk.length:  # nobody goes back over it, and whoever has it may be the only one
            self._forget()
        return chunk.slice(start, stop)

    def _forget(self) -> None:
        """The chunk is given, or is held elsewhere."""
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
        return step - step % n  # whole batches, so that none has to be put together of two parts

    def seek(self, count: int) -> None:
        self.source.seek(count)

    def state_dict(self) -> State:
        chunk, given = self._chunk, self._given
        if chunk is not None and given < chunk.length:
            state = self._state_behind(given)
            if state is not None:
                return state
            self._ready.put_first(chunk.slice(given, chunk.length))
            self._forget()
        return self.source.state_dict()

    def _state_behind(self, given: int) -> State | None:
        """The state behind so many elements of the chunk; None where its elements have to be in it."""
        before = self._before
        if before is None or holds_elements(before):
            return None
        run = before["position"], 0, given
        return self.source.state_after(before, given) or self.source.with_given(before, [run], before["position"])

    def load_state_dict(self, state: State) -> None:
        self.source.load_state_dict(state)

    def state_after(self, state: State, count: int) -> State | None:
        return self.source.state_after(state, count)

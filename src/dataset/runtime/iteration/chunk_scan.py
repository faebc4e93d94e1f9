"""Chunk scan: one pass over all elements of a plan in chunks, for internal consumers such as writers.

It is observed and tuned like ``iter(dataset)``. It lacks what only users need: single elements, statistics, and
iterators shared by threads.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from dataset.errors import StateError
from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import open_plan
from dataset.runtime.metrics.profile import OpenObserver, PipelineProfile
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.state import resharding
from dataset.runtime.state.envelope import Envelope
from dataset.world.interrupts import Finalizer, guarded, install, uninstall


class ChunkScan:
    """The open operators of a plan, closed at the end of a ``with`` block.

    Args:
        plan: what to run, optimized.
        options: the options of the whole pipeline.
        open_observer: creates the observer that tunes the pass.
        state: the result of ``state_dict`` of an earlier pass, to continue from there.

    Raises:
        StateError: the state is not one of this pipeline in this process.
    """

    @guarded
    def __init__(
        self, plan: Node, options: Options, open_observer: OpenObserver, state: dict[str, Any] | None = None
    ) -> None:
        self._envelope = Envelope(plan)
        self._epochs = EpochLedger()
        if state is not None:
            state = self._envelope.open(state)
            if state["shares"] != resharding.shares(plan):
                raise StateError(f"the state is from {resharding.words(state['shares'])}; resume only its own pass")
            self._envelope.resume(state, self._epochs)
        Finalizer.alive.add(self)  # until __exit__
        install()
        self._profile = PipelineProfile(plan)
        self._profile.observe(open_observer(self._profile, options))
        self._coordinator, self._root = open_plan(plan, options, profile=self._profile, epochs=self._epochs)
        self._left = 0  # elements until the next look at the clock
        if state is not None:
            try:
                self._root.load(state["operator"])
            except BaseException as error:
                self.__exit__(None, None, None)
                if isinstance(error, StateError) or not isinstance(error, Exception):
                    raise
                raise StateError(f"the pipeline cannot restore the saved position: {error!r:.500}") from error

    @guarded
    def pull(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements, or None at the end. Raises the exception of a failed element."""
        if self._left <= 0:
            self._left = self._profile.look(self._left)
        chunk: Chunk | None = None
        try:
            chunk = self._root.pull(n)
        except Exception:
            self._coordinator.raise_failure()
            raise
        if chunk is None:
            self._coordinator.raise_failure()
        self._left -= 0 if chunk is None else chunk.length
        return chunk

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the elements that were pulled, as plain data."""
        return self._envelope.seal(self._root.save(), self._profile.elements_until(self._left), self._epochs)

    def __enter__(self) -> Self:
        return self

    @guarded
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._coordinator.shut_down(self._close, wait=True)
        finally:
            Finalizer.alive.discard(self)
            uninstall()

    def _close(self) -> None:
        self._root.close()
        self._profile.close()

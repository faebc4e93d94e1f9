"""Chunk scan: one pass over all elements of a plan in chunks, for internal consumers such as writers.

It is observed and tuned like ``iter(dataset)``. It lacks what only users need: single elements, statistics, and
iterators shared by threads.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import open_plan
from dataset.runtime.contract import State
from dataset.runtime.metrics.profile import OpenObserver, PipelineProfile
from dataset.runtime.resources.interrupts import Finalizer, guarded, install, uninstall


class ChunkScan:
    """The open operators of a plan, closed at the end of a ``with`` block.

    Args:
        plan: what to run, optimized.
        options: the options of the whole pipeline.
        open_observer: creates the observer that tunes the pass.
    """

    @guarded
    def __init__(self, plan: Node, options: Options, open_observer: OpenObserver) -> None:
        Finalizer.alive.add(self)  # until __exit__
        install()
        self._profile = PipelineProfile(plan)
        self._profile.observe(open_observer(self._profile, options))
        self._coordinator, self._root = open_plan(plan, options, profile=self._profile)
        self._left = 0  # elements until the next look at the clock

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

    def state_dict(self) -> State:
        """Return the position after the elements that were pulled, as plain data."""
        return self._root.save()

    def load_state_dict(self, state: State) -> None:
        """Continue at a position returned by ``state_dict``; only before the first pull."""
        self._root.load(state)

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

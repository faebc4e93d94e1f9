"""Lifecycle of an iterator: opens the operators of its plan, owns what is open, and closes it.

What is open is closed once: at the end of the data, by ``close``, when the iterator is dropped, or when it goes to
another position.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataset.errors import ClosedError
from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.context import ExecutionContext, Moved, Reader, open_plan, unmoved
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.profile import Observer, OpenObserver, PipelineProfile
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.resources.coordinator import Coordinator
from dataset.runtime.resources.garbage import ScheduledCollection
from dataset.world.interrupts import Finalizer, install

if TYPE_CHECKING:
    from dataset.runtime.iteration.live_source import LiveSource


@dataclass(frozen=True)
class OpenedPlan:
    """A plan that is open."""

    coordinator: Coordinator
    root: Operator
    context: ExecutionContext
    profile: PipelineProfile
    observer: Observer
    epochs: EpochLedger

    def close(self) -> None:
        """Close the operators and the profile; called by the coordinator after the threads have ended."""
        self.root.close()
        self.profile.close()


class Lifecycle:
    """What an iterator has opened."""

    _shown_by: tuple[LiveSource, ...] = ()

    def __init__(self, plan: Node, options: Options, open_observer: OpenObserver, reader: Reader | None) -> None:
        self._plan = plan
        self._options = options
        self._open_observer = open_observer
        self._reader = reader
        self._closed = False
        self._interruption: BaseException | None = None  # an exception raised in the middle of a step

    def _open(self, epochs: EpochLedger, moved: Moved = unmoved) -> OpenedPlan:
        profile = PipelineProfile(self._plan)
        if self._options.garbage_collection:
            profile.garbage = ScheduledCollection(self._options.garbage_collection)
        observer = self._open_observer(profile, self._options)
        profile.observe(observer)
        return self._open_with(profile, observer, epochs, moved)

    def _open_with(
        self, profile: PipelineProfile, observer: Observer, epochs: EpochLedger, moved: Moved = unmoved
    ) -> OpenedPlan:
        contexts: list[ExecutionContext] = []

        def read(context: ExecutionContext, plan: Node) -> Operator:
            contexts.append(context)
            return context(plan) if self._reader is None else self._reader(context, plan)

        coordinator, root = open_plan(
            self._plan, self._options, profile=profile, epochs=epochs, reader=read, moved=moved
        )
        return OpenedPlan(coordinator, root, contexts[0], profile, observer, epochs)

    def _own(self, opened: OpenedPlan) -> None:
        """Take ownership of the opened plan, and make sure that it is closed when the iterator is dropped."""
        self._coordinator, self._root = opened.coordinator, opened.root
        self._profile, self._observer = opened.profile, opened.observer
        self._epochs = opened.epochs
        self._finish = opened.close
        self._context = opened.context
        install()
        # Bound to what must be closed, not to self: otherwise self would never be dropped.
        self._finalizer = Finalizer(self, functools.partial(self._coordinator.shut_down, self._finish, wait=False))
        for source in self._shown_by:
            source.follow(self._profile, self._observer)

    def _let_go(self, *, wait: bool) -> None:
        if self._finalizer.detach():
            self._coordinator.shut_down(self._finish, wait=wait)
        elif wait:
            self._coordinator.join()

    def _check_usable(self) -> None:
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        if self._interruption is not None:
            raise ClosedError(
                f"this iterator was interrupted in the middle of a step by {self._interruption!r:.200} and may have "
                "lost elements: create a new iterator and load the last state saved before the interrupt"
            ) from self._interruption

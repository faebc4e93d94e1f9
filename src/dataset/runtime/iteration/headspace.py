"""Headspace: measures how fast the consumer's own loop would be if its elements cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from dataset.closing import Closing
from dataset.plan.checks import require_seconds
from dataset.plan.drawing.brief import brief_seconds
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.ownership import copied_component
from dataset.world import time

T_co = TypeVar("T_co", covariant=True)

_KEPT = 8  # elements that are replayed
_WARM_UP = 0.1  # the share of each half that is not counted: buffers fill or drain, and functions are compiled
_FIRST_SHARE = 0.5  # of the counted time: a longer first wait is mentioned
_STEPS_MIN = 3  # counted steps of each half, even if they take longer than the given time


class _Half:
    """Sums over the counted steps of one half of the measurement."""

    def __init__(self, began: float, seconds: float) -> None:
        self._counts_from, self._until = began + _WARM_UP * seconds, began + seconds
        self._begun = 0
        self.steps = 0
        self.waited = self.worked = self.first_waited = 0.0

    def add(self, requested: float, received: float, done: float) -> None:
        """Add a step: when its element was requested and received, and when the next one was requested."""
        if not self._begun:
            self.first_waited = received - requested
        elif requested >= self._counts_from:
            self.steps += 1
            self.waited += received - requested
            self.worked += done - received
        self._begun += 1

    def has_ended(self, now: float) -> bool:
        return now >= self._until and self.steps >= _STEPS_MIN


class Headspace(Closing, Iterator[T_co], Generic[T_co]):
    """A measurement of the consumer's loop, as returned by ``iterator.headspace()``. It prints as one sentence."""

    def __init__(self, source: Iterator[T_co], seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        require_seconds("headspace", seconds)
        self._source = source
        self._half_seconds = seconds / 2
        self._clock = clock
        self._kept: list[T_co] = []
        self._replayed = 0
        self._real = self._free = self._half = _Half(0.0, 0.0)
        self._step: tuple[float, float] | None = None  # when the element of the current step was requested and received
        self._began = self._closed = False

    def __iter__(self) -> Headspace[T_co]:
        return self

    def __next__(self) -> T_co:
        now = self._clock()
        if self._closed:
            raise StopIteration
        if not self._began:
            self._began = True
            self._real = self._half = _Half(now, self._half_seconds)
        self._end_step(now)
        if self._half is self._real and not self._half.has_ended(now):
            try:
                element = next(self._source)
            except StopIteration:
                self._begin_replay()
            else:
                self._step = now, self._clock()
                if len(self._kept) < _KEPT:
                    self._kept.append(_copy(element))
                return element
        elif self._half is self._real:
            self._begin_replay()
        if self._half.has_ended(now) or not self._kept:
            self.close()
            raise StopIteration
        element = _copy(self._kept[self._replayed % len(self._kept)])
        self._replayed += 1
        received = self._clock()
        self._step = received, received  # the copy is not part of the step
        return element

    def _begin_replay(self) -> None:
        self._free = self._half = _Half(self._clock(), self._half_seconds)

    def _end_step(self, now: float) -> None:
        if self._step is not None:
            self._half.add(*self._step, now)
            self._step = None

    def close(self) -> None:
        """End the measurement and release the kept elements. The iterator stays open."""
        self._closed, self._step = True, None
        self._kept.clear()

    @property
    def steps_per_second(self) -> float | None:
        """The rate of the loop with the pipeline; None if too few steps were measured."""
        return _rate(self._real)

    @property
    def free_steps_per_second(self) -> float | None:
        """The rate of the loop with elements that cost nothing; None if too few steps were measured."""
        return _rate(self._free)

    @property
    def waiting(self) -> float | None:
        """The share of the time that the loop waited for elements of the pipeline; None if it is unknown."""
        seconds = self._real.waited + self._real.worked
        return self._real.waited / seconds if seconds else None

    @property
    def lost(self) -> float | None:
        """The share of the time that the loop loses because of the pipeline; None if it is unknown.

        It loses time in waits, and in steps that are slower because the pipeline uses the same cores.
        """
        real, free = self.steps_per_second, self.free_steps_per_second
        return None if real is None or free is None else max(0.0, 1 - real / free)

    def __repr__(self) -> str:
        real, free, waiting, lost = self.steps_per_second, self.free_steps_per_second, self.waiting, self.lost
        if real is None or free is None or waiting is None or lost is None:
            return "headspace: too few steps were measured"
        waits = min(waiting, lost)
        return (
            f"{real:.3g} steps/s with this pipeline, {free:.3g} steps/s with elements that cost nothing: "
            f"{lost:.0%} of the time is lost, {waits:.0%} in waits for elements, {lost - waits:.0%} in slower steps"
            f"{self._first_wait()}"
        )

    def _first_wait(self) -> str:
        """Return a remark if the first wait, which is not counted, was long, such as with a large shuffle buffer."""
        first, counted = self._real.first_waited, self._real.waited + self._real.worked
        long = first > _FIRST_SHARE * counted
        return f"; the wait for the first element, {brief_seconds(first)}, is not counted" if long else ""


def _rate(half: _Half) -> float | None:
    seconds = half.waited + half.worked
    return half.steps / seconds if seconds > 0 else None


def _copy(element: Any) -> Any:
    """Return the element with its own memory for everything that the consumer may change."""
    structure = structure_of(element)
    return structure.unflatten(list(map(_copy_component, structure.flatten(element))))


def _copy_component(component: Any) -> Any:
    if isinstance(component, np.ndarray) and not component.flags.writeable:
        return component
    clone = getattr(component, "clone", None)  # a tensor of PyTorch
    return clone() if callable(clone) else copied_component(component)

"""Step times: how long each function of a fused operator takes, from samples."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dataset.world import time

_FIRST, _EVERY = 64, 256  # of the first pulls, those whose number is a power of two are measured; later one of many


class StepTimes:
    """Sums of the time that each step of a fused operator takes in a sample of its pulls.

    Several threads may measure at once. A sum may then lose a sample, which does not matter.

    Attributes:
        seconds: for each step, in the order of the calls.
    """

    def __init__(self, steps: int) -> None:
        self.seconds = [0.0] * steps
        self._pulls = itertools.count()

    def begin_pull(self) -> bool:
        """Count a pull, and return whether to measure it."""
        number = next(self._pulls)
        return not number % _EVERY if number > _FIRST else number & (number - 1) == 0 and number > 0

    @contextlib.contextmanager
    def measured(self, steps: Sequence[Any]) -> Iterator[None]:
        """Measure the calls of the functions of these operators in the current thread, the only one that uses them."""
        running: set[int] = set()
        for index, step in enumerate(steps):
            measure = partial(self._measure, index, running)
            step.run, step.pass_on = partial(measure, step.run), partial(measure, step.pass_on)
        try:
            yield
        finally:
            for step in steps:
                del step.run, step.pass_on

    def _measure(self, index: int, running: set[int], call: Callable[..., Any], *given: Any) -> Any:
        if index in running:  # a step that writes into a batch calls itself for parts of its input
            return call(*given)
        running.add(index)
        started = time.perf_counter()
        try:
            return call(*given)
        finally:
            self.seconds[index] += time.perf_counter() - started
            running.discard(index)

"""Histogram of the consumer's waits: how long each step waited for its element, over all of the time and by period.

Not every step of a fast loop is measured. A measured step represents the steps until the next measured one, so the
percentiles are those of all steps.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

_PERIODS_MAX = 64
_BUCKETS_PER_OCTAVE = 8  # so a percentile is exact to 6%


@dataclass(frozen=True)
class WaitPercentiles:
    """Percentiles of the time that a step of the consumer waits for its element, in seconds.

    If elements are produced quickly, only some of the steps are measured.

    Attributes:
        p50, p95, p99: the wait that 50%, 95% and 99% of the steps do not exceed, exact to about 6%.
        by_period: for consecutive periods the time of their end, and the three percentiles in them. The time is in
            seconds since the first element was requested. At most 64 periods; they become longer as time passes.
    """

    p50: float
    p95: float
    p99: float
    by_period: tuple[tuple[float, float, float, float], ...] = ()


class _Period(NamedTuple):
    """The waits in a period of time."""

    until: float
    steps: Counter[int]  # by bucket


class StepWaits:
    """Distribution of waits. If there are too many periods, they become twice as long.

    Added to by one thread at a time, and read by any.
    """

    __slots__ = ("_periods", "_width")

    def __init__(self) -> None:
        self._width = 1.0
        self._periods: list[_Period] = []

    def add(self, steps: int, began: float, ended: float) -> None:
        """Add the wait from ``began`` to ``ended``, both in the same clock, which represents ``steps`` steps."""
        if not self._periods or ended >= self._periods[-1].until:
            self._begin_period(ended)
        self._periods[-1].steps[_bucket(ended - began)] += steps

    def _begin_period(self, now: float) -> None:
        if len(self._periods) >= _PERIODS_MAX:
            self._width *= 2
            pairs = zip(self._periods[::2], self._periods[1::2], strict=True)
            self._periods = [_Period(second.until, first.steps + second.steps) for first, second in pairs]
        self._periods.append(_Period(now + self._width, Counter()))

    def percentiles(self, began: float, now: float) -> WaitPercentiles | None:
        """Return the percentiles over all of the time and of each period, whose end is relative to ``began``."""
        periods = [(min(period.until, now), period.steps.copy()) for period in tuple(self._periods)]
        if not periods:
            return None
        overall = sum((steps for _, steps in periods), Counter[int]())
        by_period = tuple((until - began, *_quantiles(steps)) for until, steps in periods)
        return WaitPercentiles(*_quantiles(overall), by_period=by_period)


def _bucket(seconds: float) -> int:
    mantissa, exponent = math.frexp(max(seconds, 1e-9))  # the mantissa is at least 0.5 and below 1
    return exponent * _BUCKETS_PER_OCTAVE + int((mantissa * 2 - 1) * _BUCKETS_PER_OCTAVE)


def _middle(bucket: int) -> float:
    exponent, part = divmod(bucket, _BUCKETS_PER_OCTAVE)
    return math.ldexp((1 + (part + 0.5) / _BUCKETS_PER_OCTAVE) / 2, exponent)


def _quantiles(steps: Counter[int]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile in seconds."""
    total, below = steps.total(), 0
    wanted, found = [0.5 * total, 0.95 * total, 0.99 * total], list[float]()
    for bucket, count in sorted(steps.items()):
        below += count
        while len(found) < len(wanted) and below >= wanted[len(found)]:
            found.append(_middle(bucket))
    p50, p95, p99 = found
    return p50, p95, p99

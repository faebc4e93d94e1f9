"""Ramp: finds how many calls or requests at a time are useful.

It is used by stages whose function waits (runtime/parallel/controller.py) and by remote files
(io/files/remote/ranges_ahead.py).
"""

from __future__ import annotations

GAIN = 1.07
"""A factor that tells two rates apart: medians of three pairs of segments vary by about 5%."""

NEEDED = 0.1
"""A consumer that waits for less than this share of the time needs no more at a time."""

_RAMP_GAIN = 1.15
_MISSES = 2


class Ramp:
    """A number that is doubled as long as that raises a rate that the consumer waits for.

    Attributes:
        value: the number to use now.

    Example:
        >>> ramp = Ramp(1, maximum=64)
        >>> while ramp.report(rate=min(ramp.value, 9), waited=1.0):
        ...     pass
        >>> ramp.value
        16
    """

    def __init__(self, value: int, maximum: int) -> None:
        self.value = min(value, maximum)
        self._maximum = maximum
        self._rates: dict[int, float] = {}
        self._misses = 0

    def report(self, rate: float, waited: float) -> bool:
        """Note the rate with the current number; return False if the number is final.

        Args:
            rate: elements or bytes per second.
            waited: the share of the time for which the consumer has waited for them.
        """
        best = max(self._rates.values(), default=0.0)
        self._rates[self.value] = rate
        self._misses = 0 if rate > _RAMP_GAIN * best else self._misses + 1
        if self._misses < _MISSES and waited >= NEEDED:
            self.value = min(2 * self.value, self._maximum)
            return True
        # The smallest number whose rate was about the best.
        self.value = min(value for value, rate in self._rates.items() if rate * GAIN >= max(self._rates.values()))
        return False

    @property
    def gained(self) -> float:
        """How many times as high the rate is with the current number as with the first one."""
        first = next(iter(self._rates.values()), 0.0)
        return self._rates[self.value] / first if first else 1.0

"""Ramp: finds the number of calls or requests at a time, beyond which more do not raise the rate.

Arithmetic only, for what runs (runtime/choice.py) and for remote files (io/files/remote/ranges_ahead.py).
"""

from __future__ import annotations

GAIN = 1.07
"""A factor that tells two rates apart: medians of three pairs of segments vary by about 5%."""

_RAMP_GAIN = 1.15
_MISSES = 2


class Ramp:
    """A number that is doubled as long as that raises a rate.

    Attributes:
        value: the number to use now.

    Example:
        >>> ramp = Ramp(1, maximum=64)
        >>> while ramp.report(rate=min(ramp.value, 9)):
        ...     pass
        >>> ramp.value
        16
    """

    def __init__(self, value: int, maximum: int) -> None:
        self.value = min(value, maximum)
        self._maximum = maximum
        self._rates: dict[int, float] = {}
        self._misses = 0

    def report(self, rate: float) -> bool:
        """Note the rate with the current number; return False if the number is final."""
        best = max(self._rates.values(), default=0.0)
        self._rates[self.value] = rate
        self._misses = 0 if rate > _RAMP_GAIN * best else self._misses + 1
        if self._misses < _MISSES:
            self.value = min(2 * self.value, self._maximum)
            return True
        return self.stop()

    def stop(self) -> bool:
        """Return to the smallest number whose rate was about the best; return False."""
        self.value = min(value for value, rate in self._rates.items() if rate * GAIN >= max(self._rates.values()))
        return False

    @property
    def gained(self) -> float:
        """How many times as high the rate is with the current number as with the first one."""
        first = next(iter(self._rates.values()), 0.0)
        return self._rates[self.value] / first if first else 1.0

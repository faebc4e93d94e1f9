"""Queues between a producer and who takes from it: how long is waited, and how large the buffer must be. Formulas only.

The wait is that in a queue of type M/M/1/K, as in Murray et al., "tf.data: A Machine Learning Data Processing
Framework", VLDB 2021, section 4.3, made to fit times that vary less, or more, than exponentially. All times are in
seconds.
"""

from __future__ import annotations

import math

BUFFER_MAX = 1 << 16
"""No more is ever said to be needed."""

_TEMPER = 0.6  # fitted to lognormal times


def parallelism_needed(wall_seconds: float, period: float) -> int:
    """How many workers make an element each ``period``: as many as are at work on average (Little's law), rounded up.

    Example:
        >>> parallelism_needed(wall_seconds=10e-3, period=2e-3)
        5
    """
    if period <= 0:
        raise ValueError(f"parallelism_needed: period must be above 0 seconds, got {period}")
    return max(1, math.ceil(wall_seconds / period * (1 - 1e-9)))


def wait_seconds(x: float, y: float, n: float, variation: float = 1.0) -> float:
    """Return how long who takes elements waits for each, on average.

    Args:
        x: what it takes itself per element.
        y: what the producer takes per element.
        n: elements that the buffer holds, the one in the making included. 0: the producer works only while it waits.
        variation: the mean of the squared coefficients of variation of both times.

    Example:
        Exponential times (the published formula), and constant ones.

        >>> wait_seconds(1.0, 1.0, 4)
        0.2
        >>> wait_seconds(2.0, 3.0, 1, variation=0)
        1.0
    """
    if y <= 0:
        return 0.0
    if n < 1:  # at most this part of the making goes on meanwhile
        least = max(y - x, y * (1 - n))
        return max(least, y * _empty(x / y, n * worth(1, variation)))
    return max(y - x, y * _empty(x / y, worth(n, variation)))


def _empty(load: float, n: float) -> float:
    """Return the probability of an empty buffer: (1 - load) / (1 - load ** (n + 1)), whatever the load."""
    if load <= 0:
        return 1.0
    if math.isinf(n):
        return max(0.0, 1 - load)
    log = math.log(load)
    if abs(log) * (n + 1) < 1e-9:
        return 1 / (n + 1)
    if log < 0:
        return math.expm1(log) / math.expm1((n + 1) * log)
    return math.exp(-n * log) * math.expm1(-log) / math.expm1(-(n + 1) * log)


def worth(n: float, variation: float) -> float:
    """How large a buffer for exponential times would have to be to be worth the same as ``n``, at least 1, for these.

    A long buffer is worth as much more as the times vary less: what matters is how it compares with the variance of
    what comes and goes. A buffer of 1 makes a pair take the longer of two times, which for times that vary little is
    longer than their mean by the standard deviation over the root of pi. The formula keeps both, and n for exponential
    times.
    """
    if variation <= 0:
        return math.inf
    return max(0.0, (n - 1) / variation + 1.773 / math.sqrt(variation) - 0.773)


def tempered(variation: float) -> float:
    """Return a squared coefficient of variation as it counts: heavy tails do less harm than their variance says."""
    return variation if variation <= 1 else variation**_TEMPER


def buffer_needed(x: float, y: float, variation_x: float, variation_y: float, share: float) -> int:
    """The smallest buffer with which who takes elements waits less than ``share`` of its own time, at most BUFFER_MAX.

    Where the producer takes longer, no buffer helps against the difference. Then it is the smallest with which
    the elements come within ``share`` of as quickly as the producer makes them.

    Args:
        x: what it takes itself per element.
        y: what the producer takes per element.
        variation_x: squared coefficient of variation of ``x``.
        variation_y: and of ``y``.
        share: of the longer of the two.

    Example:
        >>> buffer_needed(x=1, y=0.5, variation_x=0, variation_y=0, share=0.01)
        1
        >>> buffer_needed(x=1, y=0.5, variation_x=1, variation_y=1, share=0.01)
        5
        >>> buffer_needed(x=1, y=0.9, variation_x=1, variation_y=4, share=0.01)
        36
    """
    variation = (tempered(variation_x) + tempered(variation_y)) / 2
    bound = max(0.0, y - x) + share * max(x, y)

    def is_enough(n: int) -> bool:
        return wait_seconds(x, y, n, variation) <= bound

    high = 1
    while high < BUFFER_MAX and not is_enough(high):
        high *= 2
    low = high // 2  # is not enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high

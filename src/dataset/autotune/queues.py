"""Queueing formulas: the wait between a producer and a consumer, and the buffer size that they need.

The wait is that of an M/M/1/K queue, as in Murray et al., "tf.data: A Machine Learning Data Processing Framework", VLDB
2021, section 4.3, adapted to times that vary less or more than exponential ones. All times are in seconds.
"""

from __future__ import annotations

import math

BUFFER_MAX = 1 << 16
"""Maximum buffer size that ``buffer_needed`` returns."""

_TEMPER = 0.6  # fitted to lognormal times


def wait_seconds(x: float, y: float, n: float, variation: float = 1.0) -> float:
    """Return how long the consumer waits for each element, on average.

    Args:
        x: the consumer's own time per element.
        y: the producer's time per element.
        n: the buffer size, including the element in production. 0: the producer works only while the consumer waits.
        variation: the mean of the squared coefficients of variation of both times.

    Example:
        Exponential times (the published formula) and constant times.

        >>> wait_seconds(1.0, 1.0, 4)
        0.2
        >>> wait_seconds(2.0, 3.0, 1, variation=0)
        1.0
    """
    if y <= 0:
        return 0.0
    if n < 1:  # at most this share of the production overlaps with the consumer's work
        least = max(y - x, y * (1 - n))
        return max(least, y * _empty(x / y, n * worth(1, variation)))
    return max(y - x, y * _empty(x / y, worth(n, variation)))


def _empty(load: float, n: float) -> float:
    """Return the probability of an empty buffer, (1 - load) / (1 - load ** (n + 1)), for any load."""
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
    """Return the size of a buffer for exponential times that is equivalent to ``n``, at least 1, for this variation.

    The value of a long buffer is inversely proportional to the variation, because its size matters relative to the
    variance of arrivals and departures. With a buffer of 1, each pair takes the longer of two times. For times that
    vary little, it exceeds their mean by the standard deviation divided by the square root of pi. The formula satisfies
    both limits, and returns n for exponential times.
    """
    if variation <= 0:
        return math.inf
    return max(0.0, (n - 1) / variation + 1.773 / math.sqrt(variation) - 0.773)


def tempered(variation: float) -> float:
    """Return the effective squared coefficient of variation: heavy tails do less harm than their variance suggests."""
    return variation if variation <= 1 else variation**_TEMPER


def buffer_needed(x: float, y: float, variation_x: float, variation_y: float, share: float) -> int:
    """Return the smallest buffer with which the consumer waits less than ``share`` of its time, at most BUFFER_MAX.

    If the producer is slower, no buffer can hide the difference. Then it is the smallest buffer with which elements
    arrive at the producer's rate, within ``share``.

    Args:
        x: the consumer's own time per element.
        y: the producer's time per element.
        variation_x: the squared coefficient of variation of ``x``.
        variation_y: the squared coefficient of variation of ``y``.
        share: the acceptable wait, relative to the longer of the two times.

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
    low = high // 2  # not enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high

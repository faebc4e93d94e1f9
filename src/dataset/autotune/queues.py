"""Queueing formula: the size of a buffer between a producer and a consumer."""

from __future__ import annotations

import math


def buffer_needed(x: float, y: float, variation: float, share: float) -> int:
    """Return the smallest buffer with which the consumer waits less than ``share`` of its time.

    If the producer is slower, no buffer can hide the difference. Then it is the smallest buffer with which elements
    arrive at the producer's rate, within ``share``.

    For exponential times, the buffer of ``n`` elements is empty with the probability ``(1 - load) / (1 - load ** (n +
    1))``, where ``load`` is x / y. That is an M/M/1/K queue, as in Murray et al., "tf.data: A Machine Learning Data
    Processing Framework", VLDB 2021, section 4.3. For other times, the size is proportional to the variation, because
    it matters relative to the variance of arrivals and departures. With a buffer of 1, each pair takes the longer of
    two times; for times that vary little, it exceeds their mean by the standard deviation divided by the square root
    of pi. The formula satisfies both limits.

    Args:
        x: the consumer's own time per element.
        y: the producer's time per element.
        variation: the squared coefficient of variation of both times.
        share: the acceptable wait, relative to the longer of the two times.

    Example:
        >>> buffer_needed(x=1, y=0.5, variation=0, share=0.01)
        1
        >>> buffer_needed(x=1, y=0.5, variation=1, share=0.01)
        5
        >>> buffer_needed(x=1, y=0.9, variation=4, share=0.01)
        51
    """
    empty = (max(0.0, y - x) + share * max(x, y)) / y if y > 0 else 1.0  # the probability that is acceptable
    if empty >= 1:
        return 1
    gap = 1 - x / y
    exponential = (math.log1p(-gap / empty) / math.log1p(-gap) if gap else 1 / empty) - 1
    if variation > 1:
        variation **= 0.6  # heavy tails do less harm than their variance suggests; fitted to lognormal times
    return max(1, math.ceil(1 + variation * (exponential + 0.773) - 1.773 * math.sqrt(variation)))

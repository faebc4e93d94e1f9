"""Quota selector: deterministic choices. At any time, each input's count is within one element of its exact share.

This is the quota method (M. L. Balinski and H. P. Young, The Quota Method of Apportionment, American Mathematical
Monthly 82, 1975). Among the inputs whose count may grow without exceeding the upper quota, ceil(n * w_i), the next is
the one with the largest w_i / (count_i + 1). That also keeps every count at or above the lower quota. All arithmetic
uses integers, so rounding errors cannot break it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dataset.ops.mix.selector import SELECTOR, Choices, Selector
from dataset.runtime.position import Position

_TABLE_MAX = 1024  # up to this period, choices are precomputed and repeated


class QuotaSelector(Selector):
    """Selector by counts. Its period is the sum of the integer weights: after a period, every count is exact."""

    def __init__(self, weights: Sequence[float]) -> None:
        # Weights are decimal: 0.7 is 7/10, not the nearest binary number, so that 0.7 and 0.3 have a period of ten.
        self._exact = [Fraction(repr(weight)) for weight in weights]
        self._live = list(range(len(weights)))
        self._begin()

    def _begin(self) -> None:
        self.weights = _whole([self._exact[index] for index in self._live])
        self.total = sum(self.weights)
        self.counts = [0] * len(self.weights)
        self.made = 0
        period = self._make(self.total) if self.total <= _TABLE_MAX else []
        self._table = np.array(period, np.int64)

    def draw(self, n: int) -> Choices:
        if not len(self._table):
            return np.array(self._make(n), np.int64)
        places = (self.made + np.arange(n)) % self.total
        self.made = (self.made + n) % self.total
        return self._table[places]

    def _make(self, n: int) -> list[int]:
        """Compute the next choices, one by one."""
        weights, counts, total = self.weights, self.counts, self.total
        inputs = range(len(weights))
        choices = []
        for _ in range(n):
            step = self.made + 1
            best = -1
            for i in inputs:
                # If count < step * w, count + 1 is within the upper quota. Of these, the largest w / (count + 1) wins.
                if counts[i] * total < step * weights[i] and (
                    best < 0 or weights[i] * (counts[best] + 1) > weights[best] * (counts[i] + 1)
                ):
                    best = i
            choices.append(self._live[best])
            counts[best] += 1
            self.made = step
            if step == total:
                self.made = 0
                counts[:] = [0] * len(counts)
        return choices

    def leave_out(self, index: int, unused: int) -> bool:  # noqa: ARG002  # counting restarts
        self._live.remove(index)
        self._begin()
        return True

    def live(self) -> list[int]:
        return self._live

    def position_before(self, unused: int) -> Position | None:
        if not len(self._table):
            return None  # earlier counts cannot be derived from the current ones
        return self.save().having(at=(self.made - unused) % self.total)

    def save(self) -> Position:
        return Position(SELECTOR, self.made, own={"live": list(self._live), "counts": list(self.counts)})

    def load(self, position: Position) -> None:
        self._live = [int(index) for index in position.own["live"]]
        self._begin()
        self.made = position.at
        self.counts = [int(count) for count in position.own["counts"]]


def _whole(weights: Sequence[Fraction]) -> list[int]:
    """Return the smallest integers with the same proportions."""
    denominator = math.lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * denominator) for weight in weights]
    common = math.gcd(*whole)
    return [weight // common for weight in whole]

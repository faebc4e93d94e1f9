"""Shares without chance: which input is next, so that at every moment each has had its share to within one element.

The quota method (M. L. Balinski and H. P. Young, The Quota Method of Apportionment, American Mathematical Monthly 82,
1975). Among the inputs whose count may grow without exceeding the upper quota, ceil(n * w_i), the next is the one with
the largest w_i / (count_i + 1). That keeps every count at or above the lower quota, too. All in integers, so that no
rounding breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dataset.ops.mix.selector import Choices, Selector
from dataset.runtime.contract import State

_TABLE_MAX = 1024  # choices that are made once and then repeated; more are made one by one


class QuotaSelector(Selector):
    """Counts; after as many choices as the integer weights add up to, every count is exact and all begins again."""

    def __init__(self, weights: Sequence[float]) -> None:
        # Read as they are written: 0.7 is 7/10, not the binary number next to it, so that 0.7 and 0.3 repeat after ten.
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
        """The next choices, one by one."""
        weights, counts, total = self.weights, self.counts, self.total
        inputs = range(len(weights))
        choices = []
        for _ in range(n):
            step = self.made + 1
            best = -1
            for i in inputs:
                # count < step * w, so that count + 1 stays within the upper quota; then the larger w / (count + 1)
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

    def leave_out(self, index: int, unused: int) -> bool:  # noqa: ARG002  # the counts begin again
        self._live.remove(index)
        self._begin()
        return True

    def live(self) -> list[int]:
        return self._live

    def state_before(self, unused: int) -> State | None:
        if not len(self._table):
            return None  # the counts tell nothing of how they came to be
        return {**self.state_dict(), "made": (self.made - unused) % self.total}

    def state_dict(self) -> State:
        return {"live": list(self._live), "made": self.made, "counts": list(self.counts)}

    def load_state_dict(self, state: State) -> None:
        self._live = [int(index) for index in state["live"]]
        self._begin()
        self.made = int(state["made"])
        self.counts = [int(count) for count in state["counts"]]


def _whole(weights: Sequence[Fraction]) -> list[int]:
    """The smallest integers with the same proportions."""
    denominator = math.lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * denominator) for weight in weights]
    common = math.gcd(*whole)
    return [weight // common for weight in whole]

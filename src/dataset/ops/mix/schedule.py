"""Weight schedule: weights of the inputs of a mix that depend on the number of the element."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.checks import require_int, require_one_of

Weights = npt.NDArray[np.float64]

INTERPOLATIONS = ("step", "linear")


@dataclass(frozen=True)
class WeightSchedule:
    """Weights at some element numbers, or a function of the number.

    Attributes:
        numbers: ascending element numbers, beginning with 0; empty if there is a function.
        weights: the weights from each of these numbers on.
        interpolation: "step", or "linear" for weights that change from one number to the next.
        function: takes an element number, returns the weights.
    """

    numbers: tuple[int, ...] = ()
    weights: tuple[tuple[float, ...], ...] = ()
    interpolation: str = "step"
    function: Callable[[int], Any] | None = None

    def at(self, numbers: npt.NDArray[np.int64], count: int) -> Weights:
        """Return the weights of ``count`` inputs for elements with these numbers, a row for each.

        Raises:
            ValueError: if the function returns anything but weights.
        """
        if self.function is not None:
            return np.array([self._called(self.function, number, count) for number in numbers.tolist()])
        table = np.array(self.weights, np.float64)
        if self.interpolation == "step":
            return table[np.searchsorted(self.numbers, numbers, side="right") - 1]
        return np.stack([np.interp(numbers, self.numbers, column) for column in table.T], axis=1)

    def first_change(self, other: WeightSchedule, number: int, count: int) -> int | None:
        """Return the first element from ``number`` on whose share of an input differs in another schedule, if any.

        Between breakpoints, the condition that two shares are equal is a quadratic equation of the number. So if they
        differ there, they differ at one of the first three.
        """
        starts = {number, *(start for start in (*self.numbers, *other.numbers) if start > number)}
        candidates = np.array(sorted({start + i for start in starts for i in range(3)}))
        mine, others = self.at(candidates, count), other.at(candidates, count)
        mine, others = mine / mine.sum(axis=1, keepdims=True), others / others.sum(axis=1, keepdims=True)
        is_changed = ~np.isclose(mine, others, rtol=1e-9, atol=1e-12).all(axis=1)
        return int(candidates[is_changed.argmax()]) if is_changed.any() else None

    def _called(self, function: Callable[[int], Any], number: int, count: int) -> Weights:
        found = np.asarray(function(number), np.float64)
        if found.shape != (count,) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
            raise ValueError(
                f"the weights of element {number:,} must be {count} finite numbers that are at least 0 and not all 0, "
                f"got {found.tolist()}"
            )
        return found


def is_schedule(weights: Any) -> bool:
    """Return whether the user's weights are breakpoints: pairs of a number and weights."""
    return (
        isinstance(weights, list | tuple)
        and len(weights) > 0
        and all(isinstance(pair, list | tuple) and len(pair) == 2 and np.ndim(pair[1]) == 1 for pair in weights)
    )


def schedule_of(
    op: str, points: Sequence[Any], interpolation: Any, weights_of: Callable[[Any], tuple[float, ...]]
) -> WeightSchedule:
    """Return the schedule of the user's breakpoints.

    Args:
        op: the name of the op.
        points: pairs of an element number and weights.
        interpolation: the user's argument.
        weights_of: checks the weights of one pair.

    Raises:
        ValueError: if the numbers do not ascend from 0, or all weights of a pair are 0.
    """
    require_one_of(op, "interpolation", interpolation, INTERPOLATIONS)
    numbers = tuple(require_int(op, f"weights[{i}][0]", number, minimum=0) for i, (number, _) in enumerate(points))
    if numbers[0] != 0 or any(later <= earlier for earlier, later in itertools.pairwise(numbers)):
        raise ValueError(f"{op}(): the element numbers of weights must ascend from 0, got {list(numbers)}")
    weights = tuple(weights_of(values) for _, values in points)
    for number, values in zip(numbers, weights, strict=True):
        if not any(values):
            raise ValueError(f"{op}(): the weights from element {number:,} on are all 0")
    return WeightSchedule(numbers, weights, interpolation)

"""Predicates of filter and take_while: checks that they return a Python or NumPy bool, or a column of bools."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.node import Node

BOOLEANS = frozenset({bool, np.bool_})


def boolean(result: Any, node: Node) -> bool:
    """Return the result of ``node``'s predicate as a bool.

    Raises:
        SpecError: if it is not a bool; numbers are not accepted.
    """
    value = np.asarray(result)
    if value.dtype != np.bool_ or value.ndim:
        raise SpecError(
            f"{node.label()}: the predicate must return a bool, got {result!r} of type {type(result).__name__}"
        )
    return bool(value)


def boolean_column(result: Any, length: int, node: Node) -> npt.NDArray[np.bool_]:
    """Return the result of ``node``'s vectorized predicate for ``length`` elements.

    Raises:
        SpecError: if it is not one bool for each element.
    """
    mask = np.asarray(result)
    if mask.dtype != np.bool_ or mask.shape != (length,):
        raise SpecError(
            f"{node.label()}: a vectorized predicate must return {length} bools, one for each element, got "
            f"dtype {mask.dtype} and shape {mask.shape}"
        )
    return mask

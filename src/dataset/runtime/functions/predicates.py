"""What a predicate returns: one bool, of Python or NumPy; for a vectorized one a column of them. filter, take_while."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.node import Node

BOOLEANS = frozenset({bool, np.bool_})


def boolean(result: Any, node: Node) -> bool:
    """What the predicate of ``node`` returned, as a bool.

    Raises:
        SpecError: if it is none; a number is not.
    """
    value = np.asarray(result)
    if value.dtype != np.bool_ or value.ndim:
        raise SpecError(
            f"{node.described()}: the predicate must return a bool, got {result!r} of type {type(result).__name__}"
        )
    return bool(value)


def boolean_column(result: Any, length: int, node: Node) -> npt.NDArray[np.bool_]:
    """What the vectorized predicate of ``node`` returned for ``length`` elements.

    Raises:
        SpecError: if it is not a bool for each.
    """
    mask = np.asarray(result)
    if mask.dtype != np.bool_ or mask.shape != (length,):
        raise SpecError(
            f"{node.described()}: a vectorized predicate must return {length} bools, one for each element, got "
            f"dtype {mask.dtype} and shape {mask.shape}"
        )
    return mask

"""Base class of the families of methods, and the type variables that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Never, TypeAlias, TypeVar

import numpy as np

from dataset import deferred
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node

if TYPE_CHECKING:
    from dataset.optimize.driver import Optimized

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
R = TypeVar("R")
A = TypeVar("A", bound=np.generic)
Unknown: TypeAlias = "tuple[Never, ...]"
"""Only Any and ``tuple[Any, ...]`` match it: overloads for it come first, and later ones know the element."""


class DatasetMethods(Generic[T_co]):
    """What a family of methods knows of Dataset: the plan.

    An overload for some types of elements annotates ``self`` with its family, such as ``BatchingMethods[Scalar]``: type
    checkers accept no subclass there.
    """

    _plan: Node

    @lazy_property
    def _optimized(self) -> Optimized:
        return deferred.optimize(self._plan)

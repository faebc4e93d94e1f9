"""Base class of the families of methods, and the type variables that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Never, ParamSpec, TypeAlias, TypeVar

import numpy as np

from dataset import deferred
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node

if TYPE_CHECKING:
    from dataset.dataset import Dataset  # at run time, dataset.py sets it
    from dataset.optimize.driver import Optimized

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
R = TypeVar("R")
P = ParamSpec("P")
A = TypeVar("A", bound=np.generic)
Unknown: TypeAlias = "tuple[Never, ...]"
"""Only Any and ``tuple[Any, ...]`` match it: overloads for it come first, and later ones know the element."""


class DatasetMethods(Generic[T_co]):
    """What a family of methods knows of Dataset: the plan, and how to add an op to it.

    An overload for some types of elements annotates ``self`` with its family, such as ``BatchingMethods[Scalar]``: type
    checkers accept no subclass there.
    """

    _plan: Node

    @lazy_property
    def _optimized(self) -> Optimized:
        return deferred.optimize(self._plan)

    def _with_op(self, op: Callable[Concatenate[Node, P], Node], *args: P.args, **kwargs: P.kwargs) -> Dataset[Any]:
        """Return the dataset of the plan with one more op.

        Args:
            op: the class of a node, or a function that returns a plan. Its first argument is the plan of this dataset.
            *args: the arguments after it.
            **kwargs: the keyword arguments.
        """
        return Dataset(op(self._plan, *args, **kwargs))

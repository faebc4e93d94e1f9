"""Nested datasets: datasets as components of elements, for modules that cannot import Dataset.

Modules in plan/, runtime/ and ops/ must not import Dataset. They get the plan of a dataset from its attribute
``plan``, and create datasets with ``dataset_of``, for which dataset.py registers the class. They optimize such a plan
with ``optimized_subdataset``, for which the optimizer registers the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard, runtime_checkable

from dataset.plan.node import Node


class HasPlan(Protocol):
    """Protocol of Dataset."""

    @property
    def plan(self) -> Node:
        """The plan of the dataset."""

    def __iter__(self) -> Iterator[Any]:
        """Run the plan."""


_classes: list[type[Any]] = []


def dataset_of(plan: Node) -> Any:
    """Return a Dataset with ``plan``."""
    return _classes[-1](plan)


def is_dataset(value: Any) -> TypeGuard[HasPlan]:
    """Return whether ``value`` is a Dataset. It checks the class, since a user's object may have a ``plan``, too.

    A worker process may not have imported Dataset. Then no value is a Dataset, and the result is False.
    """
    return bool(_classes) and isinstance(value, _classes[-1])


def dataset_class() -> type[Any] | None:
    """Return the class Dataset; None if this process has not imported it."""
    return _classes[-1] if _classes else None


def datasets_are_made_by(cls: type[Any]) -> None:
    """Register the class that ``dataset_of`` creates. Called once, where Dataset is defined."""
    _classes.append(cls)


Optimizer: TypeAlias = Callable[[Node, Callable[[str], bool]], Node]
"""Function that rewrites a plan, given a function that returns whether a rule is allowed."""

REWRITTEN_ELEMENTS_MIN = 1024
"""For fewer elements, rewriting a dataset that a user function returned takes longer than it saves."""

_optimizers: list[Optimizer] = []


def optimized_subdataset(plan: Node, allows: Callable[[str], bool]) -> Node:
    """Return the plan of a dataset that a user function returned, rewritten with the rules that are allowed."""
    return _optimizers[-1](plan, allows)


def subdatasets_are_optimized_by(optimizer: Optimizer) -> None:
    """Register the function that ``optimized_subdataset`` calls. Called once, where the optimizer is defined."""
    _optimizers.append(optimizer)


@runtime_checkable
class Restorable(Protocol):
    """Protocol of plans that can be stored in a saved state because they can be rebuilt from plain data."""

    restored_as: ClassVar[str]
    """The name under which ``restored_by`` registered the function."""

    def to_plain(self) -> Any:
        """Return the data from which that function rebuilds the plan."""


_restorers: dict[str, Callable[[Any], Node]] = {}


def restored_by(name: str, function: Callable[[Any], Node]) -> None:
    """Register the function that rebuilds plans with this ``restored_as`` from plain data."""
    _restorers[name] = function


def restore(name: str, data: Any) -> Node:
    """Return the plan that plain data describes.

    Raises:
        ValueError: if the data does not describe a plan.
    """
    if name not in _restorers:
        raise ValueError(f"invalid plan: {name!r:.50}")
    return _restorers[name](data)

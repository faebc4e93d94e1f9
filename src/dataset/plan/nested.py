"""Datasets as components: what window() gives, what flat_map() is given back, seen from below Dataset.

Nothing in plan/, runtime/ or ops/ may import Dataset. Those who are handed one ask it for its plan; those who have to
hand one out call ``dataset_of``, which dataset.py has told what to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

from dataset.plan.node import Node


class HasPlan(Protocol):
    """A Dataset."""

    @property
    def plan(self) -> Node:
        """The plan that the dataset holds."""

    def __iter__(self) -> Iterator[Any]:
        """Run it."""


_classes: list[type[Any]] = []


def dataset_of(plan: Node) -> Any:
    """Return the Dataset that holds ``plan``."""
    return _classes[-1](plan)


def is_dataset(value: Any) -> TypeGuard[HasPlan]:
    """Return whether ``value`` is a Dataset. A user's own object may have a ``plan``, too, so its class is asked.

    A worker process may not have imported Dataset. Then there is no object of that class, and the answer is False.
    """
    return bool(_classes) and isinstance(value, _classes[-1])


def datasets_are_made_by(cls: type[Any]) -> None:
    """Say what ``dataset_of`` makes. Called once, where Dataset is defined."""
    _classes.append(cls)


@runtime_checkable
class Restorable(Protocol):
    """The plan of a dataset that can stand in a saved state, because plain data says which one it is."""

    restored_as: ClassVar[str]
    """Names the function that ``restored_by`` was given."""

    def to_plain(self) -> Any:
        """Return what that function makes the plan from."""


_restorers: dict[str, Callable[[Any], Node]] = {}


def restored_by(name: str, function: Callable[[Any], Node]) -> None:
    """Say who makes plans from the plain data of those with this ``restored_as``."""
    _restorers[name] = function


def restore(name: str, data: Any) -> Node:
    """Return the plan that plain data describes.

    Raises:
        ValueError: if it describes none.
    """
    if name not in _restorers:
        raise ValueError(f"no plan: {name!r:.50}")
    return _restorers[name](data)

"""Datasets as components: what window() gives, what flat_map() is given back, seen from below Dataset.

Nothing in plan/, runtime/ or ops/ may import Dataset. Those who are handed one ask it for its plan; those who have to
hand one out call ``dataset_of``, which dataset.py has told what to make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeGuard

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
    """The Dataset that holds ``plan``."""
    return _classes[-1](plan)


def is_dataset(value: Any) -> TypeGuard[HasPlan]:
    """Whether ``value`` is a Dataset. A user's own object may have a ``plan``, too, so its class is asked."""
    return isinstance(value, _classes[-1])


def datasets_are_made_by(cls: type[Any]) -> None:
    """Say what ``dataset_of`` makes. Called once, where Dataset is defined."""
    _classes.append(cls)

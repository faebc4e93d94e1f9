"""Implementation of get_single_element(): the element of a one-element dataset. Runs eagerly, without a node."""

from __future__ import annotations

from typing import Any

from dataset.plan.node import Node
from dataset.runtime.iteration.iterator import DatasetIterator


def get_single_element(plan: Node, elements: DatasetIterator[Any], name: str | None) -> Any:
    """Return the only element of ``elements``, an iterator over ``plan``, and close the iterator.

    Raises:
        ValueError: if the dataset does not have exactly one element.
    """
    where = f"get_single_element(){f' named {name!r}' if name else ''}: the dataset of {plan}"
    with elements:
        found = list(zip(elements, range(2), strict=False))
    if len(found) != 1:
        raise ValueError(f"{where} must have one element, but {'is empty' if not found else 'has more than one'}")
    return found[0][0]

"""Ray Data: to_ray()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.dataset import Dataset
from dataset.extras import load_extra


def to_ray(shares: Sequence[Dataset[Any]]) -> Any:
    """Return a ``ray.data.Dataset`` with a read task for each share, which Ray fuses with the numbers of the shares."""
    data = load_extra("ray.data", "distributed", "to_ray() needs")
    numbers = data.range(len(shares), override_num_blocks=len(shares))
    return numbers.flat_map(lambda row: map(_as_row, shares[int(row["id"])]))


def _as_row(element: Any) -> dict[str, Any]:
    """Return an element as a row: a dict is one, other elements have columns ``item`` or ``item_0`` and so on."""
    if isinstance(element, dict):
        return element
    if isinstance(element, tuple):
        return {f"item_{index}": value for index, value in enumerate(element)}
    return {"item": element}

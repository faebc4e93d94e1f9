"""Ray Data: to_ray() and from_ray()."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dataset.dataset import Dataset
from dataset.extras import load_extra

_BLOCK_ROWS = 1024
_BLOCK_BYTES = 16 << 20


class RayRows:
    """Generator function of the rows of a ``ray.data.Dataset``."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __call__(self) -> Iterator[dict[str, Any]]:
        """Execute the dataset and yield its rows."""
        for batch in self._dataset.iter_batches(batch_format="numpy", batch_size=None):
            names = list(batch)
            for row in zip(*batch.values(), strict=True):
                yield dict(zip(names, row, strict=True))


def to_ray(shares: Sequence[Dataset[Any]]) -> Any:
    """Return a ``ray.data.Dataset`` with a read task for each share."""
    data = load_extra("ray.data", "distributed", "to_ray() needs")
    block = load_extra("ray.data.block", "distributed", "to_ray() needs")

    base: Any = data.Datasource

    class Shares(base):
        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_args: Any, **_settings: Any) -> list[Any]:
            unknown = block.BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [data.ReadTask(_reader(share), unknown) for share in shares]

    return data.read_datasource(Shares(), override_num_blocks=len(shares))


def _reader(share: Dataset[Any]) -> Callable[[], Iterable[Any]]:
    def read() -> Iterator[Any]:
        accessor = load_extra("ray.data.block", "distributed", "to_ray() needs").BlockAccessor
        rows: list[dict[str, Any]] = []
        nbytes = 0
        for element in share:
            rows.append(_as_row(element))
            nbytes += sum(getattr(value, "nbytes", 64) for value in rows[-1].values())
            if len(rows) == _BLOCK_ROWS or nbytes >= _BLOCK_BYTES:
                yield accessor.batch_to_block(_columns(rows))
                rows, nbytes = [], 0
        if rows:
            yield accessor.batch_to_block(_columns(rows))

    return read


def _as_row(element: Any) -> dict[str, Any]:
    """Return an element as a row: a dict is one, other elements have columns ``item`` or ``item_0`` and so on."""
    if isinstance(element, dict):
        return element
    if isinstance(element, tuple):
        return {f"item_{index}": value for index, value in enumerate(element)}
    return {"item": element}


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: _column([row[name] for row in rows]) for name in rows[0]}


def _column(values: list[Any]) -> Any:
    """Return the values of a column as an array, of objects if their shapes differ or they are text."""
    if not isinstance(values[0], bytes) and len({np.shape(value) for value in values}) == 1:
        return np.stack(values)
    column = np.empty(len(values), object)
    column[:] = values
    return column

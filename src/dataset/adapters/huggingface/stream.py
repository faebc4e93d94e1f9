"""Rows of a Hugging Face dataset that can only be iterated over, one at a time, as they come."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from dataset.adapters.huggingface.columns import TableColumns, pixels

__all__ = ["RowStream"]


class RowStream:
    """Begins to iterate, each time that it is called.

    Args:
        hf: the dataset.
        columns: that are asked for; None where nobody knows which there are.
        reader: makes an element of a table of one row, of those columns that are not decoded; None if there are none.
    """

    def __init__(
        self, hf: Any, columns: TableColumns | None = None, reader: Callable[[Any], dict[str, Any]] | None = None
    ) -> None:
        self.hf = hf
        self.columns = columns
        self.reader = reader

    def __call__(self) -> Iterator[Any]:
        """A new pass over the rows."""
        # A copy, because a dataset keeps where its last pass stands, in itself; two passes would mix it up. And iter(),
        # because __iter__ leaves rows out in the workers of a torch DataLoader; to share work out is not its task here.
        hf = copy.deepcopy(self.hf)
        if self.columns is None:
            batches = hf.with_format(None).iter(batch_size=1)
            return map(_only, batches)
        return map(self._row, hf.with_format("arrow").iter(batch_size=1))

    def _row(self, table: Any) -> dict[str, Any]:
        assert self.columns is not None  # noqa: S101  # or this is not called
        found = {} if self.reader is None else self.reader(table)
        if self.columns.decoded:
            stored = table.select(self.columns.decoded).to_pylist()[0]
            features = type(self.columns.features)({name: self.columns.features[name] for name in stored})
            found.update(pixels(features.decode_example(stored)))
        keys = [name if name in found else name.partition(".")[0] for name in self.columns.names]
        return {name: found[name] for name in dict.fromkeys(keys)}


def _only(batch: dict[str, list[Any]]) -> dict[str, Any]:
    """The row of a batch of one."""
    return {name: pixels(values[0]) for name, values in batch.items()}

"""Rows of a Hugging Face dataset that can only be iterated over, one row at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from dataset.adapters.huggingface.decoded_columns import TableColumns, in_order, pixels


class RowStream:
    """Function that starts an iteration over the rows each time it is called.

    Args:
        hf: the dataset.
        columns: the requested columns; None if the columns of the dataset are not known.
        reader: converts the columns of a one-row table that are not decoded into an element; None if there are none.
    """

    def __init__(
        self, hf: Any, columns: TableColumns | None = None, reader: Callable[[Any], dict[str, Any]] | None = None
    ) -> None:
        self.hf = hf
        self.columns = columns
        self.reader = reader

    def __call__(self) -> Iterator[Any]:
        """Start a new pass over the rows."""
        # The dataset is copied because it stores the position of its last pass in itself, which two passes would
        # confuse. iter() is used because __iter__ skips rows in the workers of a torch DataLoader; here, this library
        # divides the rows among workers.
        hf = _copied(self.hf, {})
        if self.columns is None:
            batches = hf.with_format(None).iter(batch_size=1)
            return map(_only, batches)
        return map(self._row, hf.with_format("arrow").iter(batch_size=1))

    def _row(self, table: Any) -> dict[str, Any]:
        assert self.columns is not None  # noqa: S101  # __call__ ensures it
        found = {} if self.reader is None else self.reader(table)
        if self.columns.decoded:
            stored = table.select(self.columns.decoded).to_pylist()[0]
            features = type(self.columns.features)({name: self.columns.features[name] for name in stored})
            found.update(pixels(features.decode_example(stored)))
        return in_order(found, self.columns.names)


def _only(batch: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the row of a batch of one row."""
    return {name: pixels(values[0]) for name, values in batch.items()}


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    """Return a copy of Hugging Face's objects that iterate. What they hold of the user, such as a lock, is shared."""
    if isinstance(value, list):
        return [_copied(item, copies) for item in value]
    if not type(value).__module__.startswith("datasets.iterable") or not hasattr(value, "__dict__"):
        return value
    if id(value) not in copies:
        copies[id(value)] = found = copy.copy(value)
        found.__dict__.update({name: _copied(field, copies) for name, field in vars(value).items()})
    return copies[id(value)]

"""Rows of a Hugging Face dataset that are computed in Python: decoded by their features, or by a user's transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.adapters.huggingface.decoded_columns import OP, in_order, pixels


class TransformedRows:
    """The rows of a dataset as converted by ``set_transform``, or by a format with arguments."""

    def __init__(self, hf: Any) -> None:
        self.hf = hf

    def __len__(self) -> int:
        return len(self.hf)

    def __getitem__(self, index: int) -> Any:
        return pixels(self.hf[index])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [pixels(row) for row in self.hf.__getitems__(indices)]


class DecodedRows:
    """Rows with columns of images or sounds.

    Args:
        names: the names of all columns, in order.
        plain: a dataset of the rows without those columns, or None if there are no others.
        decoded: the Hugging Face dataset of those columns alone.
    """

    def __init__(self, names: Sequence[str], plain: Any, decoded: Any) -> None:
        self.names = names
        self.plain = plain
        self.decoded = decoded

    def __len__(self) -> int:
        return len(self.decoded)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._row(index, self.decoded[index])

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self._row(index, row) for index, row in zip(indices, self.decoded.__getitems__(indices), strict=True)]

    def _row(self, index: int, decoded: dict[str, Any]) -> dict[str, Any]:
        found = {} if self.plain is None else self.plain[index]
        for name, value in decoded.items():
            if value is None:
                raise ValueError(
                    f"{OP}(): column {name!r} contains a null, which cannot be decoded; drop such rows with filter()"
                )
            found[name] = pixels(value)
        return in_order(found, self.names)

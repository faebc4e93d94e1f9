"""The requested columns of a Hugging Face dataset: their types, and which of them have to be decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from dataset.errors import SpecError

OP = "from_huggingface"

_DECODED = (datasets.Image, datasets.Audio)
_TEXT = (datasets.Json,) if hasattr(datasets, "Json") else ()
"""Features that could be decoded, but are returned as the text that is stored. Older versions have none."""


class TableColumns:
    """The requested columns.

    Args:
        features: the features of the dataset.
        columns: the names of the columns; None for all. Names that are not columns are kept: they may be fields of
            structs, which the table source resolves.

    Attributes:
        names: the names of all requested columns, in order.
        decoded: the names of the columns whose values their feature decodes.
        plain: the names of the other columns.

    Raises:
        SpecError: if a column has to be decoded by a feature whose values are not arrays.
    """

    def __init__(self, features: Any, columns: Sequence[str] | None) -> None:
        self.features = features
        self.names = list(features) if columns is None else list(columns)
        self.decoded = [name for name in self.names if name in features and self._needs_decoding(name)]
        self.plain = [name for name in self.names if name not in self.decoded]

    def _needs_decoding(self, name: str) -> bool:
        decoding = [part for part in _parts(self.features[name]) if _decodes(part)]
        for part in decoding:
            if not isinstance(part, _DECODED):
                kind = type(part).__name__
                raise SpecError(
                    f"{OP}(): column {name!r} is a {kind}, which cannot be converted to an array. Leave it out with "
                    f"columns=[...], or read the encoded bytes: hf.cast_column({name!r}, {kind}(decode=False))"
                )
        return bool(decoding)

    def fills(self, fill_null: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that replace nulls in the plain columns, by name.

        A file that is not decoded usually has only ``bytes`` or only ``path``; an empty string replaces the other.

        Raises:
            ValueError: if ``fill_null`` is given but every column is decoded.
        """
        if fill_null and not self.plain:
            raise ValueError(f"{OP}(): fill_null names {list(fill_null)}, but decoded columns have no nulls to replace")
        fields = [f"{path}.{field}" for path in _media(self.features) for field in ("bytes", "path")]
        empty = {field: "" for field in fields if any(f"{field}.".startswith(f"{name}.") for name in self.plain)}
        return {**empty, **fill_null}

    def schema(self, stored: Any) -> Any:
        """Return the schema to read, from the schema that is stored."""
        return pa.schema([field.with_type(_wanted(field.type)) for field in stored])


def in_order(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a row with its keys in the requested order; a field of a struct is under the name of the struct."""
    keys = [name if name in found else name.partition(".")[0] for name in names]
    return {key: found[key] for key in dict.fromkeys(keys)}


def pixels(value: Any) -> Any:
    """Return a decoded value with its images as arrays and its sounds as dicts; other values are unchanged.

    Images are converted by NumPy: uint8 of shape (height, width, 3) for RGB, (height, width) for grayscale. Images with
    a palette become RGB, or RGBA if they have transparent colors.
    """
    if isinstance(value, dict):
        return {key: pixels(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and value and _is_decoded(value[0]):
        return _stacked([pixels(item) for item in value])
    if not _is_decoded(value):
        return value
    if hasattr(value, "get_all_samples"):  # torchcodec's AudioDecoder
        return {"array": np.array(value["array"]), "sampling_rate": np.int64(value["sampling_rate"])}
    if value.mode in {"P", "PA"}:
        value = value.convert("RGBA" if value.mode == "PA" or "transparency" in value.info else "RGB")
    return np.array(value)


def _is_decoded(value: Any) -> bool:
    """Return whether the value is a Pillow image or a torchcodec sound. Neither library needs to be installed."""
    return any(cls.__module__.partition(".")[0] in {"PIL", "torchcodec"} for cls in type(value).__mro__)


def _stacked(items: list[Any]) -> Any:
    """Return the images or sounds of a list as one array."""
    if isinstance(items[0], dict):
        return {key: _stacked([item[key] for item in items]) for key in items[0]}
    shapes = {np.shape(item) for item in items}
    if len(shapes) > 1:
        raise ValueError(f"images or sounds in a list must have the same shape, got {sorted(shapes)}")
    return np.stack(items)


def _parts(feature: Any) -> Iterator[Any]:
    """Yield the leaf features of a nested feature."""
    if isinstance(feature, dict):
        for inner in feature.values():
            yield from _parts(inner)
    elif isinstance(feature, list | tuple):
        yield from _parts(feature[0])
    elif hasattr(feature, "feature"):  # a list of them
        yield from _parts(feature.feature)
    else:
        yield feature


def _media(features: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of columns and struct fields that are files, stored as their bytes or as a path."""
    for name, feature in features.items():
        if isinstance(feature, dict):
            yield from _media(feature, f"{prefix}{name}.")
        elif hasattr(feature, "decode_example") and feature.pa_type == datasets.Image.pa_type:
            yield prefix + name


def _decodes(feature: Any) -> bool:
    return hasattr(feature, "decode_example") and getattr(feature, "decode", True) and not isinstance(feature, _TEXT)


def _wanted(kind: Any) -> Any:
    """Return the Arrow type, with Hugging Face's array types replaced by the fixed-size lists that they store."""
    shape = getattr(kind, "shape", None) if isinstance(kind, pa.ExtensionType) else None
    if isinstance(shape, tuple) and hasattr(kind, "value_type"):
        array = datasets.features.features.string_to_arrow(kind.value_type)
        for size in reversed(shape):
            array = pa.list_(array, -1 if size is None else size)
        return array
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_wanted(field.type)) for field in kind])
    return kind

"""Encoder from a dict of values to the bytes of a tf.train.Example, with protobuf messages only for lists.

This module knows bytes and values. messages.py has the message classes; tfrecord/ writes files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io import example


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Return the bytes of a tf.train.Example with these features.

    The same input always produces the same bytes: keys are written in sorted order.

    Args:
        features: a dict from name to value. Ints and bools become an int64 list, floats a float list (rounded to
            float32), ``bytes`` and ``str`` (as UTF-8) a bytes list. The same holds for NumPy scalars, flat lists and
            tuples of these, and arrays of any shape, which are flattened in row-major order. An empty array keeps the
            kind of its dtype. An empty list has no kind, so the feature is written without a list and reads as missing.

    Raises:
        TypeError: a value is anything else, such as None, a nested list, a mixed list, a masked array, or an int beyond
            int64; the message names the feature.

    >>> from dataset.io import Example
    >>> record = encode_example({"label": 3, "name": "cat", "box": np.zeros(4, np.float32)})
    >>> Example.FromString(record).features.feature["label"].int64_list.value
    [3]
    """
    entries = []
    for name in sorted(features):
        key = _name_bytes(name)
        feature = _encode_feature(name, features[name])
        entry = b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(len(feature)) + feature
        entries.append(b"\x0a" + _varint(len(entry)) + entry)
    body = b"".join(entries)
    return b"\x0a" + _varint(len(body)) + body


def _name_bytes(name: object) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"encode_example: names of features must be str, got {name!r}")
    return name.encode()


@lru_cache(maxsize=1 << 12)  # nearly all are lengths, and the same few recur in every record
def _varint(number: int) -> bytes:
    """Return the varint of ``number``, at least 0: groups of seven bits, lowest first."""
    if number < 0x80:
        return number.to_bytes()
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _encode_feature(name: str, value: Any) -> bytes:
    """Return the bytes of the Feature message."""
    if isinstance(value, bytes):
        return _bytes_feature([value])
    if isinstance(value, str):
        return _bytes_feature([value.encode()])
    if isinstance(value, int | np.integer):
        value = int(value)
        if not -(1 << 63) <= value < 1 << 63:
            raise _wrong_value(name, value, "an int beyond int64")
        packed = _varint(value & 0xFFFFFFFFFFFFFFFF)
        return _feature(b"\x1a", b"\x0a" + _varint(len(packed)) + packed)
    if isinstance(value, list | tuple):
        return _encode_list(name, value)
    if isinstance(value, float | np.ndarray | np.generic):
        if isinstance(value, np.ma.MaskedArray):
            raise _wrong_value(
                name, value, "a masked array, whose mask would be lost; use .filled(value), or two features"
            )
        return _encode_array(name, np.asarray(value))
    raise _wrong_value(name, value, f"a {type(value).__name__}")


def _encode_list(name: str, values: list[Any] | tuple[Any, ...]) -> bytes:
    """Encode a flat list whose items are all of one kind."""
    kinds = {_item_kind(item) for item in values}
    if kinds == {"bytes"}:
        return _bytes_feature(item.encode() if isinstance(item, str) else item for item in values)
    if kinds == {"float"}:
        return _encode_array(name, np.array(values, np.float64))
    if kinds == {"int"}:
        try:
            return _encode_array(name, np.array(values, np.int64))
        except OverflowError:
            raise _wrong_value(name, values, "an int beyond int64") from None
    if not kinds:
        return b""
    names = sorted({type(item).__name__ for item in values})
    raise _wrong_value(name, values, f"a list of {', '.join(names)}")


def _item_kind(item: Any) -> str:
    if isinstance(item, bytes | str):
        return "bytes"
    if isinstance(item, int | np.integer | np.bool_):
        return "int"
    return "float" if isinstance(item, float | np.floating) else "other"


def _encode_array(name: str, array: npt.NDArray[Any]) -> bytes:
    """Encode a flattened array. Object arrays are encoded as lists of their items."""
    kind = array.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):  # values beyond float32 become infinity, as in protobuf
            packed = array.astype("<f4").tobytes()
        return _feature(b"\x12", b"\x0a" + _varint(len(packed)) + packed if packed else b"")
    if kind in "iub":
        if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise _wrong_value(name, array, "an int beyond int64")
        numbers = array.astype(np.int64).ravel().tolist()
        return _feature(b"\x1a", example.messages.Int64List(value=numbers).SerializeToString())
    if kind in "SU" or (kind == "O" and not array.size):
        return _bytes_feature(item.encode() if isinstance(item, str) else item for item in array.ravel().tolist())
    if kind == "O":
        return _encode_list(name, array.ravel().tolist())
    raise _wrong_value(name, array, f"an array of dtype {array.dtype}")


def _bytes_feature(values: Iterable[bytes]) -> bytes:
    return _feature(b"\x0a", example.messages.BytesList(value=values).SerializeToString())


def _feature(kind: bytes, listed: bytes) -> bytes:
    return kind + _varint(len(listed)) + listed


def _wrong_value(name: str, value: Any, what: str) -> TypeError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return TypeError(
        f"encode_example: feature {name!r} must be int, float, bytes, str, or a flat list or array of one of these,"
        f" got {what}: {shown}"
    )

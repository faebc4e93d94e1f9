"""Encoder from a dict of values to the bytes of a tf.train.Example, with protobuf messages only for lists.

Protobuf writes a map in sorted order only if no key begins with another one. This module knows bytes and values.
messages.py has the message classes; tfrecord/ writes files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dataset.io import example

_TYPES = {
    "BytesList": bytes | str | np.object_,  # the type of empty object arrays
    "FloatList": float | np.floating,
    "Int64List": int | np.integer | np.bool_,
}
_TAGS = {"BytesList": b"\x0a", "FloatList": b"\x12", "Int64List": b"\x1a"}  # of the fields of Feature


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
        if not isinstance(name, str):
            raise TypeError(f"encode_example: names of features must be str, got {name!r}")
        key, feature = name.encode(), _feature(name, features[name])
        entry = b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(len(feature)) + feature
        entries.append(b"\x0a" + _varint(len(entry)) + entry)
    body = b"".join(entries)
    return b"\x0a" + _varint(len(body)) + body


@lru_cache(maxsize=1 << 12)  # nearly all are lengths, and the same few recur in every record
def _varint(number: int) -> bytes:
    """Return the varint of ``number``, at least 0: groups of seven bits, lowest first."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


def _feature(name: str, value: Any) -> bytes:
    """Return the bytes of the Feature message. That of an empty list, which has no kind, is empty."""
    kind = _kind_of(value.__class__)
    if kind == "Int64List" and -(1 << 63) <= (number := int(value)) < 1 << 63:
        return _packed(kind, _varint(number & 0xFFFFFFFFFFFFFFFF))
    if kind is not None:
        return _listed(kind, name, [value.encode() if isinstance(value, str) else value])
    if isinstance(value, np.ndarray) and not (value.dtype == object and value.size):
        kind, types = _kind_of(value.dtype.type), {value.dtype.type}
        if kind is None or isinstance(value, np.ma.MaskedArray):
            lost = "a masked array, whose mask would be lost; use .filled(value), or two features"
            raise _wrong_value(name, value, lost if kind else f"an array of dtype {value.dtype}")
        if kind == "FloatList":
            with np.errstate(over="ignore"):  # values beyond float32 become infinity, as in protobuf
                return _packed(kind, value.astype("<f4").tobytes())
        items: Any = value.ravel().tolist()
    elif isinstance(value, list | tuple | np.ndarray):
        items = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        types = set(map(type, items))
        kind, *others = set(map(_kind_of, types)) or {""}
        if others or kind is None:
            raise _wrong_value(name, value, f"a list of {', '.join(sorted(cls.__name__ for cls in types))}")
    else:
        raise _wrong_value(name, value, f"a {type(value).__name__}")
    if kind == "BytesList":
        items = [item.encode() if isinstance(item, str) else item for item in items]
    elif types & {bool, np.bool_}:  # protobuf refuses them
        items = [*map(int, items)]
    return _listed(kind, name, items) if kind else b""


def _listed(kind: str, name: str, items: Any) -> bytes:
    """Return the bytes of the Feature message with a list of these values."""
    try:
        content: bytes = getattr(example.messages, kind)(value=items).SerializeToString()
    except ValueError:
        raise _wrong_value(name, items, "an int beyond int64") from None
    return _TAGS[kind] + _varint(len(content)) + content


def _packed(kind: str, packed: bytes) -> bytes:
    """Return the bytes of the Feature message with packed numbers."""
    listed = b"\x0a" + _varint(len(packed)) + packed if packed else b""
    return _TAGS[kind] + _varint(len(listed)) + listed


@lru_cache
def _kind_of(cls: Any) -> str | None:
    """Return the message for lists of a type, None if there is none."""
    return next((kind for kind, types in _TYPES.items() if issubclass(cls, types) and cls is not np.timedelta64), None)


def _wrong_value(name: str, value: Any, what: str) -> TypeError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return TypeError(
        f"encode_example: feature {name!r} must be int, float, bytes, str, or a flat list or array of one of these,"
        f" got {what}: {shown}"
    )

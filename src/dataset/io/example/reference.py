"""Reference decoder: reads an Example with protobuf; the native kernels must agree with it.

If the message parses, its map of features is the result. TensorFlow does not parse features that were not requested,
and does not require keys to be UTF-8. So if the message does not parse, only its outer structure is read, and then the
requested features. This module creates no arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.errors import ParseError
from dataset.io import example, libraries

_KINDS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}


def read_lists(record: bytes, keys: Sequence[str], row: int | None = None) -> list[tuple[int, Any]]:
    """Return the list of each key: its kind (1 bytes, 2 float, 3 int64, 0 none) and the sequence of values, or None.

    Raises:
        ParseError: ``record`` is not an Example, or one of these features is not a Feature.
    """
    found = []
    for feature in _read_features(record, keys, row):
        name = None if feature is None else feature.WhichOneof("kind")
        found.append((0, None) if name is None else (_KINDS[name], getattr(feature, name).value))
    return found


def feature_names(record: bytes) -> list[str]:
    """Return the names of the features of a record that can be parsed, sorted."""
    entries = example.messages.Shell.FromString(record).entries.entry
    return sorted({entry.key.decode(errors="backslashreplace") for entry in entries})


def regular_record(record: bytes, keys: Sequence[str], row: int | None = None) -> bytes:
    """Return an Example with these features of ``record``, in the regular form that the kernels support.

    Raises:
        ParseError: as ``read_lists``.
    """
    features = zip(keys, _read_features(record, keys, row), strict=True)
    given = {key: feature for key, feature in features if feature is not None}
    message = example.messages.Example(features=example.messages.Features(feature=given))
    message.DiscardUnknownFields()
    regular: bytes = message.SerializeToString()
    return regular


def _read_features(record: bytes, keys: Sequence[str], row: int | None) -> list[Any]:
    """Return the Feature message of each key, None for a key that the record does not have."""
    if not isinstance(record, bytes):
        raise TypeError(f"parse_example: records must be bytes, got {type(record).__name__} at position {row}")
    try:
        found = example.messages.Example.FromString(record).features.feature
    except libraries.protobuf.DecodeError:
        return _read_from_shell(record, keys, row)
    return [found.get(key) for key in keys]


def _read_from_shell(record: bytes, keys: Sequence[str], row: int | None) -> list[Any]:
    place = "" if row is None else f" of record {row}"
    try:
        entries = example.messages.Shell.FromString(record).entries.entry
    except libraries.protobuf.DecodeError:
        what = "the bytes" if row is None else f"record {row}"
        raise ParseError(
            f"parse_example: {what} (length {len(record)}) can't be parsed as a tf.train.Example. Is this another "
            "message type, or a compressed file that was read as uncompressed?"
        ) from None
    found = {entry.key: b"".join(entry.value) for entry in entries}  # partial messages merge when concatenated
    features = []
    for key in keys:
        content = found.get(key.encode())
        try:
            features.append(None if content is None else example.messages.Feature.FromString(content))
        except libraries.protobuf.DecodeError:
            raise ParseError(
                f"parse_example: feature {key!r}{place} is damaged: its bytes can't be parsed as a tf.train.Feature"
            ) from None
    return features

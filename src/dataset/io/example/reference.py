"""Reference decoder: reads an Example with protobuf; the fast decoders in wire.py and template.py must agree with it.

If the message parses, its map of features is the result. TensorFlow does not parse features that were not requested,
and does not require keys to be UTF-8. So if the message does not parse, only its outer structure is read, and then the
requested features. This module creates no arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.errors import ParseError
from dataset.io import example, libraries

__all__ = ["KINDS", "list_in", "read_features", "regular_lists"]

KINDS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}


def read_features(record: bytes, keys: Sequence[str], row: int | None = None) -> list[Any]:
    """Return the Feature message of each key, None for a key that the record does not have.

    Raises:
        ParseError: ``record`` is not an Example, or one of these features is not a Feature.
    """
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


def list_in(feature: Any) -> tuple[int, Any]:
    """Return a Feature's kind (1 bytes, 2 float, 3 int64, 0 none) and its list message, or None."""
    if feature is None:
        return 0, None
    name = feature.WhichOneof("kind")
    return (0, None) if name is None else (KINDS[name], getattr(feature, name))


def regular_lists(record: bytes, keys: Sequence[str], row: int) -> list[tuple[int, bytes]]:
    """Return each key's kind and the bytes of its list message, in the regular form that the fast decoders support."""
    found = [list_in(feature) for feature in read_features(record, keys, row)]
    return [(kind, b"" if values is None else values.SerializeToString()) for kind, values in found]

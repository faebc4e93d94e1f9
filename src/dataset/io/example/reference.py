"""An Example as protobuf reads it: the meaning that the fast decoders in wire.py and template.py are held to.

Where the message parses, its map of features is the answer. TensorFlow never looks into features that it was not asked
for, nor cares whether a key is UTF-8; so where the message does not parse, only its outer shell is read, and then the
features that are asked for. What is here makes no arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.errors import ParseError
from dataset.io import example, libraries

__all__ = ["KINDS", "list_in", "read_features", "regular_lists"]

KINDS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}


def read_features(record: bytes, keys: Sequence[str], row: int | None = None) -> list[Any]:
    """The Feature message of each key, None for a key that the record lacks.

    Raises:
        ParseError: if ``record`` is no Example, or one of these features is no Feature.
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
            "message, or a compressed file read as plain bytes?"
        ) from None
    found = {entry.key: b"".join(entry.value) for entry in entries}  # messages in parts merge when joined
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
    """A Feature's kind, 1 bytes, 2 float, 3 int64 or 0 for none, and its list message (None for none)."""
    if feature is None:
        return 0, None
    name = feature.WhichOneof("kind")
    return (0, None) if name is None else (KINDS[name], getattr(feature, name))


def regular_lists(record: bytes, keys: Sequence[str], row: int) -> list[tuple[int, bytes]]:
    """Each key's kind and the bytes of its list message, in the one form that the fast decoders know."""
    found = [list_in(feature) for feature in read_features(record, keys, row)]
    return [(kind, b"" if values is None else values.SerializeToString()) for kind, values in found]

"""Reference decoder: reads Examples and SequenceExamples with protobuf; the native kernels must agree with it.

If the message parses, its map of features is the result. TensorFlow does not parse features that were not requested,
and does not require keys to be UTF-8. So if the message does not parse, only its outer structure is read, and then the
requested features. The features of an Example are those in the context of a SequenceExample with the same bytes. This
module creates no arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.errors import ParseError
from dataset.io import example, libraries

_KINDS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}
_FEATURES = "parse_example", "Example", "Shell", "Feature"
_LISTS = "parse_sequence_example", "SequenceExample", "ListsShell", "FeatureList"
List = tuple[int, Any]


def parsed(kind: Any, serialized: bytes, op: str, name: str, what: str = "") -> Any:
    """Return a message of class ``kind``; an error calls it ``name``, and its bytes ``what``.

    Raises:
        ParseError: the bytes are not such a message.
        TypeError: ``serialized`` is not bytes.
    """
    if not isinstance(serialized, bytes):
        raise TypeError(f"{op}: serialized must be bytes, got {type(serialized).__name__}")
    try:
        return kind.FromString(serialized)
    except libraries.protobuf.DecodeError:
        what = what or f"the bytes (length {len(serialized)})"
        raise ParseError(f"{op}: {what} can't be parsed as a {name}") from None


def feature_names(record: bytes) -> list[str]:
    """Return the names of the features of a record that can be parsed, sorted."""
    return sorted(key.decode(errors="backslashreplace") for key in _entries("Shell", record, "", ""))


def regular_record(record: bytes, keys: Sequence[str], row: int | None = None, *, in_lists: bool = False) -> bytes:
    """Return a message with these features of ``record``, in the regular form that the kernels support.

    Raises:
        ParseError: as ``read_features``.
    """
    features = zip(keys, read_features(record, keys, row, in_lists=in_lists), strict=True)
    given = {key: feature for key, feature in features if feature is not None}
    make = example.messages.SequenceExample
    message = make(feature_lists={"feature_list": given}) if in_lists else make(context={"feature": given})
    message.DiscardUnknownFields()
    return bytes(message.SerializeToString())


def list_of(feature: Any) -> List:
    """Return the kind of a Feature message (1 bytes, 2 float, 3 int64, 0 none) and the sequence of values, or None."""
    name = None if feature is None else feature.WhichOneof("kind")
    return (0, None) if name is None else (_KINDS[name], getattr(feature, name).value)


def _entries(shell: str, record: bytes, *names: str) -> dict[bytes, bytes]:
    """Return the bytes of each Feature or FeatureList message; ``names`` as for ``parsed``."""
    entries = parsed(getattr(example.messages, shell), record, *names).entries.entry
    return {entry.key: b"".join(entry.value) for entry in entries}  # partial messages merge if concatenated


def read_features(record: bytes, keys: Sequence[str], row: int | None = None, *, in_lists: bool = False) -> list[Any]:
    """Return the Feature or FeatureList message of each key, None for a key that the record does not have.

    Raises:
        ParseError: ``record`` is not an Example or SequenceExample, or one of these features is damaged.
    """
    op, kind, shell, part = _LISTS if in_lists else _FEATURES
    if not isinstance(record, bytes):
        raise TypeError(f"{op}: records must be bytes, got {type(record).__name__} at position {row}")
    try:
        message = example.messages.SequenceExample.FromString(record)
        found = message.feature_lists.feature_list if in_lists else message.context.feature
        return [found.get(key) for key in keys]
    except libraries.protobuf.DecodeError:
        what, place = ("the bytes", "") if row is None else (f"record {row}", f" of record {row}")
    what = f"{what} (length {len(record)})"
    hint = "Is this another message type, or a compressed file that was read as uncompressed?"
    contents = _entries(shell, record, op, f"tf.train.{kind}. {hint}", what)
    make, features = getattr(example.messages, part), list[Any]()
    for key in keys:
        content, damaged = contents.get(key.encode()), f"feature {key!r}{place} is damaged: its bytes"
        features.append(None if content is None else parsed(make, content, op, f"tf.train.{part}", damaged))
    return features

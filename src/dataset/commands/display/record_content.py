"""The content of a record: a tf.train.Example, a SequenceExample, or other bytes.

A record does not declare its type, and protobuf parses many byte strings as a message of unknown fields. So a record
counts as a SequenceExample if it has feature lists, and as an Example if it has features or is empty. As in TensorFlow,
a name that is not UTF-8, or a damaged feature, does not affect the other features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from dataset.io.example.messages import Feature, FeatureList, ListsShell, SequenceExample, Shell

EXAMPLE = "Example"
SEQUENCE_EXAMPLE = "SequenceExample"
OTHER = "other"

KINDS = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64", None: "none"}


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a feature.

    Attributes:
        kind: ``bytes``, ``float``, ``int64``, ``none`` for a feature without a list, or ``damaged``.
        values: a sequence of the values.
    """

    kind: str
    values: Any


@dataclass(frozen=True, slots=True)
class Message:
    """A parsed record.

    Attributes:
        kind: EXAMPLE, SEQUENCE_EXAMPLE or OTHER.
        features: the features by name, sorted; for a SequenceExample, those of its context.
        lists: the steps of each feature list by name, sorted.
    """

    kind: str
    features: dict[str, Values]
    lists: dict[str, list[Values]]


def read_message(record: bytes) -> Message:
    """Parse a record. No byte string is an error.

    >>> from dataset.io import encode_example
    >>> read_message(encode_example({"label": 3})).features["label"]
    Values(kind='int64', values=[3])
    >>> read_message(b"hello").kind
    'other'
    """
    try:
        message = SequenceExample.FromString(record)
    except DecodeError:
        return _from_shell(record)
    kind = SEQUENCE_EXAMPLE if message.HasField("feature_lists") else EXAMPLE
    if kind == EXAMPLE and record and not message.HasField("context"):
        kind = OTHER
    context, lists = message.context.feature, message.feature_lists.feature_list
    return Message(
        kind,
        {name: _values(context[name]) for name in sorted(context)},
        {name: [_values(step) for step in lists[name].feature] for name in sorted(lists)},
    )


def _values(feature: Any) -> Values:
    name = feature.WhichOneof("kind")
    return Values(KINDS[name], () if name is None else getattr(feature, name).value)


def _from_shell(record: bytes) -> Message:
    """Parse a record that protobuf cannot parse as a whole, feature by feature."""
    try:
        entries, step_lists = (shell.FromString(record).entries.entry for shell in (Shell, ListsShell))
    except DecodeError:
        return Message(OTHER, {}, {})
    features = {_name(entry): _parsed(Feature, entry) for entry in entries}
    lists = {_name(entry): _parsed(FeatureList, entry) for entry in step_lists}
    if not features and not lists:
        return Message(OTHER, {}, {})
    return Message(
        SEQUENCE_EXAMPLE if lists else EXAMPLE,
        {name: _damaged() if feature is None else _values(feature) for name, feature in sorted(features.items())},
        {
            name: [_damaged()] if steps is None else [*map(_values, steps.feature)]
            for name, steps in sorted(lists.items())
        },
    )


def _name(entry: Any) -> str:
    return str(entry.key, errors="surrogateescape")


def _parsed(message: Any, entry: Any) -> Any:
    try:
        return message.FromString(b"".join(entry.value))
    except DecodeError:
        return None


def _damaged() -> Values:
    return Values("damaged", ())

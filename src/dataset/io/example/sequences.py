"""Parser of tf.train.SequenceExample records: parse_sequence_example, parse_single_sequence_example.

The context of a SequenceExample has the form of an Example, and parse.py parses it. The steps of a feature list are
parsed like n Examples, all steps of n records at once, and are then grouped by record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io.example.assemble import Fixed
from dataset.io.example.columns import Problem, Steps
from dataset.io.example.features import FeatureSpec, FixedLenSequenceFeature, StepFeature, keys_of
from dataset.io.example.parse import ExampleParser, FeatureParser, Records, as_records, parser_for
from dataset.plan.values import RaggedTensor, SparseTensor, object_column, row_offsets

ParsedSteps = tuple[str, StepFeature, Any, npt.NDArray[np.int64]]
_OP = "parse_sequence_example"
_NO_FEATURES: dict[str, Any] = {}


def parse_single_sequence_example(
    serialized: bytes,
    context_features: Mapping[str, FeatureSpec] | None = None,
    sequence_features: Mapping[str, StepFeature] | None = None,
    example_name: str | None = None,  # noqa: ARG001
    name: str | None = None,  # noqa: ARG001
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one tf.train.SequenceExample, as ``tf.io.parse_single_sequence_example`` does.

    Args:
        serialized: the bytes of the message.
        context_features: the features of the context to read, by name, as for parse_single_example. Default: none.
        sequence_features: the feature lists to read, by name: FixedLenSequenceFeature, VarLenFeature or RaggedFeature.
            Default: none.
        example_name: a label, without effect.
        name: a label, without effect.

    Returns:
        The values of the context by name, as from parse_single_example; and the values of the feature lists by name:
        for FixedLenSequenceFeature an array of shape (steps, *shape), for VarLenFeature a SparseTensor of shape (steps,
        most values of a step), for RaggedFeature a RaggedTensor with a row for each step.

    Raises:
        ParseError: the bytes are not a SequenceExample, or a feature is missing and has no default, has another kind,
            or has the wrong number of values; a feature list is missing and ``allow_missing`` is not set.
        ValueError: no features are given.

    >>> from dataset import io
    >>> message = io.SequenceExample()
    >>> message.context.feature["label"].int64_list.value.append(3)
    >>> for words in ([b"a"], [b"b", b"c"]):
    ...     message.feature_lists.feature_list["words"].feature.add().bytes_list.value.extend(words)
    >>> context, lists = parse_single_sequence_example(
    ...     message.SerializeToString(), {"label": io.FixedLenFeature((), int)}, {"words": io.RaggedFeature(bytes)}
    ... )
    >>> context["label"], lists["words"].to_list()
    (np.int64(3), [[b'a'], [b'b', b'c']])
    """
    if not isinstance(serialized, bytes):
        raise TypeError(f"parse_single_sequence_example: serialized must be bytes, got {type(serialized).__name__}")
    steps = _parse_steps(object_column([serialized]), context_features, sequence_features)
    context = parser_for(context_features, ExampleParser).parse_one(serialized) if context_features else {}
    return context, {key: value for key, _, value, _ in steps}


def parse_sequence_example(
    serialized: Records,
    context_features: Mapping[str, FeatureSpec] | None = None,
    sequence_features: Mapping[str, StepFeature] | None = None,
    example_names: Any = None,  # noqa: ARG001
    name: str | None = None,  # noqa: ARG001
) -> tuple[dict[str, Any], dict[str, Any], dict[str, npt.NDArray[np.int64]]]:
    """Parse n tf.train.SequenceExamples at once, as ``tf.io.parse_sequence_example`` does.

    Args:
        serialized: n messages: a sequence of bytes, or an object array of shape (n,).
        context_features: the features of the context to read, by name, as for parse_example. Default: none.
        sequence_features: the feature lists to read, as for parse_single_sequence_example. Default: none.
        example_names: labels, without effect. Messages have the record's position.
        name: a label, without effect.

    Returns:
        The values of the context by name, as from parse_example; the values of the feature lists by name: for
        FixedLenSequenceFeature a padded array of shape (n, most steps, *shape), for VarLenFeature a SparseTensor of
        shape (n, most steps, most values of a step), for RaggedFeature a RaggedTensor with a row for each step of each
        record; and the number of steps of each FixedLenSequenceFeature by name, int64 of shape (n,).

    Raises:
        ParseError: as for parse_single_sequence_example, with the record's position.
        ValueError: no features are given.

    >>> from dataset import io
    >>> records = []
    >>> for steps in ([1, 2], [3]):
    ...     message = io.SequenceExample()
    ...     for step in steps:
    ...         message.feature_lists.feature_list["x"].feature.add().int64_list.value.append(step)
    ...     records.append(message.SerializeToString())
    >>> parse_sequence_example(records, sequence_features={"x": io.FixedLenSequenceFeature((), int)})[1:]
    ({'x': array([[1, 2],
           [3, 0]])}, {'x': array([2, 1])})
    """
    records = as_records(serialized, _OP)
    steps = _parse_steps(records.copy(), context_features, sequence_features)
    context = parser_for(context_features, ExampleParser).parse_batch(records) if context_features else {}
    lists: dict[str, Any] = {}
    lengths = {}
    for key, feature, value, counts in steps:
        lists[key] = _grouped(value, counts)
        if isinstance(feature, FixedLenSequenceFeature):
            lists[key], lengths[key] = lists[key].to_tensor(feature.default_value), counts.copy()
    return context, lists, lengths


def _grouped(value: Any, counts: npt.NDArray[np.int64]) -> RaggedTensor | SparseTensor:
    """Return the values of all steps, grouped into n records with these numbers of steps."""
    splits = row_offsets(counts)
    if not isinstance(value, SparseTensor):
        return RaggedTensor(value, splits)
    step, place = value.indices.T
    record = np.repeat(np.arange(len(counts)), counts)[step]
    indices = np.stack([record, step - splits[record], place], axis=1)
    return SparseTensor(indices, value.values, [len(counts), counts.max(initial=0), value.dense_shape[1]])


def _parse_steps(records: Any, context_features: Any, sequence_features: Any) -> list[ParsedSteps]:
    """Return each feature, the values of the steps of all records, and the number of steps of each record.

    Unusual ``records`` are replaced.
    """
    if not (context_features or sequence_features):
        raise ValueError(f"{_OP}: context_features or sequence_features must name at least one feature, got none")
    return parser_for(sequence_features or _NO_FEATURES, StepsParser).parse(records)


class StepsParser(FeatureParser):
    """Parser of feature lists, prepared once for its features."""

    op, kinds, in_lists = _OP, StepFeature.__args__, True

    def parse(self, records: npt.NDArray[Any]) -> list[ParsedSteps]:
        """Return the values of the steps, as ``_parse_steps``."""
        found, result = self._reader.steps(records), []
        for name, assembler, wanted in self._plan:
            feature = self._features[name]
            lists = [found[place] for place, _ in wanted]
            _check_lists(name, feature, lists)
            try:
                columns = [steps.columns.column(0, kind) for steps, (_, kind) in zip(lists, wanted, strict=True)]
                if isinstance(assembler, Fixed):  # a step without a list counts as one without values
                    columns = [column._replace(present=None) for column in columns]
                assembler.check(columns)
                result.append((name, feature, assembler.batch(columns), lists[0].counts))
            except Problem as problem:
                splits = row_offsets(lists[0].counts)
                row = int(np.searchsorted(splits, problem.row, "right")) - 1
                place = f"in step {problem.row - int(splits[row])} of record {row}"
                raise ParseError(f"{_OP}: feature {name!r} {place} {problem}") from None
        return result


def _check_lists(name: str, feature: StepFeature, lists: list[Steps]) -> None:
    """Check that a required feature list is in all records, and that partitions have as many steps as the values."""
    first = lists[0]
    if isinstance(feature, FixedLenSequenceFeature) and not (feature.allow_missing or first.present.all()):
        row = int(np.flatnonzero(~first.present)[0])
        raise ParseError(
            f"{_OP}: feature list {name!r} of record {row} is required, but missing. Set allow_missing=True, or use "
            "VarLenFeature"
        )
    for other, key in zip(lists, keys_of(name, feature), strict=True):
        if (wrong := np.flatnonzero(other.counts != first.counts)).size:
            row = int(wrong[0])
            raise ParseError(
                f"{_OP}: feature list {name!r} of record {row} has {first.counts[row]} steps, but its partition "
                f"{key!r} has {other.counts[row]}"
            )

"""Parser of tf.train.Example records to NumPy values: parse_example, parse_single_example, ExampleParser.

This is the public interface: features.py describes the requested features, kernel_columns.py or columns.py reads them
from the bytes, and assemble.py shapes the values. This module checks arguments and creates the error messages about
records. It does not access files.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io.example.assemble import Assembler, Fixed, assembler_for
from dataset.io.example.columns import INT64, MissingFeature, Problem, kind_of, wrong_kind
from dataset.io.example.features import FeatureSpec, FixedLenSequenceFeature, keys_of
from dataset.io.example.kernel_columns import reader_of
from dataset.io.example.reference import feature_names
from dataset.plan.packed import TAKES_BLOCKS, BytesColumn, is_packed
from dataset.plan.spec import ComponentSpec
from dataset.plan.values import object_column
from dataset.shared_calls import SharedCalls

Array = npt.NDArray[Any]
Records = Sequence[bytes] | Array
Names = Collection[str]
Planned = tuple[str, Assembler, list[tuple[int, int]]]
"""Plan for a feature: its name, its assembler, and the places of its keys and the kinds of their lists."""


def parse_single_example(serialized: bytes, features: Mapping[str, FeatureSpec]) -> dict[str, Any]:
    """Parse one tf.train.Example.

    If an Example contains a key twice, the last one is used. A feature without a list counts as missing; a feature with
    an empty list does not. Features that were not requested are not parsed.

    Args:
        serialized: the bytes of the message.
        features: the features to read, by name.

    Returns:
        The values by name, in the order of ``features``: for FixedLenFeature an array of its shape (a NumPy scalar or
        ``bytes`` for shape ()), for FixedLenSequenceFeature an array of shape (rows, *shape), for VarLenFeature a
        SparseTensor of rank 1, for RaggedFeature a RaggedTensor (a 1-D array if it has no partitions). Arrays of bytes
        are object arrays.

    Raises:
        ParseError: the bytes are not an Example, or a feature is missing and has no default, has another kind, or has
            the wrong number of values.

    >>> from dataset import io
    >>> record = io.encode_example({"label": 3, "words": ["a", "bc"]})
    >>> parse_single_example(record, {"label": io.FixedLenFeature((), np.int64), "words": io.RaggedFeature(bytes)})
    {'label': np.int64(3), 'words': array([b'a', b'bc'], dtype=object)}
    """
    return parser_for(features, ExampleParser).parse_one(serialized)


def parse_example(serialized: Records, features: Mapping[str, FeatureSpec]) -> dict[str, Any]:
    """Parse n tf.train.Examples at once; much faster than n calls of parse_single_example.

    Args:
        serialized: n messages: a sequence of bytes, or an object array of shape (n,).
        features: the features to read, by name.

    Returns:
        The values by name, in the order of ``features``: for FixedLenFeature an array of shape (n, *shape), for
        FixedLenSequenceFeature a padded array of shape (n, max rows, *shape), for VarLenFeature a SparseTensor of rank
        2, for RaggedFeature a RaggedTensor with n rows. Arrays of bytes are object arrays.

    Raises:
        ParseError: as for parse_single_example, with the record's position.

    >>> from dataset import io
    >>> records = [io.encode_example({"x": [1, 2]}), io.encode_example({"x": [3]})]
    >>> parse_example(records, {"x": io.RaggedFeature(np.int64)})
    {'x': RaggedTensor([[1, 2], [3]], dtype=int64)}
    """
    return parser_for(features, ExampleParser).parse_batch(serialized)


P = TypeVar("P")
_recent: dict[int, tuple[dict[str, Any], Any, Any]] = {}
_RECENT_MAX = 32


def parser_for(features: Mapping[str, Any], make: Callable[[Mapping[str, Any]], P]) -> P:
    """Return a cached parser for ``features``: preparing a parser takes as long as parsing fifty records.

    The cache key is the identity of the dict. Its items are compared, too, since the dict may have changed or been
    replaced.
    """
    known = _recent.get(id(features))
    if known is not None and known[0] == features and known[1] is make:
        return known[2]  # type: ignore[no-any-return]
    parser = make(features)
    if type(features) is dict:
        if len(_recent) >= _RECENT_MAX:
            _recent.clear()
        _recent[id(features)] = (features.copy(), make, parser)
    return parser


def _values_of(column: Any) -> list[Any]:
    """Return the values of a column of parsed records, arrays with memory of their own."""
    rows = list(column)
    return [row.copy() for row in rows] if rows and type(rows[0]) is np.ndarray else rows


class FeatureParser:
    """Base of the parsers, which are prepared once for their features: what to read, and the reader.

    Attributes:
        op: the function, for messages.
        kinds: the classes that the features may have; all by default.
        in_lists: whether the features are in the feature lists of SequenceExamples.
    """

    op = "parse_example"
    kinds = tuple(FeatureSpec.__subclasses__())
    in_lists = False

    def __init__(self, features: Mapping[str, Any]) -> None:
        op, kinds = self.op, self.kinds
        if not isinstance(features, Mapping):
            raise TypeError(f"{op}: features must be a dict from name to feature, got {features!r}")
        self._features, keys = dict(features), list[str]()
        self._plan: list[Planned] = []
        for name, feature in self._features.items():
            if not isinstance(feature, kinds):
                names = ", ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"{op}: feature {name!r} must be one of {names}, got {feature!r}")
            more = keys_of(name, feature)
            wanted = [(len(keys) + i, INT64 if i else kind_of(feature.dtype)) for i in range(len(more))]
            self._plan.append((name, assembler_for(feature, is_step=self.in_lists), wanted))
            keys += more
        if wrong := [key for key in keys if not isinstance(key, str)]:
            raise TypeError(f"{op}: keys of features must be str, got {wrong[0]!r}")
        self._reader = reader_of(keys, in_lists=self.in_lists)


class ExampleParser(FeatureParser):
    """Parser function for tf.train.Examples, prepared once for its features; meant for ``Dataset.map``.

    Called with ``bytes``, it returns the same as parse_single_example. Called with n records, a list of ``bytes`` or an
    object array of shape (n,), it returns n parsed elements as columns: an array of shape (n, *shape) for a
    FixedLenFeature, a list of n values for the others. ``Dataset.map`` calls it with many records at once.

    Args:
        features: the features to read, by name.

    Raises:
        ValueError: ``features`` is empty, or contains a FixedLenSequenceFeature without allow_missing.
        TypeError: ``features`` is not a dict of features.

    >>> from dataset import io
    >>> parser = ExampleParser({"x": io.FixedLenFeature((2,), np.int64), "y": io.VarLenFeature(bytes)})
    >>> parser(io.encode_example({"x": [1, 2]}))["x"]
    array([1, 2])
    >>> parser.element_spec["y"]
    SparseTensorSpec(shape=(None,), dtype=bytes)
    >>> parser
    ExampleParser(x: FixedLenFeature, y: VarLenFeature)
    """

    __dataset_vectorized__ = True
    __dataset_no_user_code__ = True
    __dataset_shares_calls__ = True
    __dataset_takes_blocks__ = True

    def __init__(self, features: Mapping[str, FeatureSpec]) -> None:
        super().__init__(features)
        if not self._features:
            raise ValueError("parse_example: features must name at least one feature, got none")
        for name, feature in self._features.items():
            if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
                raise ValueError(
                    f"parse_example: feature {name!r}: a FixedLenSequenceFeature needs allow_missing=True here, as in "
                    "TensorFlow: an empty list can't be distinguished from a missing one"
                )
        self._shared = SharedCalls(self._parse_elements)

    @property
    def features(self) -> dict[str, FeatureSpec]:
        """Return the features to read, by name."""
        return dict(self._features)

    @property
    def element_spec(self) -> dict[str, ComponentSpec]:
        """Return the spec of one parsed element, without parsing."""
        return {name: feature.spec for name, feature in self._features.items()}

    def __call__(self, serialized: bytes | Records) -> dict[str, Any]:
        """Parse bytes into one element, or n records into columns of n elements."""
        if isinstance(serialized, bytes):
            return self.parse_one(serialized)
        records = as_records(serialized)
        if len(records) == 1:  # the case of a plain loop over the elements
            element = self.parse_one(records[0])
            return {name: assembler.row(element[name]) for name, assembler, _ in self._plan}
        return self._parse_many(records, self._features, "lists")

    def parse_batch(self, serialized: Records) -> dict[str, Any]:
        """Parse n records into batched values, like parse_example."""
        return self._parse_many(as_records(serialized), self._features, "batch")

    def parse_columns(self, serialized: Records, read: Names, *, packed: bool, octets: Names = ()) -> dict[str, Any]:
        """Parse n records into columns of n elements, like a call, for a plan that knows how they are used.

        Args:
            serialized: the n records.
            read: the features that are used downstream. If it is cheaper, other features are only checked, and their
                columns contain placeholders.
            packed: whether values of different lengths may be returned as a RaggedColumn.
            octets: features that may be returned as an array of void dtype, if they have shape () and hold byte strings
                of one length.
        """
        return self._parse_many(as_records(serialized), read, "packed" if packed else "lists", octets)

    def packs(self, read: Names) -> bool:
        """Return whether ``packed`` changes the column of a feature in ``read``."""
        return any(assembler.packs for name, assembler, _ in self._plan if name in read)

    def skips(self, read: Names) -> bool:
        """Return whether a feature that is not in ``read`` is checked without decoding."""
        return any(name not in read and not assembler.needs_values for name, assembler, _ in self._plan)

    def parse_one(self, serialized: bytes) -> dict[str, Any]:
        """Parse one record, like parse_single_example."""
        if not isinstance(serialized, bytes):
            raise TypeError(f"parse_single_example: serialized must be bytes, got {type(serialized).__name__}")
        shared = self._shared.result(serialized)
        if shared is not None:
            return shared
        found = self._reader.read_one(serialized)
        result = {}
        for name, assembler, wanted in self._plan:
            values = []
            try:
                for place, kind in wanted:
                    held, items = found[place]
                    if held and held != kind:
                        raise wrong_kind(0, held, kind)
                    values.append(items)
                result[name] = assembler.one(values)
            except Problem as problem:
                raise _sentence(problem, name, "", serialized) from None
        return result

    def _parse_elements(self, records: list[bytes]) -> list[dict[str, Any]]:
        columns = self(records)
        rows = zip(*map(_values_of, columns.values()), strict=True)
        return [dict(zip(columns, row)) for row in rows]  # noqa: B905  # a check of each length would cost as much

    def _parse_many(self, records: Any, read: Names, form: str, octets: Names = ()) -> dict[str, Any]:
        """Parse n records into values of a form: columns that are "packed" or "lists", or one "batch".

        Features not in ``read`` are only checked.
        """
        found = self._reader.columns(records)
        result: dict[str, Any] = {}
        for name, assembler, wanted in self._plan:
            is_read = name in read
            decoded = is_read or assembler.needs_values
            void = name in octets and isinstance(assembler, Fixed) and not assembler.inner
            try:
                columns = [found.column(place, kind, decoded=decoded, void=void) for place, kind in wanted]
                assembler.check(columns)
                shape = assembler.batch if form == "batch" else assembler.packed
                value = shape(columns) if decoded else None
                result[name] = value if is_read else np.zeros(len(records), np.int8)
                if form == "lists" and is_packed(value):
                    result[name] = list(value)
            except Problem as problem:
                raise _sentence(problem, name, f" of record {problem.row}", records[problem.row]) from None
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return ExampleParser, (self._features,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExampleParser) and list(self._features.items()) == list(other._features.items())

    def __hash__(self) -> int:
        return hash(tuple(self._features.items()))

    def __repr__(self) -> str:
        shown = [f"{name}: {type(feature).__name__}" for name, feature in self._features.items()]
        more = [f"... {len(shown) - 8} more"] if len(shown) > 8 else []
        return f"ExampleParser({', '.join(shown[:8] + more)})"


def parse_column(records: Records, features: Any, uses: Names | None, octets: Names) -> dict[str, Any]:
    """Return the results of parse_single_example for a column of records, as a dict of columns.

    Args:
        records: the records.
        features: the features.
        uses: the features that are used; the others are only checked. None for all.
        octets: see ``ExampleParser.parse_columns``.
    """
    if type(features) is not dict:
        raise TypeError("parse_column(): another mapping is user code")
    parser = parser_for(features, ExampleParser)
    return parser.parse_columns(records, features if uses is None else uses, packed=False, octets=octets)


def parse_column_by(parser: ExampleParser, records: Records, uses: Names | None, octets: Names) -> dict[str, Any]:
    """Return the results of a parser for a column of records. Arguments as ``parse_column``."""
    return parser.parse_columns(records, parser.features if uses is None else uses, packed=False, octets=octets)


# An expression graph reads these attributes (runtime/functions/expression.py).
parse_single_example.__dataset_column_twin__ = parse_column  # type: ignore[attr-defined]  # functions have attributes
ExampleParser.__dataset_column_twin__ = parse_column_by  # type: ignore[attr-defined]  # it is not for subclasses
setattr(parse_column, TAKES_BLOCKS, True)
setattr(parse_column_by, TAKES_BLOCKS, True)


def as_records(serialized: Records, op: str = "parse_example") -> Any:
    """Return ``serialized`` as an object array or BytesColumn of its own; ``read_features`` checks the items."""
    advice = ""
    if isinstance(serialized, BytesColumn):
        return serialized.copy()
    if isinstance(serialized, np.ndarray):
        if serialized.ndim == 1 and (serialized.dtype == object or not serialized.size):
            return serialized.astype(object)
        got = f"{serialized.dtype} of shape {serialized.shape}"
        if serialized.ndim == 2 and serialized.dtype == object:
            advice = (
                "An ExampleParser in map() must come before batch(); after batch(), use map(lambda records: "
                "parse_example(records, features)) or map(parser.parse_batch)"
            )
    elif isinstance(serialized, Sequence) and not isinstance(serialized, bytes | str | bytearray):
        return object_column(serialized)
    else:
        got = type(serialized).__name__
    advice = advice or f"Parse a single record with {op.replace('parse_', 'parse_single_')}()"
    kinds = "a sequence of bytes or an object array of shape (n,)"
    raise TypeError(f"{op}: serialized must be {kinds}, got {got}. {advice}")


def _sentence(problem: Problem, name: str, place: str, record: bytes) -> ParseError:
    """Return the complete error for a problem; with the names in the record if the feature is missing."""
    hint = ""
    if isinstance(problem, MissingFeature):
        names = feature_names(record)
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        close = difflib.get_close_matches(name, names[:100], n=1)
        question = f"; did you mean {close[0]!r:.60}?" if close else ""
        hint = f". The record has {', '.join(f'{one!r:.60}' for one in names[:10]) or 'no features'}{more}{question}"
    return ParseError(f"parse_example: feature {name!r}{place} {problem}{hint}")

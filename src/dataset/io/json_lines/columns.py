"""Columns of JSON Lines files: requested or inferred, and the conversion of parsed values to columns.

    true, false                  bool
    integers                     int64, or uint64 if one does not fit into int64
    numbers, not all integers    the nearest float64
    text                         bytes
    lists of one of these        arrays of varying length; lists of such lists are RaggedTensors
    objects                      dicts
    everything else              bytes: its JSON text

"Everything else" is a list of objects, values of several kinds, integers beyond 64 bits, values that are nested more
than 32 deep, or a column that had no value in the inspected rows. A null or a missing key is NaN in floats and ``null``
in JSON text; in other columns it is an error unless there is a replacement. JSON text has the numbers of the file:
integers of any size, and other numbers as the shortest text of the nearest float64.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.io.json_lines.parser import text_of
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, TensorSpec
from dataset.plan.structure import structure_of
from dataset.plan.values import RaggedTensor, splits_of_lengths

_NULL = type(None)
_KINDS: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}, "S": {str}}
_WORDS = {_NULL: "null", bool: "a bool", int: "an integer", float: "a number", str: "text", list: "a list"}
_WORDS[dict] = "an object"
_ROUNDED = re.compile(rb"\de\+\d")
_DEPTH_MAX = 32  # of inferred columns: code that handles nested components is recursive

Tree = dict[str, Any]
Column = npt.NDArray[Any] | list[Any]


class JsonValueError(Exception):
    """Internal error: a row does not match the columns. Callers add the file and the line."""


class JsonColumn:
    """A column that becomes one component.

    Args:
        name: its key, after the keys of the objects that contain it, with dots between them.
        spec: the spec of one value.
        is_json: whether the component is the JSON text of the value.
    """

    is_component: ClassVar[bool] = True  # structure_of() treats it as a component

    def __init__(self, name: str, spec: ComponentSpec, *, is_json: bool = False) -> None:
        self.name = name
        self.spec = spec
        self.is_json = is_json
        self.fill: Any = float("nan") if spec.dtype.kind == "f" else None
        self.fills_lists = False

    def replace_nulls(self, value: Any) -> None:
        """Set the replacement of nulls. TypeError or ValueError if the dtype cannot represent it."""
        self.fill = value.decode() if isinstance(value, bytes) else value
        self.fills_lists = True
        if isinstance(self.fill, np.generic):
            self.fill = self.fill.item()
        if value is None or self.is_json:
            raise ValueError("it must be a value" if value is None else "JSON text represents a null itself")
        try:
            self._scalars([self.fill])
        except JsonValueError as error:
            raise ValueError(str(error)) from None

    def __repr__(self) -> str:
        return f"{'JSON text' if self.is_json else repr(self.spec)}, null={self.fill!r}"

    def convert(self, values: list[Any]) -> Column:
        """Return the components for parsed values; JsonValueError if a value does not match."""
        if self.is_json:
            return [text_of(value) for value in values]
        return self._lists(values) if self.spec.shape else self._scalars(values)

    def _scalars(self, values: list[Any]) -> Column:
        dtype = self.spec.dtype
        kinds = set(map(type, values))
        if _NULL in kinds and self.fill is not None:
            values = [self.fill if value is None else value for value in values]
            kinds = set(map(type, values))
        self._require(kinds, _KINDS[dtype.kind])
        if dtype == BYTES:
            return [value.encode() for value in values]
        try:
            with np.errstate(over="raise"):
                return np.array(values, dtype)
        except (OverflowError, FloatingPointError):
            raise self._error(f"a number is outside the range of {dtype}; pass another dtype in columns") from None

    def _lists(self, values: list[Any]) -> Column:
        assert self.spec.shape is not None  # the rank is known
        sizes = [size for size in self.spec.shape if size is not None]
        if self.fills_lists and None in values:
            empty = np.full(sizes, self.fill, np.dtype(object)).tolist() if len(sizes) == len(self.spec.shape) else []
            values = [empty if value is None else value for value in values]
        count, splits = len(values), []
        for size in self.spec.shape:
            self._require(set(map(type, values)), {list})
            lengths = list(map(len, values))
            if size is not None and set(lengths) - {size}:
                raise self._error(f"a list has {next(iter(set(lengths) - {size}))} values, expected {size}")
            splits.append(splits_of_lengths(lengths, np.int64))
            values = list(itertools.chain.from_iterable(values))
        items = self._scalars(values)
        flat = items if isinstance(items, np.ndarray) else np.fromiter(items, object, len(items))
        if None not in self.spec.shape:
            return flat.reshape(count, *sizes)
        inner: Any = RaggedTensor.from_nested_row_splits(flat, splits[1:]) if splits[1:] else flat
        return [inner[start:stop] for start, stop in itertools.pairwise(splits[0].tolist())]

    def _require(self, kinds: set[type], allowed: set[type]) -> None:
        if _NULL in kinds:
            raise self._error(f"it is null or missing, which {self._type} cannot represent; pass fill_null")
        if not kinds <= allowed:
            found = min(_WORDS[kind] for kind in kinds - allowed)
            raise self._error(f"it is {found}, expected {self._type}; pass the types in columns")

    @property
    def _type(self) -> str:
        scalar = "bytes" if self.spec.dtype == BYTES else self.spec.dtype.name
        return f"lists of {scalar}" if self.spec.shape else scalar

    def _error(self, words: str) -> JsonValueError:
        return JsonValueError(f"column {self.name!r}: {words}")


class JsonColumns:
    """The columns of a dataset.

    Args:
        tree: a JsonColumn for each key, or a dict of them for an object.
        is_closed: whether another key is an error, because the columns were inferred.

    Attributes:
        spec: the spec of an element.
        structure: the structure of an element.
    """

    def __init__(self, tree: Tree, *, is_closed: bool) -> None:
        self.tree = tree
        self.is_closed = is_closed
        self.structure = structure_of(tree)
        self.leaves: list[JsonColumn] = self.structure.flatten(tree)
        self.spec: Any = self.structure.unflatten([leaf.spec for leaf in self.leaves])

    def __repr__(self) -> str:
        return f"{self.tree!r}{' and no others' if self.is_closed else ''}"

    def replace_nulls(self, op: str, fill_null: Mapping[str, Any]) -> None:
        """Set the replacements of nulls by column; ValueError if a column does not exist or a value does not match."""
        by_name = {leaf.name: leaf for leaf in self.leaves}
        for name, value in fill_null.items():
            if name not in by_name:
                raise ValueError(f"{op}(): fill_null names {name!r}, but the columns are {list(by_name)}")
            try:
                by_name[name].replace_nulls(value)
            except ValueError as error:
                raise ValueError(f"{op}(): fill_null[{name!r}] is {value!r}: {error}") from None

    def convert(self, rows: Sequence[Mapping[str, Any]]) -> list[Column]:
        """Return one column per component of parsed rows; JsonValueError if a row does not match."""
        columns: list[Column] = self.structure.flatten(self._convert(self.tree, rows, ""))
        return columns

    def may_be_rounded(self, columns: Sequence[Column]) -> bool:
        """Return whether JSON text among the converted columns contains numbers that orjson may have rounded."""
        texts = [column for leaf, column in zip(self.leaves, columns, strict=True) if leaf.is_json]
        return any(b"e+" in text and _ROUNDED.search(text) for column in texts for text in column)

    def _convert(self, tree: Tree, rows: Sequence[Mapping[str, Any]], prefix: str) -> dict[str, Any]:
        if self.is_closed and (others := set().union(*rows) - tree.keys()):
            raise JsonValueError(
                f"column {prefix + min(others)!r}: the rows from which the columns were inferred do not have this key; "
                "pass columns, or inspect more rows with from_json_lines(num_rows_for_inference=)"
            )
        return {name: self._converted(part, _values(rows, name), prefix + name) for name, part in tree.items()}

    def _converted(self, part: Any, values: list[Any], name: str) -> Any:
        if isinstance(part, JsonColumn):
            return part.convert(values)
        if kinds := set(map(type, values)) - {dict, _NULL}:
            raise JsonValueError(f"column {name!r}: it is {min(_WORDS[kind] for kind in kinds)}, expected an object")
        return self._convert(part, [value or {} for value in values], f"{name}.")


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    try:
        return list(map(operator.itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]


# Requested columns


def requested_tree(op: str, columns: Mapping[str, Any], prefix: str = "") -> Tree:
    """Return the columns with the types that a user requested.

    Args:
        op: the name of the op for messages.
        columns: for each key a dtype, a TensorSpec or RaggedTensorSpec, ``object`` for JSON text, or such a dict.
        prefix: the keys of the objects that contain these columns.

    Raises:
        TypeError: a key or a type is not one of these.
        ValueError: there is no column, or the shape of a spec is not supported.
    """
    if not columns:
        raise ValueError(f"{op}(): columns must name at least one column{f' in {prefix[:-1]!r}' if prefix else ''}")
    return {name: _requested(op, f"{prefix}{name}", kind) for name, kind in columns.items()}


def _requested(op: str, name: Any, kind: Any) -> Any:
    if isinstance(kind, Mapping):
        return requested_tree(op, kind, f"{name}.")
    try:
        spec = kind if isinstance(kind, ComponentSpec) else TensorSpec((), kind)
    except TypeError:
        spec = TensorSpec((), np.void)
    if spec.dtype == object and spec.shape == ():
        return JsonColumn(name, TensorSpec((), BYTES), is_json=True)
    if spec.dtype.kind not in _KINDS or not isinstance(spec, TensorSpec | RaggedTensorSpec):
        raise TypeError(
            f"{op}(): the type of column {name!r} must be a bool, int or float dtype, bytes, object for JSON text, a "
            f"TensorSpec, a RaggedTensorSpec or a dict of columns, got {kind!r:.100}"
        )
    shape = spec.shape
    ragged = spec.ragged_rank if isinstance(spec, RaggedTensorSpec) else 0
    is_ragged = shape is not None and len(shape) == ragged + 1 and not any(shape)
    if shape is None or not (is_ragged or (None not in shape and not ragged)):
        raise ValueError(
            f"{op}(): the shape of column {name!r} must be known, (None,), or that of a RaggedTensorSpec whose "
            f"dimensions are all ragged, got {kind!r}"
        )
    return JsonColumn(name, spec)


# Inferred columns


def inferred_tree(rows: Sequence[Mapping[str, Any]], prefix: str = "", level: int = 1) -> Tree:
    """Return the columns of parsed rows, in the order in which their keys first appear."""
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    return {name: _inferred(f"{prefix}{name}", _values(rows, name), level) for name in names}


def _inferred(name: str, values: list[Any], level: int) -> Any:
    values = [value for value in values if value is not None]
    if set(map(type, values)) == {dict} and any(values) and level < _DEPTH_MAX:
        return inferred_tree(values, f"{name}.", level + 1)
    depth = 0
    while values and set(map(type, values)) == {list}:
        values = [value for value in itertools.chain.from_iterable(values) if value is not None]
        depth += 1
    dtype = _common_dtype(values)
    if dtype is None or depth > _DEPTH_MAX:
        return JsonColumn(name, TensorSpec((), BYTES), is_json=True)
    spec = RaggedTensorSpec((None,) * depth, dtype, depth - 1) if depth else TensorSpec((), dtype)
    return JsonColumn(name, spec)


def _common_dtype(values: list[Any]) -> np.dtype[Any] | None:
    """Return the dtype that represents these values; None if there is none."""
    kinds = set(map(type, values))
    if kinds == {int}:
        limits = map(np.iinfo, (np.int64, np.uint64))
        return next((info.dtype for info in limits if info.min <= min(values) and max(values) <= info.max), None)
    dtypes = [np.dtype(np.bool_), np.dtype(np.float64), BYTES]
    return next((dtype for dtype in dtypes if kinds and kinds <= _KINDS[dtype.kind]), None)

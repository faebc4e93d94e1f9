"""Layout of an element: the requested columns of a table as a dict of components, with nested dicts for structs.

The keys are in the order of ``columns``, or of the file if ``columns`` is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.io.arrow.arrow_values import Converted, Converter
from dataset.io.arrow.pyarrow_library import library
from dataset.io.arrow.types import UnsupportedTypeError, component_of, holds_null, plain_type, value_type
from dataset.plan.spec import ComponentSpec
from dataset.plan.structure import Structure, structure_of


class Leaf:
    """A column that becomes one component.

    Attributes:
        path: the names of the structs that contain the column, then its own name.
        kind: its Arrow type.
        spec: the spec of one value.
        fill: the value that replaces nulls, as an Arrow scalar, or None.
    """

    is_component: ClassVar[bool] = True  # structure_of() treats it as a component

    def __init__(self, path: tuple[str, ...], kind: Any, spec: ComponentSpec) -> None:
        self.path = path
        self.kind = kind
        self.spec = spec
        self.fill: Any = None

    @property
    def name(self) -> str:
        """The dotted name that users write, such as ``image.bytes``."""
        return ".".join(self.path)

    @property
    def takes_nulls(self) -> bool:
        """Whether the column may contain nulls."""
        return self.fill is not None or (holds_null(self.kind) and not _has_lists(self.spec))

    def taken_from(self, table: Any) -> Any:
        """Return this column of a table as a chunked array. A null struct is a null in each of its fields."""
        column = table.column(self.path[0])
        for name in self.path[1:]:
            pa = library()
            place = [field.name for field in plain_type(column.type)].index(name)
            parts = [storage_of(chunk).flatten()[place] for chunk in column.chunks]
            column = pa.chunked_array(parts, plain_type(column.type)[place].type)
        return column


def storage_of(array: Any) -> Any:
    """Return an Arrow array without its extension type, if it has one."""
    return array.storage if isinstance(array, library().ExtensionArray) else array


def _has_lists(spec: ComponentSpec) -> bool:
    return spec.shape is not None and None in spec.shape


class ArrowLayout:
    """The requested columns of a table, in the order of an element's components.

    Args:
        op: the name of the operator for messages.
        schema: the schema of the table.
        columns: the names of the columns, with dots for fields of structs; None for all.
        where: the name of the table for messages.

    Raises:
        ValueError: a column does not exist.
        SpecError: the type of a column is not supported.
    """

    def __init__(self, op: str, schema: Any, columns: Sequence[str] | None, where: str) -> None:
        self.op = op
        self.where = where
        self.takes_all = columns is None
        tree = self._tree(schema, columns)
        self.structure: Structure = structure_of(tree)
        self.leaves: list[Leaf] = self.structure.flatten(tree)
        if not self.leaves:
            raise ValueError(f"{op}(): an element needs at least one column, {where} has none")
        self.spec: Any = self.structure.unflatten([leaf.spec for leaf in self.leaves])

    def _tree(self, schema: Any, columns: Sequence[str] | None) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for name in schema.names if columns is None else columns:
            path = (name,) if name in schema.names else tuple(name.split("."))
            kind = self._kind_at(schema, path, name)
            place = tree
            for part in path[:-1]:
                place = place.setdefault(part, {})
            place[path[-1]] = self._branch(path, kind)
        return tree

    def _kind_at(self, schema: Any, path: tuple[str, ...], name: str) -> Any:
        fields, kind = list(schema), None
        for depth, part in enumerate(path):
            found = [field.type for field in fields if field.name == part]
            inside = f" in {'.'.join(path[:depth])!r}" if depth else ""
            if not found:
                there = [field.name for field in fields]
                raise ValueError(f"{self.op}(): {self.where} has no column {name!r}; the columns{inside} are {there}")
            if len(found) > 1:
                raise ValueError(f"{self.op}(): {self.where} has several columns {part!r}{inside}; names must differ")
            kind = found[0]
            fields = list(plain_type(kind)) if library().types.is_struct(plain_type(kind)) else []
        return kind

    def _branch(self, path: tuple[str, ...], kind: Any) -> Any:
        plain = plain_type(kind)
        if library().types.is_struct(plain):
            return {field.name: self._branch((*path, field.name), field.type) for field in plain}
        try:
            return Leaf(path, kind, component_of(kind))
        except UnsupportedTypeError as error:
            raise SpecError(
                f"{self.op}(): column {'.'.join(path)!r} of {self.where} has the type {kind}: {error}. Leave it "
                "out with columns=[...]"
            ) from None

    def take_fills(self, fill_null: Mapping[str, Any]) -> None:
        """Set the values that replace nulls, by column.

        Raises:
            ValueError: a column does not exist, or a value does not match its type.
        """
        by_name = {leaf.name: leaf for leaf in self.leaves}
        for name, value in fill_null.items():
            if name not in by_name:
                raise ValueError(f"{self.op}(): fill_null names {name!r}, but the columns are {list(by_name)}")
            by_name[name].fill = self._fill(name, value, value_type(by_name[name].kind))

    def _fill(self, name: str, value: Any, kind: Any) -> Any:
        pa = library()
        is_time = isinstance(value, np.datetime64 | np.timedelta64)  # which pa.scalar() takes only in its own unit
        try:
            scalar = pa.array(np.array([value])).cast(kind)[0] if is_time else pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            scalar = None
        truncated = isinstance(value, float) and pa.types.is_integer(kind)  # pyarrow would truncate it silently
        if scalar is None or not scalar.is_valid or truncated:
            raise ValueError(f"{self.op}(): fill_null[{name!r}] must be a value of {kind}, got {value!r}")
        return scalar

    @property
    def projection(self) -> list[str]:
        """The names of the columns to read."""
        return [leaf.name for leaf in self.leaves]

    def difference(self, other: ArrowLayout) -> str | None:
        """Return a description of how ``other`` differs from this layout; None if their elements are alike."""
        mine = {leaf.name: leaf.spec for leaf in self.leaves}
        theirs = {leaf.name: leaf.spec for leaf in other.leaves}
        for name, spec in mine.items():
            if name in theirs and theirs[name] != spec:
                return f"column {name!r} is {theirs[name]!r}, but {spec!r} in {self.where}"
        if missing := [name for name in mine if name not in theirs]:
            return f"column {missing[0]!r} of {self.where} is missing"
        if self.takes_all and (extra := [name for name in theirs if name not in mine]):
            return f"column {extra[0]!r} is not in {self.where}; select the columns to read with columns=[...]"
        return None

    def columns_of(self, table: Any) -> list[TableColumn]:
        """Return the columns of a table, one for each leaf."""
        return [TableColumn(leaf, leaf.taken_from(table)) for leaf in self.leaves]


class TableColumn:
    """Converter of slices of one column of a table in memory.

    Args:
        leaf: the column.
        chunked: its values, as a chunked array.
    """

    def __init__(self, leaf: Leaf, chunked: Any) -> None:
        self.leaf = leaf
        self._chunked = chunked
        self._converter = Converter(leaf.fill)

    def rows(self, start: int, stop: int) -> Converted:
        """Return the values of some rows, and which rows are bad."""
        part = self._chunked.slice(start, stop - start)
        return self._converter.convert(part.chunk(0) if part.num_chunks == 1 else part.combine_chunks())

    @property
    def null_message(self) -> str:
        """The error message for a bad row."""
        return null_message(self.leaf)


def null_message(leaf: Leaf) -> str:
    """Return the error message for a row with a null that has no replacement."""
    return (
        f"column {leaf.name!r} contains a null, which the dtype of {leaf.kind} cannot represent; replace nulls with "
        f"fill_null={{{leaf.name!r}: ...}}, or leave the column out with columns=[...]"
    )


def require_fill_null(op: str, fill_null: Any) -> dict[str, Any]:
    """Check and return ``fill_null`` as a dict; TypeError if it is not a mapping by column name."""
    if fill_null is None:
        return {}
    if not isinstance(fill_null, Mapping) or not all(isinstance(name, str) for name in fill_null):
        raise TypeError(f"{op}(): fill_null must be a dict from column name to value, got {fill_null!r}")
    return dict(fill_null)

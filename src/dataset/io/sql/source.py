"""Node and operator of ``SqlDataset``: the rows of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.amounts import STEP_ELEMENTS, TEXT_MAX
from dataset.errors import SpecError, StateError
from dataset.io.files.opening import path_string
from dataset.io.files.remote.paths import is_remote
from dataset.io.sql.query import Driver, blocks_of_rows
from dataset.io.sql.sql_values import ValueRefusedError, column_of, inferred_dtype, sql_dtype
from dataset.ops.sources.generator import GeneratorOperator
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.origin import function_name
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF, structure_of, tuple_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.resources.exceptions import with_location
from dataset.world.interrupts import interruptible


@dataclass(frozen=True, eq=False)
class SqlQuery(Node, reads_files=True):
    """Node that reads the rows of ``query``, in the order in which the database returns them.

    Attributes:
        output_types: dtypes in the structure of an element, replaced by the element_spec; None to infer it from the
            first row.
    """

    op: ClassVar[str] = "SqlDataset"
    driver: Driver
    source: Any = field(repr=False)  # it may contain a password
    query: str
    output_types: Any = None

    def __post_init__(self) -> None:
        if not callable(self.driver):
            self._set("source", _checked_source(self.driver, self.source))
        if isinstance(self.query, bytes):
            self._set("query", self.query.decode())
        if not isinstance(self.query, str):
            raise TypeError(f"SqlDataset(): query must be text, got {self.query!r} of type {type(self.query).__name__}")
        if self.output_types is not None:
            self._set("output_types", _spec_of_types(self.output_types))

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(pure=not callable(self.driver), static_spec=self.output_types is not None)

    def parameters(self) -> dict[str, Any]:
        return {"driver": self.driver, "query": self.query, "output_types": repr(self.output_types)}

    def fingerprint_fields(self) -> Any:
        return [self.parameters(), self.source]

    def label(self) -> str:
        query = " ".join(self.query.split())
        shown = query if len(query) <= TEXT_MAX else f"{query[: TEXT_MAX - 3]}..."
        driver = function_name(self.driver) if callable(self.driver) else self.source
        return f"SqlDataset({driver}, {shown!r})"

    def _element_spec(self) -> Any:
        return probed_spec(self) if self.output_types is None else self.output_types

    def lower(self, context: ExecutionContext) -> Operator:
        return SqlOperator(self, SqlRows(self.label(), self.output_types), source_lineage(context, self))


def _checked_source(driver: Any, source: Any) -> Any:
    if driver not in ("sqlite", b"sqlite"):
        kind = ValueError if isinstance(driver, str | bytes) else TypeError
        raise kind(
            f'SqlDataset(): driver_name must be "sqlite" or, for any other database, a function that opens a DB-API '
            f"connection, got {driver!r}"
        )
    try:
        name = path_string(source)
    except (TypeError, ValueError) as error:
        raise type(error)(f"SqlDataset(): data_source_name: {error}") from None
    if is_remote(name) and not name.startswith("file:"):  # SQLite accepts file: URIs
        raise ValueError(
            f"SqlDataset(): SQLite reads local files only, got {name!r:.200}; copy the file to this machine first"
        )
    return name


def _spec_of_types(types: Any) -> Any:
    structure = structure_of(types)
    try:
        specs = [TensorSpec((), sql_dtype(dtype)) for dtype in structure.flatten(types)]
    except TypeError as error:
        raise TypeError(
            f"SqlDataset(): output_types must hold a dtype for each column, got {types!r}: {error}"
        ) from None
    if not specs:
        raise ValueError(f"SqlDataset(): output_types must hold at least one dtype, got {types!r}")
    return structure.unflatten(specs)


class SqlOperator(GeneratorOperator):
    """Operator of ``SqlQuery``: a generator yields blocks of rows, and the rows are the values.

    It reads SQLite in blocks, but only as many rows as requested from a user's connection. An exception of the database
    ends the iteration, because no cursor continues after one. A row with an invalid value raises in its place.
    """

    can_stop = False
    _rows: SqlRows

    def _advance(self, n: int) -> Chunk | None:
        if callable(self.node.driver):
            return super()._advance(n)
        chunk = super()._advance(max(n, STEP_ELEMENTS))
        if chunk is not None:
            self._ready.put(chunk)
        return None

    def _open(self) -> Any:
        node, rows = self.node, self._rows
        blocks = blocks_of_rows(node.driver, node.source, node.query, rows.begin, rows.learn)
        next(blocks)
        return blocks

    @interruptible
    def _collect(self, rows: list[Any], n: int) -> None:
        rows += self._values.send(n)

    def _end_with(self, error: BaseException) -> None:  # noqa: ARG002  # every exception is the end
        self._ended = True

    def _too_few(self, count: int) -> Exception:
        return StateError(f"the query now returns only {count} rows, cannot resume after row {self.at}")

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, ValueRefusedError):
            error = SpecError(f"{self.node}: row {self.at}{error}")
        else:
            error = with_location(error, self.node, self.at, "row")
        self._ready.put(error)
        self.at += 1


class SqlRows(SignatureRows):
    """Converts rows to chunks. The position of a row, which messages begin with, is added by the operator."""

    def begin(self, description: Any) -> None:
        """Use the names of the columns in a cursor's description."""
        if description is None:
            raise ValueError("the statement does not return rows; it must be a SELECT or a similar statement")
        self._names = [str(column[0]) for column in description]
        if self.specs and len(self._names) != len(self.specs):
            raise SpecError(
                f"the query returns {len(self._names)} columns, {self._names}, but output_types has "
                f"{len(self.specs)}; the numbers must be equal"
            )

    def learn(self, rows: list[Any]) -> list[Any]:
        """Return the rows. Without declared dtypes, the first row determines those of all."""
        if isinstance(rows[0], Mapping):
            kind = type(rows[0]).__name__
            raise TypeError(f"rows must be sequences of values, got {kind}; open the connection without a row factory")
        if self._structure is None:
            dtypes = list(map(inferred_dtype, rows[0]))
            if None in dtypes:
                column = dtypes.index(None)
                raise SpecError(
                    f"row 0, column {self._names[column]!r}: cannot infer the dtype of the column from "
                    f"{rows[0][column]!r:.100}; pass output_types"
                )
            self.specs = [TensorSpec((), dtype) for dtype in dtypes if dtype is not None]
            self._structure = tuple_of(*[LEAF] * len(dtypes))  # last, as an interrupt may come in between
        return rows

    def chunk(self, rows: list[Any]) -> Chunk:
        if set(map(len, rows)) != {len(self.specs)}:
            raise ValueRefusedError(f" has {len(rows[0])} values, expected {len(self.specs)}")
        assert self._structure is not None  # see learn()
        columns = []
        for name, values, spec in zip(self._names, zip(*rows, strict=True), self.specs, strict=True):
            try:
                columns.append(column_of(values, spec.dtype))
            except ValueRefusedError as refused:
                way_out = "CAST it in the query, or pass another dtype in output_types"
                raise ValueRefusedError(f", column {name!r}: {refused}; {way_out}") from None
        return Chunk(self._structure, len(rows), columns)

"""Node and operator of ``SqlDataset``: the rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError, StateError
from dataset.io.files.opening import path_string
from dataset.io.files.remote.paths import is_remote
from dataset.io.sql.query import Driver, RunningQuery
from dataset.io.sql.sql_values import ValueRefusedError, column_of, inferred_dtype, sql_dtype
from dataset.plan.node import Node
from dataset.plan.origin import function_name
from dataset.plan.spec import TensorSpec, flatten_spec
from dataset.plan.structure import LEAF, Structure, structure_of, tuple_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.iteration.iterator import probed_spec
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.resources.interrupts import call

BLOCK_ROWS = 1024  # fetched at once if reading ahead has no observable effect
_SHOWN_MAX = 60  # characters of a query, in plans and errors


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
        self._set("source", _checked_source(self.driver, self.source))
        if isinstance(self.query, bytes):
            self._set("query", self.query.decode())
        if not isinstance(self.query, str):
            raise TypeError(f"SqlDataset(): query must be text, got {self.query!r} of type {type(self.query).__name__}")
        if self.output_types is not None:
            self._set("output_types", _spec_of_types(self.output_types))

    @property
    def traits(self) -> Traits:
        return replace(self.declared, pure=not callable(self.driver), static_spec=self.output_types is not None)

    def parameters(self) -> dict[str, Any]:
        return {"driver": self.driver, "query": self.query, "output_types": repr(self.output_types)}

    def fingerprint_fields(self) -> Any:
        return [self.parameters(), self.source]

    def label(self) -> str:
        query = " ".join(self.query.split())
        shown = query if len(query) <= _SHOWN_MAX else f"{query[: _SHOWN_MAX - 3]}..."
        driver = function_name(self.driver) if callable(self.driver) else self.source
        return f"SqlDataset({driver}, {shown!r})"

    def _element_spec(self) -> Any:
        return probed_spec(self) if self.output_types is None else self.output_types

    def lower(self, context: ExecutionContext) -> Operator:  # noqa: ARG002  # has no inputs to build
        return SqlOperator(self)


def _checked_source(driver: Any, source: Any) -> Any:
    if callable(driver):
        return source
    if not isinstance(driver, str | bytes):
        raise TypeError(f'SqlDataset(): driver_name must be "sqlite" or a function, got {driver!r}')
    if driver not in ("sqlite", b"sqlite"):
        raise ValueError(
            f'SqlDataset(): driver_name must be "sqlite", got {driver!r}; for any other database pass a function that '
            "opens a DB-API connection"
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


class SqlOperator(Operator):
    """Operator of ``SqlQuery``: executes the query at the first pull, and closes the connection after the last row.

    It reads SQLite in blocks, but only as many rows as requested from a user's connection. An exception of the database
    ends the iteration, because no cursor continues after one. A row with an invalid value raises in its place.

    The saved state is the number of rows produced. To resume, the query is executed again and these rows are skipped.
    """

    def __init__(self, node: SqlQuery) -> None:
        self.node = node
        self._running: RunningQuery | None = None
        self._ready = Pending()
        self._given = 0
        self._fetched = 0
        self._ended = False
        self._names: list[str] = []
        self._structure: Structure = LEAF
        self._dtypes: Sequence[np.dtype[Any]] = ()
        if node.output_types is not None:
            self._structure, specs = flatten_spec(node.output_types)
            self._dtypes = [spec.dtype for spec in specs]

    def pull(self, n: int) -> Chunk | None:
        while not self._ready:
            if self._ended:
                return None
            self._fetch(n)
        before = len(self._ready)
        try:
            return self._ready.give(n)
        finally:
            self._given += before - len(self._ready)

    def _fetch(self, n: int) -> None:
        """Fetch the next rows, and the exception or the end that follows them."""
        rows: list[Any] = []
        try:
            self._take(rows, n)
        except Exception as error:  # noqa: BLE001  # raised at its place
            self._convert(rows)
            error.add_note(f"in {self.node.location()}, row {self._fetched}")
            # An exception queued after rows has no traceback: see _convert().
            self._ready.put(error.with_traceback(None) if rows else error)
            self._end()
        except BaseException:  # an interrupt may lose rows in the driver, so the query is executed again
            self._convert(rows)
            running, self._running = self._running, None
            if running is not None:
                running.close()
            raise
        else:
            self._convert(rows)
            if not rows:
                self._end()

    def _take(self, rows: list[Any], n: int) -> None:
        """Append the next 1 to ``n`` rows to the list, or more if this is not observable; none at the end."""
        if self._running is None:
            self._start()
        assert self._running is not None
        call(self._running.fetch_into, rows, n if not self.node.traits.pure else max(n, BLOCK_ROWS))
        if rows and not self._dtypes:
            self._infer(rows[0])

    def _start(self) -> None:
        running = call(RunningQuery, self.node.driver, self.node.source, self.node.query)
        try:
            self._names = running.names
            self._check_count()
            self._pass_over(running, self._given)
        except BaseException:
            running.close()
            raise
        self._running = running

    def _check_count(self) -> None:
        got, declared = len(self._names), len(self._dtypes)
        if declared and got != declared:
            raise SpecError(
                f"the query returns {got} columns, {self._names}, but output_types has {declared}; the numbers must be "
                "equal"
            )

    def _pass_over(self, running: RunningQuery, count: int) -> None:
        """Skip ``count`` rows, to resume the iteration after them."""
        skipped = 0
        if count and not self._dtypes:
            first: list[Any] = []
            call(running.fetch_into, first, 1)
            if first:
                self._infer(first[0])
            skipped = len(first)
        skipped += call(running.skip, count - skipped)
        if skipped < count:
            raise StateError(f"the query now returns only {skipped} rows, cannot resume after row {count}")
        self._fetched = count

    def _infer(self, row: Sequence[Any]) -> None:
        dtypes = [inferred_dtype(value) for value in row]
        if None in dtypes:
            column = dtypes.index(None)
            raise SpecError(
                f"{self._place(0, column)}: cannot infer the dtype of the column from {row[column]!r:.100}; pass "
                "output_types"
            )
        self._dtypes = [dtype for dtype in dtypes if dtype is not None]
        self._structure = tuple_of(*[LEAF] * len(dtypes))

    def _convert(self, rows: list[Any]) -> None:
        """Convert rows and queue them; queue an exception for each row with an invalid value.

        The exceptions are not raised here: their tracebacks would keep the calling frames and the iterator alive.
        """
        if not rows or not self._dtypes:
            return
        refusal = ""
        try:
            self._ready.put(Chunk(self._structure, len(rows), self._columns(rows)))
            self._fetched += len(rows)
        except ValueRefusedError as refused:
            refusal = str(refused)
        if refusal and len(rows) == 1:
            self._ready.put(SpecError(f"{self.node.location()}: {refusal}"))
            self._fetched += 1
        elif refusal:
            self._convert(rows[: len(rows) // 2])
            self._convert(rows[len(rows) // 2 :])

    def _columns(self, rows: list[Any]) -> list[Any]:
        if set(map(len, rows)) != {len(self._dtypes)}:
            raise ValueRefusedError(f"row {self._fetched} has {len(rows[0])} values, expected {len(self._dtypes)}")
        columns = []
        for number, (values, dtype) in enumerate(zip(zip(*rows, strict=True), self._dtypes, strict=True)):
            try:
                columns.append(column_of(values, dtype))
            except ValueRefusedError as refused:
                place = self._place(self._fetched, number)
                way_out = "CAST it in the query, or pass another dtype in output_types"
                raise ValueRefusedError(f"{place}: {refused}; {way_out}") from None
        return columns

    def _place(self, row: int, column: int) -> str:
        return f"row {row}, column {self._names[column]!r}"

    def _end(self) -> None:
        self._ended = True
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def save(self) -> State:
        return {"op": self.node.op, "row": self._given, "ended": self._ended and not self._ready}

    def load(self, state: State) -> None:
        self._given, self._ended = int(state["row"]), bool(state["ended"])

    def close(self) -> None:
        self._end()
        self._ready.clear()

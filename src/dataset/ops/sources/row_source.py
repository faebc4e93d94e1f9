"""Row sources: base node and operator of sources with random access to rows, such as arrays and indexed files.

Rows that skip and shard drop are never read: the optimizer merges these ops into the source (slice_pushdown). A shuffle
only permutes row numbers (shuffle_before_gather). One operator then takes the rows: that moves 8 bytes per element
through the buffer, regardless of the row size. Rows of indexed files are read in output order.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from dataset.amounts import AHEAD_ELEMENTS
from dataset.ops.sources.range import Range, RangeOperator
from dataset.options import FilesOptions
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, RowsNode, UnaryNode, is_exact, is_infallible
from dataset.plan.structure import Structure
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk, Remainder
from dataset.runtime.chunks.lineage import Lineage, with_epochs_of
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import IndexedOperator, Operator, UnaryOperator
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.position import Position
from dataset.runtime.state.replay_log import ReplayLog


class Rows(ABC):
    """Row reader of a source, open for one iteration. By default, every error is raised and ``close`` does nothing.

    Attributes:
        files: the options for files that it opens; None for the defaults.
    """

    files: FilesOptions | None = None

    @abstractmethod
    def take(self, numbers: Array) -> Chunk:
        """Return the rows with these numbers, in this order, or the first few of them.

        Raises:
            Exception: in place of the first of them.
        """

    def skips_error(self, error: Exception) -> bool:  # noqa: ARG002  # used by overrides
        """Return whether to drop a row that failed with this error; if so, log and count it."""
        return False

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Release open resources. A second call does nothing."""


@dataclass(frozen=True, eq=False)
class RowSource(RowsNode, seekable=True, indexable=True):
    """Base source node whose element ``i`` is row ``rows[i]``."""

    rows: range | None = field(default=None, kw_only=True, repr=False)
    """The numbers of the rows that are elements; by default all. Only the optimizer sets fewer."""

    @property
    @abstractmethod
    def all_rows(self) -> range:
        """The numbers of all rows."""

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The structure of the elements."""

    @property
    def rows_at_once(self) -> int:
        """The minimum number of rows to take at once, if taking single rows is expensive."""
        return 1

    @abstractmethod
    def open_rows(self, skipped: DroppedCount) -> Rows:
        """Open a row reader; ``skipped`` counts dropped rows."""

    def element(self, position: int) -> Any:
        """Return the element at an existing position."""
        return self.open_rows(DroppedCount()).take(np.array([self.places[position]])).only()

    def subrange(self, places: slice) -> Self:
        """Return a source with the elements at these positions."""
        return self.with_rows(self.places[places])

    def gathered(self) -> Gather:
        taken = self.places
        numbers = Range(taken.start, taken.stop, taken.step, origin=self.origin)
        return Gather(numbers, self.with_rows(self.all_rows), name=self.name, origin=self.origin)

    def with_rows(self, rows: range) -> Self:
        """Return the same source with other rows."""
        part = copy.copy(self)  # copied, because __post_init__ may be slow
        part._set("rows", rows)  # noqa: SLF001  # same class
        return part

    @property
    def places(self) -> range:
        """The numbers of the rows that are elements."""
        return self.all_rows if self.rows is None else self.rows

    @property
    def takes_all(self) -> bool:
        """Whether all rows are elements, in their order."""
        return self.places == self.all_rows

    @property
    def may_skip_rows(self) -> bool:
        """Whether failed rows may be dropped, so that a position does not determine the element."""
        return False

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(gatherable=not self.may_skip_rows)

    def cardinality(self) -> int:
        return len(self.places)

    def label(self) -> str:
        rows = self.places
        if self.takes_all:
            return self.op
        return f"{self.op}[{rows.start}:{rows.stop}{f':{rows.step}' if rows.step != 1 else ''}]"

    def records(self, context: ExecutionContext) -> Callable[[Array], Lineage] | None:
        """Return a function that returns the lineage of the rows with some numbers; None if it is not recorded."""
        writer = source_lineage(context, self)
        return None if writer is None else writer.of

    def lower(self, context: ExecutionContext) -> Operator:
        return RowsOperator(RangeOperator(self.places, np.dtype(np.int64)), self, context)


@dataclass(frozen=True, eq=False)
class Gather(UnaryNode, gathers=True, elastic=True):
    """Node that takes the rows of ``rows`` with the numbers from its input. Only the optimizer creates it.

    Reading numbers ahead is unobservable: the optimizer never puts user code upstream.
    """

    op: ClassVar[str] = "gather"
    rows: RowSource

    @lazy_property
    def traits(self) -> Traits:
        rows = self.rows.traits
        return super().traits.having(pure=rows.pure, static_spec=rows.static_spec, infallible=rows.exact)

    @lazy_property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def label(self) -> str:
        return f"gather({self.rows.label()})"

    def parameters(self) -> dict[str, Any]:
        return self.rows.parameters()

    def _element_spec(self) -> Any:
        return self.rows.element_spec

    def input_positions(self, positions: Array) -> Array | None:
        return None if self.rows.may_skip_rows else positions

    def lower(self, context: ExecutionContext) -> Operator:
        return RowsOperator(context(self.source), self.rows, context, Gather.op)


class RowsOperator(UnaryOperator, IndexedOperator):
    """Operator that takes rows by the numbers from its input. Buffers numbers read ahead, and some of their rows.

    Reading numbers ahead is unobservable: the input calls no user code. A state holds a position of the input instead
    of the numbers.

    Args:
        numbers: the operator that yields row numbers.
        rows: the source of the rows.
        context: the execution context of the source.
        op: the name of the op; by default that of ``rows``.
    """

    op = ""

    def __init__(self, numbers: Operator, rows: RowSource, context: ExecutionContext, op: str | None = None) -> None:
        super().__init__(numbers)
        self.op = op or rows.op
        self.rows = rows.open_rows(context.skipped)
        self.rows.files = context.iteration.options.files
        self._records = rows.records(context)
        self.rows_may_fail = not is_exact(rows)
        self.rows_left_out = rows.may_skip_rows
        self.rows_at_once = rows.rows_at_once
        self._log = ReplayLog(numbers, self.op)
        self._ahead: Array = np.zeros(0, np.int64)  # row numbers
        self._ahead_lineage: Lineage | None = None  # of the numbers
        self._given = 0  # how many rows of these were returned
        self._taken = Remainder()

    def gather(self, positions: Array) -> Chunk:
        assert isinstance(self.source, IndexedOperator)  # for the rows of a RowSource, a range
        numbers: Array = self.source.gather(positions).columns()[0]  # type: ignore[assignment]  # an array
        chunk = self.rows.take(numbers)
        if self._records is not None:
            chunk.lineage = self._records(numbers[: chunk.length])
        return chunk

    def pull(self, n: int) -> Chunk | None:
        if not self._taken and not self._take(max(n, self.rows_at_once)):
            return None
        chunk = self._taken.give(n)
        assert chunk is not None
        self._given += chunk.length
        return chunk

    def _take(self, n: int) -> bool:
        """Take the next rows; return False if there are no more."""
        while self._given < len(self._ahead) or self._read_numbers(n):
            try:
                chunk = self.rows.take(self._ahead[self._given : self._whole_runs(self._given + n)])
            except Exception as error:
                self._given += 1  # a failed row counts
                if not self.rows.skips_error(error):
                    raise
            else:
                if self._records is not None:
                    self._trace(chunk)
                self._taken = Remainder(chunk)
                return True
        self.rows.close()
        return False

    def _whole_runs(self, stop: int) -> int:
        """Return ``stop``, or the end of the run of adjacent rows that it would divide, if that is near.

        The first rows of the run were read with one request, which may as well return the others.
        """
        if self.rows_at_once == 1:
            return stop
        near = self._ahead[stop - 1 : stop + self.rows_at_once + 1]
        ends = np.flatnonzero(np.diff(near) != 1)
        return stop + int(ends[0]) if len(ends) else stop

    def _trace(self, chunk: Chunk) -> None:
        """Set the lineage of the next rows. If ops repeat the numbers, these know the epochs."""
        assert self._records is not None  # tested by the caller
        run = slice(self._given, self._given + chunk.length)
        lineage = self._records(self._ahead[run])
        if self._ahead_lineage is not None:
            lineage = with_epochs_of(lineage, self._ahead_lineage[run])
        chunk.lineage = lineage

    def _read_numbers(self, n: int) -> bool:
        log = self._log
        log.go_on()
        log.forget(log.read)
        log.leave(log.read, self.source.save())
        chunk = log.pull(max(n, AHEAD_ELEMENTS))
        if chunk is None:
            return False
        (self._ahead,) = chunk.columns()  # type: ignore[assignment]  # a range yields arrays
        self._ahead_lineage = chunk.lineage
        self._given = 0
        return True

    def move_numbers(self, moving: Callable[[Operator], Operator]) -> None:
        """Put an operator between the input and this operator, from which nothing was pulled."""
        self.source = moving(self.source)
        self._log = ReplayLog(self.source, self.op)

    def save(self) -> Position:
        ahead = len(self._ahead) - self._given
        return self._log.place(self._log.read - ahead) if ahead else self._log.present()

    def advance(self, position: Position, count: int) -> Position | None:
        return None if self.rows_left_out else self.advance_log(position, count)

    def load(self, position: Position) -> None:
        self._log.load(position)

    def close(self) -> None:
        self.rows.close()
        super().close()


def on_numbers(operator: Operator, moving: Callable[[Operator], Operator]) -> Operator:
    """Return the operator of an op that selects or reorders elements, applied to row numbers if reading may fail.

    Dropped records of an indexed file may be corrupt. Whether this raises an error must not depend on the optimizer's
    settings, so dropped records are never read.

    Args:
        operator: the input of the op.
        moving: creates the op's operator from an input.
    """
    if isinstance(operator, RowsOperator) and operator.rows_may_fail:
        operator.move_numbers(moving)
        return operator
    return moving(operator)


def open_on_numbers(context: ExecutionContext, node: UnaryNode, opened: Callable[..., Operator]) -> Operator:
    """Return the operator of an op that selects elements, like ``on_numbers``.

    Args:
        context: the execution context of the op.
        node: the op.
        opened: creates the operator from an input, ``node``, and ``is_infallible``: whether no element of it can fail.
    """
    source = context(node.source)
    never_fails = is_infallible(node.source) or isinstance(source, RowsOperator)  # row numbers never fail
    return on_numbers(source, lambda numbers: opened(numbers, node, is_infallible=never_fails))

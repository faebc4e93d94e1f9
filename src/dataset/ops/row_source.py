"""Sources that know where each of their rows is: arrays in memory, files with an index.

What skip and shard leave out of such a source is never touched: the optimizer makes them part of it (slice_pushdown).
Of what is shuffled, only the numbers of the rows are moved (shuffle_before_gather). One operator then takes the rows.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np

from dataset.ops.select_positions import SelectPositions
from dataset.plan.node import Node
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Array, Chunk, Remainder
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.metrics.dropped import DroppedCount

READ_AHEAD = 8192
"""Numbers pulled at a time, 64 KiB: beside so many, the fixed cost of a step of a shuffle below is small."""


class Rows(Protocol):
    """The rows of a source, open for one iteration."""

    def take(self, numbers: Array) -> Chunk:
        """The rows with these numbers, in this order, or the first few of them.

        Raises:
            Exception: in the place of the first of them.
        """

    def passes_over(self, error: Exception) -> bool:
        """Whether a row that failed with this is to be left out, which is said and counted then."""

    def close(self) -> None:
        """Let go of what is open. A second time does nothing."""


@dataclass(frozen=True, eq=False)
class RowSource(Node):
    """Element ``i`` is row ``rows[i]``."""

    seeks: ClassVar[bool] = True
    rows: range | None = field(default=None, kw_only=True, repr=False)
    """The numbers of the rows that are elements; default, all. Only the optimizer takes fewer."""

    @property
    @abstractmethod
    def all_rows(self) -> range:
        """The numbers of all rows that there are."""

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The structure of the elements."""

    @property
    def rows_at_once(self) -> int:
        """How many rows to take at least, where one costs much more than one of many."""
        return 1

    @abstractmethod
    def open_rows(self, skipped: DroppedCount) -> Rows:
        """The rows, to be taken by number; ``skipped`` counts those that are left out."""

    def at(self, places: slice) -> Self:
        """The elements at these places."""
        return self.with_rows(self.places[places])

    def with_rows(self, rows: range) -> Self:
        """Other rows of the same source."""
        part = copy.copy(self)  # not made anew, because checking may take long
        part._set("rows", rows)  # noqa: SLF001  # its own class
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
    def leaves_out(self) -> bool:
        """Whether rows that fail may be passed over, so that a position does not tell which element is there."""
        return False

    def picked(self, positions: Array) -> Node | None:
        return None if self.leaves_out else SelectPositions(self, positions)

    def cardinality(self) -> int:
        return len(self.places)

    def described(self) -> str:
        rows = self.places
        if self.takes_all:
            return self.op
        return f"{self.op}[{rows.start}:{rows.stop}{f':{rows.step}' if rows.step != 1 else ''}]"


class RowsOperator(UnaryOperator):
    """Takes rows by the numbers that its input gives. Holds numbers that were read ahead, and the rows of some.

    Numbers are read ahead, which nobody can see: there is no user code below. A state says where the input stood before
    it gave these, so that they need not be in it.

    Args:
        numbers: gives them.
        rows: where they are rows of.
        skipped: counts rows that are left out.
        op: the name of the op; default, that of ``rows``.
    """

    def __init__(self, numbers: Operator, rows: RowSource, skipped: DroppedCount, op: str | None = None) -> None:
        super().__init__(numbers)
        self.op = op or rows.op
        self.rows = rows.open_rows(skipped)
        self.rows_may_fail = not rows.is_certain
        self.rows_left_out = rows.leaves_out
        self.rows_at_once = rows.rows_at_once
        self.ahead: Array = np.zeros(0, np.int64)
        self.given = 0  # of the rows with these numbers
        self._before: State | None = None  # of the input, before it gave these
        self._taken = Remainder()

    @property
    def picks(self) -> bool:  # type: ignore[override]  # here it depends on the rows
        return self.source.picks and not self.rows_may_fail

    def pick(self, positions: Array) -> Chunk:
        return self.rows.take(self.source.pick(positions).columns()[0])  # type: ignore[arg-type]  # an array

    def pull(self, n: int) -> Chunk | None:
        if not self._taken and not self._take(max(n, self.rows_at_once)):
            return None
        chunk = self._taken.give(n)
        assert chunk is not None
        self.given += chunk.length
        return chunk

    def _take(self, n: int) -> bool:
        """The next rows; False where there are no more."""
        while self.given < len(self.ahead) or self._read_numbers(n):
            if self.given >= len(self.ahead):
                continue  # in the input, they are all before the place that a state told
            try:
                self._taken = Remainder(self.rows.take(self.ahead[self.given : self.given + n]))
            except Exception as error:
                self.given += 1  # it had its place
                if not self.rows.passes_over(error):
                    raise
            else:
                return True
        self.rows.close()
        return False

    def _read_numbers(self, n: int) -> bool:
        passed_over = self.given - len(self.ahead)  # more than 0 only where a state was loaded
        self._before = self.source.state_dict()
        chunk = self.source.pull(max(n, passed_over, READ_AHEAD))
        if chunk is None:
            return False
        (self.ahead,) = chunk.columns()  # type: ignore[assignment]  # a range gives arrays
        self.given = passed_over
        return True

    def seek(self, count: int) -> None:
        self.source.seek(count)

    def state_dict(self) -> State:
        before = self.source.state_dict() if self._before is None else self._before
        exact = self.source.state_after(before, self.given) if self.given else None
        if exact is not None:
            return {"op": self.op, "source": exact, "given": 0}
        return {"op": self.op, "source": before, "given": self.given}

    def state_after(self, state: State, count: int) -> State | None:
        if self.rows_left_out:
            return None
        source = self.source.state_after(state["source"], int(state["given"]) + count)
        return None if source is None else {**state, "source": source, "given": 0}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._before, self.given = state["source"], int(state["given"])

    def close(self) -> None:
        self.rows.close()
        super().close()


def on_numbers(operator: Operator, moving: Callable[[Operator], Operator]) -> Operator:
    """The operator of an op that only chooses and orders elements: on their numbers, where reading them may fail.

    Records of a file with an index that are left out may be damaged. Whether that shows must not depend on what the
    optimizer is allowed to do; so they are not read in any case.

    Args:
        operator: the input of the op.
        moving: makes the op's operator from an input.
    """
    if isinstance(operator, RowsOperator) and operator.rows_may_fail:
        operator.source = moving(operator.source)
        return operator
    return moving(operator)

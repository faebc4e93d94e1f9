"""Node and operator of range(...): a finite arithmetic sequence."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.plan.checks import require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import RowsNode
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import IndexedOperator, Operator
from dataset.runtime.position import Position

_INT64_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Range(RowsNode, gatherable=True, seekable=True, exact=True, generated=True):
    """Source node with the numbers of Python's ``range(start, stop, step)``, as scalars of ``output_type``."""

    op: ClassVar[str] = "range"
    start: int
    stop: int
    step: int = 1
    output_type: Any = np.int64

    def __post_init__(self) -> None:
        for argument in ("start", "stop", "step"):
            number = getattr(self, argument)
            if type(number) is not int:
                self._set(argument, require_int("range", argument, number))
        if self.step == 0:
            raise ValueError("range(): step must not be 0")
        dtype = np.dtype(self.output_type)
        if self.output_type is None or dtype.kind not in "iuf":  # NumPy treats None as float64
            raise TypeError(f"range(): output_type must be a numeric dtype, got {self.output_type!r}")
        self._set("output_type", dtype)
        limit = 2**63 if dtype.kind == "i" else 2**64
        numbers = self.numbers
        for number in (numbers[0], numbers[-1]) if numbers else ():
            if not -(2**63) <= number < limit:
                raise ValueError(f"range(): numbers must fit into 64 bits, but {number} does not fit as {dtype}")

    @property
    def numbers(self) -> range:
        """The numbers as a Python range."""
        return range(self.start, self.stop, self.step)

    def _element_spec(self) -> Any:
        return TensorSpec((), self.output_type)

    def cardinality(self) -> int:
        return len(self.numbers)

    @lazy_property
    def traits(self) -> Traits:
        # Large numbers may overflow in float16, for which NumPy may warn or raise.
        return super().traits.having(exact=bool(self.output_type != np.float16))

    def subrange(self, places: slice) -> Range:
        """Return a range of the numbers at these positions."""
        part = self.numbers[places]
        return dataclasses.replace(self, start=part.start, stop=part.stop, step=part.step)

    def label(self) -> str:
        bounds = [self.start, self.stop] if self.start or self.step != 1 else [self.stop]
        steps = [] if self.step == 1 else [self.step]
        return f"range({', '.join(map(str, bounds + steps))})"

    def lower(self, context: ExecutionContext) -> Operator:
        return RangeOperator(self.numbers, self.output_type, source_lineage(context, self))


class RangeOperator(IndexedOperator):
    """Operator that holds a position in the range."""

    op = Range.op

    def __init__(self, numbers: range, dtype: np.dtype[Any], lineage: LineageWriter | None = None) -> None:
        self.numbers = numbers
        self._lineage = lineage
        self.dtype = dtype

    def pull(self, n: int) -> Chunk | None:
        part = self.numbers[self.at : self.at + n]
        if not part:
            return None
        self.at += len(part)
        # Computed as integers and then cast: floats could lose small steps, and small integers wrap.
        if abs(part.start) < _INT64_MAX and abs(part.stop) < _INT64_MAX:
            numbers = np.arange(part.start, part.stop, part.step, dtype=np.int64)
        else:
            numbers = np.array(part)
        chunk = Chunk(LEAF, len(part), [numbers.astype(self.dtype, copy=numbers.dtype.kind == "u")])
        if self._lineage is not None:
            chunk.lineage = self._lineage.of(numbers)
        return chunk

    def gather(self, positions: Array) -> Chunk:
        start, step = self.numbers.start, self.numbers.step
        if max(map(abs, (start, self.numbers.stop, step))) < _INT64_MAX:
            numbers = positions * step + start
        else:
            numbers = np.array([self.numbers[position] for position in positions.tolist()])
        chunk = Chunk(LEAF, len(positions), [numbers.astype(self.dtype, copy=numbers.dtype.kind == "u")])
        if self._lineage is not None:
            chunk.lineage = self._lineage.of(numbers)
        return chunk

    def skip(self, n: int) -> int:
        passed = min(n, len(self.numbers) - self.at)
        self.at += passed
        return passed

    def advance(self, position: Position, count: int) -> Position | None:
        return position.after(count) if position.at + count <= len(self.numbers) else None

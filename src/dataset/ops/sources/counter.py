"""Node and operator of counter(start, step, dtype): an infinite arithmetic sequence. See range.py for a finite one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position

_KINDS = {"i": "iu", "u": "iu", "f": "iuf", "c": "iufc"}  # kind of dtype -> the kinds of numbers it accepts


@dataclass(frozen=True, eq=False)
class Counter(Node, generated=True):
    """Source node: ``start``, ``start + step`` and so on, computed in ``dtype``: integers wrap, floats round."""

    op: ClassVar[str] = "counter"
    start: Any
    step: Any
    dtype: Any

    def __post_init__(self) -> None:
        dtype = np.dtype(self.dtype)
        if dtype.kind not in _KINDS:
            raise TypeError(f"counter(): dtype must be a numeric dtype, got {self.dtype!r}")
        self._set("dtype", dtype)
        for argument in ("start", "step"):
            self._set(argument, _number(argument, getattr(self, argument), dtype))

    def _element_spec(self) -> Any:
        return TensorSpec((), self.dtype)

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY

    def label(self) -> str:
        return f"counter({self.start}, {self.step})"

    def lower(self, context: ExecutionContext) -> Operator:
        integers = self.dtype.kind in "iu"  # other numbers do not identify themselves
        return CounterOperator(self.start, self.step, source_lineage(context, self) if integers else None)


def _number(argument: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``value`` as a scalar of ``dtype``; a larger integer wraps in a small integer type, as in tf.data."""
    given = np.asarray(value)
    if given.ndim or given.dtype.kind not in _KINDS[dtype.kind]:
        too_large = isinstance(value, int) and given.dtype == object
        if not too_large:
            right = {"iu": "an int", "iuf": "a real number"}.get(_KINDS[dtype.kind], "a number")
            raise TypeError(f"counter(): {argument} must be {right}, got {value!r} of type {type(value).__name__}")
        if dtype.kind in "fc":
            given = np.asarray(float(value))
    if dtype.kind in "iu":
        highest = 2**64 if dtype == np.uint64 else 2**63
        if not -(2**63) <= int(value) < highest:
            raise ValueError(f"counter(): {argument} must fit into 64 bits, got {value}")
    with np.errstate(over="ignore"):
        return given.astype(dtype)[()]


class CounterOperator(Operator):
    """Operator that holds the next number."""

    op = Counter.op

    def __init__(self, start: Any, step: Any, lineage: LineageWriter | None = None) -> None:
        self.next = start
        self.step = step
        self._lineage = lineage

    def pull(self, n: int) -> Chunk:
        numbers = np.full(n + 1, self.step)
        numbers[0] = self.next
        # Added one by one, so that rounding and wrapping do not depend on the chunk size.
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.accumulate(numbers, out=numbers, dtype=numbers.dtype)
        self.next = numbers[n]
        chunk = Chunk(LEAF, n, [numbers[:n]])
        if self._lineage is not None:
            chunk.lineage = self._lineage.of(numbers[:n])
        return chunk

    def save(self) -> Position:
        return Position(self.op, own={"next": np.asarray(self.next)})

    def advance(self, position: Position, count: int) -> Position | None:
        number = position.own["next"]
        if number.dtype.kind not in "iu":
            return None  # each step rounds
        bits = 8 * number.dtype.itemsize
        wrapped = (int(number) + count * int(self.step)) % 2**bits
        signed = wrapped - 2**bits if number.dtype.kind == "i" and wrapped >= 2 ** (bits - 1) else wrapped
        return position.after(0, next=np.array(signed, number.dtype))

    def load(self, position: Position) -> None:
        self.next = position.own["next"][()]

"""Node and operator of sliding_window(size, shift, stride): arrays of consecutive elements, which overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch.batch import Batch
from dataset.ops.batch.padded_batch import padding_of, padding_values
from dataset.ops.batch.window import Window, WindowOperator
from dataset.plan.lazy import lazy_property
from dataset.plan.node import spec_is_static
from dataset.plan.spec import TensorSpec, component_spec, flatten_spec
from dataset.plan.traits import Traits
from dataset.plan.values import filled
from dataset.runtime.chunks.batching import ColumnMismatchError
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class SlidingWindow(Window, seekable=True, views=True):
    """Node that yields arrays of ``size`` elements, every ``stride``-th, that start ``shift`` elements apart.

    Windows at the end that are not full are left out. With ``pad``, which is one value or has the structure of the
    elements, they are filled with it.
    """

    op: ClassVar[str] = "sliding_window"
    shift: int | None = 1
    pad: Any = None

    def __post_init__(self) -> None:
        self._set("drop_remainder", self.pad is None)
        super().__post_init__()
        if self.pad is not None and spec_is_static(self.source):
            structure, specs = flatten_spec(self.source.element_spec)
            for index, (spec, value) in enumerate(
                zip(specs, padding_values(self.op, structure, self.pad), strict=True)
            ):
                if not isinstance(spec.batched(1), TensorSpec):
                    raise TypeError(f"sliding_window(): {structure.component_name(index)} is a {spec!r}: remove pad")
                padding_of(self.op, "pad", structure.component_name(index), spec.dtype, value)

    @lazy_property
    def traits(self) -> Traits:
        """Exact if stacking cannot fail."""
        exact = self.pad is None and self.batch().traits.exact
        return super().traits.having(exact=exact, rows=self.size)

    def batch(self) -> Batch:
        """Return the node that stacks elements as this one does."""
        return Batch(self.source, self.size, drop_remainder=True, origin=self.origin)

    def _element_spec(self) -> Any:
        return self.batch().element_spec

    def label(self) -> str:
        parts = [str(self.size)]
        parts += [f"shift={self.shift}"] if self.shift != 1 else []
        parts += [f"stride={self.stride}"] if self.stride != 1 else []
        parts += [f"pad={self.pad!r}"] if self.pad is not None else []
        return f"{self.op}({', '.join(parts)})"

    def lower(self, context: ExecutionContext) -> SlidingWindowOperator:
        return SlidingWindowOperator(context(self.source), self)


class SlidingWindowOperator(WindowOperator):
    """Operator that stacks windows. The arrays are views of the elements, so overlapping windows share memory."""

    node: SlidingWindow

    def __init__(self, source: Operator, node: SlidingWindow) -> None:
        super().__init__(source, node)
        self._batch = node.batch()

    def _elements(self, count: int, pieces: Sequence[list[Column]], lineages: list[Lineage] | None) -> list[Column]:  # noqa: ARG002  # a window keeps none
        found: list[list[Any]] = [[] for _ in pieces]
        for number in range(count):
            try:
                window = [self._stacked(index, column[number]) for index, column in enumerate(pieces)]
            except SpecError:
                if number:
                    break  # raised by the next pull, after the windows before
                self._advance(1)
                raise
            for column, value in zip(found, window, strict=True):
                column.append(value)
        return found  # type: ignore[return-value]  # lists are columns

    def _stacked(self, index: int, elements: Column) -> Any:
        """Return an array of the elements of component ``index``, padded to the size of a window."""
        try:
            stacked = self._batch.stack(index, elements)
        except ColumnMismatchError as error:
            raise SpecError(
                f"{self.node}: {self._name(index)} has {error.what} {error.got} in element {error.index} of a window, "
                f"but {error.before} before; all elements of a window must have the same {error.what}: make them equal "
                "in map(), or use window() and padded_batch()"
            ) from None
        return stacked if len(elements) == self.node.size else self._padded(index, stacked)

    def _padded(self, index: int, stacked: Any) -> Any:
        name = self._name(index)
        if not isinstance(stacked, np.ndarray):
            raise SpecError(f"{self.node}: {name} is a {type(stacked).__name__}, which cannot be padded: remove pad")
        value = padding_values(self.node.op, self._buffer.structure, self.node.pad)[index]
        value = padding_of(self.node.op, "pad", name, component_spec(stacked).dtype, value)
        rest = filled((self.node.size - len(stacked), *stacked.shape[1:]), value, stacked.dtype)
        return np.concatenate([stacked, rest])

    def _name(self, index: int) -> str:
        return self._buffer.structure.component_name(index)

"""Node and operator of pad_to_cardinality(n, mask_key): zeros after the elements, and a mask that marks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import SpecError
from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_int
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.spec import TensorSpec, flatten_spec
from dataset.plan.structure import is_dict, structure_of
from dataset.plan.values import filled
from dataset.runtime.chunks.chunk import Chunk, pack
from dataset.runtime.chunks.padding_slots import zeros_like
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class PadToCardinality(UnaryNode):
    """Node that yields ``expected`` dicts: those of its input, and then zeros of the same shapes."""

    op: ClassVar[str] = "pad_to_cardinality"
    expected: int
    mask_key: str

    def __post_init__(self) -> None:
        self._set("expected", require_int(self.op, "cardinality", self.expected))
        if not isinstance(self.mask_key, str):
            raise TypeError(f"{self.op}(): mask_key must be text, got {self.mask_key!r}")
        available = self.source.cardinality()
        if not is_known(available) or available > self.expected:
            raise ValueError(
                f"{self.op}(): the dataset must have a known number of elements of at most {self.expected}, got "
                f"{available if is_known(available) else 'an unknown or infinite number'}; assert_cardinality() "
                "declares a number"
            )
        if spec_is_static(self.source):
            self._element_spec()  # raises if the elements are not dicts

    def wrong_structure(self, found: Any) -> SpecError:
        return SpecError(f"{self.op}(): elements must be dicts, to which the mask is added, got {found!r}")

    def _element_spec(self) -> Any:
        spec = self.source.element_spec
        if not is_dict(flatten_spec(spec)[0]):
            raise self.wrong_structure(spec)
        return {**spec, self.mask_key: TensorSpec((), np.bool_)}

    def cardinality(self) -> int:
        return self.expected

    def label(self) -> str:
        return f"{self.op}({self.expected})"

    def zeros(self) -> Chunk | None:
        """Return an element of zeros of the declared shapes; None if they are not all known."""
        if not spec_is_static(self.source):
            return None
        structure, specs = flatten_spec(self.source.element_spec)
        columns: list[Any] = []
        for spec in specs:
            if not isinstance(spec, TensorSpec) or spec.shape is None or spec.dtype == object:
                return None
            sizes = [size for size in spec.shape if size is not None]
            if len(sizes) < len(spec.shape):
                return None
            text = spec.dtype.kind == "S"
            array = filled(sizes, b"", np.dtype(object)) if text else np.zeros(sizes, spec.dtype)
            columns.append([array[()]])
        return Chunk(structure, 1, columns)

    def lower(self, context: ExecutionContext) -> Operator:
        return PadToCardinalityOperator(context(self.source), self)


class PadToCardinalityOperator(UnaryOperator):
    """Operator that adds the mask. The zeros are like the last element where the spec does not determine their shapes.

    An element that fails is not replaced: the number of zeros is known before.
    """

    saved = ("_missing",)

    def __init__(self, source: Operator, node: PadToCardinality) -> None:
        super().__init__(source)
        self.node = node
        self._declared = node.zeros()
        self._last: Chunk | None = None
        self._missing = node.expected - node.source.cardinality()

    def pull(self, n: int) -> Chunk | None:
        chunk = self.source.pull(n)
        if chunk is not None:
            if self._declared is None:
                self._last = chunk.slice(chunk.length - 1, chunk.length)
            return self._masked(chunk, valid=True)
        count = min(n, self._missing, STEP_ELEMENTS)
        if not count:
            return None
        zeros = self._zeros()
        self._missing -= count
        columns = [pack([column[0]] * count) for column in zeros.read_only().columns()]
        return self._masked(Chunk(zeros.structure, count, columns), valid=False)

    def _zeros(self) -> Chunk:
        if self._declared is not None:
            return self._declared
        if self._last is None:
            self._missing = 0
            raise SpecError(
                f"{self.node}: no element shows the shapes of the padding, and the element spec does not determine them"
            )
        return zeros_like(self._last)

    def _masked(self, chunk: Chunk, *, valid: bool) -> Chunk:
        if not is_dict(chunk.structure):
            raise self.node.wrong_structure(chunk.structure)
        columns = [*chunk.columns(), np.full(chunk.length, valid)]
        numbers = {**chunk.structure.unflatten(range(len(columns) - 1)), self.node.mask_key: len(columns) - 1}
        structure = structure_of(numbers)
        chosen = [columns[number] for number in structure.flatten(numbers)]
        return Chunk(structure, chunk.length, chosen, lineage=chunk.lineage)

    def save(self) -> Position:
        last = None if self._last is None else save_chunk(zeros_like(self._last))
        return super().save().with_held(last=last)

    def load(self, position: Position) -> None:
        super().load(position)
        self._last = load_chunk(position.held.get("last"), lambda: self.node.source.element_spec)

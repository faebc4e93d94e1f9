"""Node and operator of concat_split(length): all sequences as one stream of tokens, cut into rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.amounts import AHEAD_FIRST
from dataset.errors import SpecError
from dataset.ops.pack.token_features import (
    SequencesOperator,
    TokenFeatures,
    lengths_of,
    static_features,
    token_of,
)
from dataset.plan.checks import require_bool, require_int
from dataset.plan.node import GroupingNode, holds_user_code, spec_is_static
from dataset.plan.spec import BYTES, TensorSpec
from dataset.runtime.chunks.chunk import Chunk, Column, lineage_of
from dataset.runtime.chunks.lineage import Lineage, joined
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class ConcatSplit(GroupingNode, separable=True):
    """Node that concatenates the sequences of its input, each followed by a separator, and cuts them into rows."""

    op: ClassVar[str] = "concat_split"
    length: int
    separator: Any = None
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        self._set("length", require_int(self.op, "length", self.length, minimum=1))
        self._set("drop_remainder", require_bool(self.op, "drop_remainder", self.drop_remainder))
        if spec_is_static(self.source):
            self._element_spec()

    def _element_spec(self) -> Any:
        features, specs = static_features(self, None)
        try:
            require_no_others(features)
        except ValueError as error:
            raise ValueError(f"{self.op}(): {error}") from None
        length = self.length if self.drop_remainder else None
        for index, spec in enumerate(specs):
            self.separator_of(features, index, spec.dtype)
        rows = [TensorSpec(None if s.shape is None else (length, *s.shape[1:]), s.dtype) for s in specs]
        return features.structure.unflatten(rows)

    def separator_of(self, features: TokenFeatures, index: int, dtype: np.dtype[Any]) -> Any:
        """Return the token that ends each sequence of a token feature; None if there is none."""
        if self.separator is None:
            return None
        return token_of(self.op, "separator", self.separator, features, index, dtype)

    def label(self) -> str:
        return f"{self.op}({self.length})"

    def lower(self, context: ExecutionContext) -> Operator:
        return ConcatSplitOperator(context, context(self.source), self)


def require_no_others(features: TokenFeatures) -> None:
    """Raise ValueError if the elements have components that are not token features."""
    if features.others:
        name = features.name(features.others[0])
        raise ValueError(f"{name} is not an array of tokens, and rows end anywhere; leave it out with select()")


class ConcatSplitOperator(SequencesOperator):
    """Operator that carries the tokens after the last full row over to the next window."""

    node: ConcatSplit

    def __init__(self, context: ExecutionContext, source: Operator, node: ConcatSplit) -> None:
        super().__init__(context, source, node, 1 if holds_user_code(node.source) else AHEAD_FIRST)
        self._carry: Chunk | None = None  # tokens before the window, fewer than a row
        self._rest: Chunk | None = None  # those after it
        self._streams: list[npt.NDArray[Any]] = []  # the tokens of the window, per token feature

    def plan(self, parts: list[Chunk], *, is_last: bool) -> int:
        node, carry = self.node, self._carry
        self._rest = carry
        if not parts:
            if carry is None or not is_last:
                return 0
            chunks = [carry]
            self._structure, self._streams = carry.structure, [column[0] for column in carry.columns()]
        else:
            try:
                require_no_others(self.features)
            except ValueError as error:
                raise SpecError(f"{node}: {error}") from None
            chunks = parts if carry is None else [carry, *parts]
            self._structure = parts[0].structure
            self._streams = [
                self._stream(index, [chunk.columns()[index] for chunk in chunks], has_carry=carry is not None)
                for index in range(parts[0].structure.num_components)
            ]
        self._trace(chunks)
        rows, rest = divmod(len(self._streams[0]), node.length)
        if is_last:
            self._rest = None
            return rows + (rest > 0 and not node.drop_remainder)
        kept = [stream[rows * node.length :].copy() for stream in self._streams]
        if rest:
            self._rest = Chunk(
                self._structure, 1, [[tokens] for tokens in kept], lineage=self._lineage_in(rows, rows + 1)
            )
        else:
            self._rest = None
        return rows

    def _trace(self, chunks: list[Chunk]) -> None:
        """Record which elements of the window, and of the carry before it, the tokens are from."""
        self._lineage = lineage_of(chunks)
        if self._lineage is not None:
            sizes = np.concatenate([lengths_of(chunk.columns()[0]) for chunk in chunks])
            if self.node.separator is not None:
                sizes[self._carry is not None :] += 1
            self._ends = np.cumsum(sizes)

    def _lineage_in(self, start: int, stop: int) -> Lineage | None:
        """Return the lineage of rows ``start`` to ``stop``. A separator belongs to the sequence before it."""
        if self._lineage is None:
            return None
        tokens = np.arange(start, stop + 1) * self.node.length
        firsts = np.searchsorted(self._ends, tokens[:-1], side="right").tolist()
        lasts = np.searchsorted(self._ends, tokens[1:], side="left").tolist()
        return [joined(self._lineage[first : last + 1]) for first, last in zip(firsts, lasts, strict=True)]

    def _stream(self, index: int, columns: list[Column], *, has_carry: bool) -> npt.NDArray[Any]:
        values = self.values_of(index, columns)
        dtype = values[0].dtype
        token = self.node.separator_of(self.features, index, BYTES if dtype.hasobject else dtype)
        if token is not None:
            last = np.empty((1, *values[0].shape[1:]), dtype)
            last.fill(token)
            start = int(has_carry)
            values = values[:start] + [part for value in values[start:] for part in (value, last)]
        return np.concatenate(values)

    @property
    def rows_at_once(self) -> int:
        return self._count  # they are views

    def make(self, start: int, stop: int) -> Chunk:
        length = self.node.length
        tokens = [stream[start * length : stop * length] for stream in self._streams]
        columns: list[Column]
        if len(tokens[0]) == (stop - start) * length:
            columns = [part.reshape(-1, length, *part.shape[1:]) for part in tokens]
        else:
            cuts = range(0, (stop - start) * length, length)
            columns = [[part[cut : cut + length] for cut in cuts] for part in tokens]
        return Chunk(self._structure, stop - start, columns, lineage=self._lineage_in(start, stop))

    def _begin_window(self) -> None:
        self._carry = self._rest
        super()._begin_window()

    def save(self) -> Position:
        position = super().save()
        rest = save_chunk(self._rest) if position.own["by_value"] else None
        return position.with_held(carry=save_chunk(self._carry), rest=rest)

    def load(self, position: Position) -> None:
        super().load(position)
        self._carry = load_chunk(position.held.get("carry"), lambda: self.node.source.element_spec)
        self._rest = load_chunk(position.held.get("rest"), lambda: self.node.source.element_spec)

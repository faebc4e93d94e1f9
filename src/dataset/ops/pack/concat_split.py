"""Node and operator of concat_split(length): all sequences as one stream of tokens, cut into rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.pack.token_features import SequencesOperator, TokenFeatures, check_features, static_features, token_of
from dataset.plan.cardinality import endless_or_unknown
from dataset.plan.checks import require_bool, require_int
from dataset.plan.node import UnaryNode, holds_user_code, spec_is_static
from dataset.plan.spec import BYTES, TensorSpec
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

_AHEAD = 64  # elements read at once if reading ahead is unobservable


@dataclass(frozen=True, eq=False)
class ConcatSplit(UnaryNode, separable=True):
    """Node that concatenates the sequences of its input, each followed by a separator, and cuts them into rows."""

    op: ClassVar[str] = "concat_split"
    length: int
    separator: Any = None
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        self._set("length", require_int(self.op, "length", self.length, minimum=1))
        self._set("drop_remainder", require_bool(self.op, "drop_remainder", self.drop_remainder))
        check_features(self, None)
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

    def cardinality(self) -> int:
        return endless_or_unknown(self.source.cardinality())

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
        super().__init__(context, source, node, 1 if holds_user_code(node.source) else _AHEAD)
        self._carry: Chunk | None = None  # tokens before the window, fewer than a row
        self._rest: Chunk | None = None  # those after it
        self._streams: list[npt.NDArray[Any]] = []  # the tokens of the window, per token feature

    def plan(self, parts: list[Chunk], *, is_last: bool) -> int:
        node, carry = self.node, self._carry
        self._rest = carry
        if not parts:
            if carry is None or not is_last:
                return 0
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
        rows, rest = divmod(len(self._streams[0]), node.length)
        if is_last:
            self._rest = None
            return rows + (rest > 0 and not node.drop_remainder)
        kept = [stream[rows * node.length :].copy() for stream in self._streams]
        self._rest = Chunk(self._structure, 1, [[tokens] for tokens in kept]) if rest else None
        return rows

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
        structure, tokens = self._structure, [stream[start * length : stop * length] for stream in self._streams]
        if len(tokens[0]) == (stop - start) * length:
            return Chunk(structure, stop - start, [part.reshape(-1, length, *part.shape[1:]) for part in tokens])
        cuts = range(0, (stop - start) * length, length)
        return Chunk(structure, stop - start, [[part[cut : cut + length] for cut in cuts] for part in tokens])

    def _begin_window(self) -> None:
        self._carry = self._rest
        super()._begin_window()

    def save(self) -> State:
        state = super().save()
        rest = None if state["held"] is None else save_chunk(self._rest)
        return {**state, "carry": save_chunk(self._carry), "rest": rest}

    def load(self, state: State) -> None:
        super().load(state)
        self._carry = load_chunk(state["carry"], lambda: self.node.source.element_spec)
        self._rest = load_chunk(state["rest"], lambda: self.node.source.element_spec)

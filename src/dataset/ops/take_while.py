"""take_while(predicate): the elements before the first for which a user's function says False."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_callable
from dataset.plan.node import UnaryNode, holds_user_code
from dataset.plan.origin import function_name
from dataset.runtime.chunks.chunk import Chunk, Remainder
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.functions.calls import ElementwiseOperator
from dataset.runtime.functions.predicates import BOOLEANS, boolean, boolean_column
from dataset.runtime.functions.vectorized import is_vectorized


@dataclass(frozen=True, eq=False)
class TakeWhile(UnaryNode):
    """The elements up to, and without, the first for which ``predicate`` returns False."""

    op: ClassVar[str] = "take_while"
    calls_user_code: ClassVar[bool] = True
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        require_callable("take_while", "predicate", self.predicate)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def described(self) -> str:
        return f"take_while({function_name(self.predicate)})"

    def lower(self, build: ExecutionContext) -> Operator:
        return TakeWhileOperator(build(self.source), self)


class _FirstFalseError(Exception):
    """Internal: the predicate has said False, so it is not called for what comes behind."""


class TakeWhileOperator(ElementwiseOperator):
    """Calls the predicate up to the first False; from there on there are no elements.

    Which element is the last is only known once the predicate was called for the next. So over user code, where an
    early read could be noticed, elements are taken one at a time.
    """

    def __init__(self, source: Operator, node: TakeWhile) -> None:
        super().__init__(source, node, node.predicate if is_vectorized(node.predicate) else self._require)
        self._predicate = node.predicate
        self._one_by_one = holds_user_code(node.source)
        self._ended = False

    def _require(self, *element: Any) -> bool:
        result = self._predicate(*element)
        if not (result if type(result) in BOOLEANS else boolean(result, self.node)):
            raise _FirstFalseError
        return True

    def next_inputs(self, n: int) -> Chunk | None:
        if self._ended:
            return None
        return super().next_inputs(1 if self._one_by_one else n)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, _FirstFalseError):
            self._ended = True
            self._todo = Remainder()
        else:
            super()._fail(error)

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk:  # noqa: ARG002  # all are True
        return inputs

    def _columns_output(self, inputs: Chunk) -> Chunk | None:
        return None if self._ended else super()._columns_output(inputs)

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        false = np.flatnonzero(~boolean_column(result, inputs.length, self.node))
        if not len(false):
            return inputs
        self._ended = True
        return inputs.slice(0, int(false[0])) if false[0] else None

    def state_dict(self) -> State:
        return {"op": self.node.op, **super().state_dict(), "ended": self._ended}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._ended = bool(state["ended"])

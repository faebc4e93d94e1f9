"""Node and operator of take_while(predicate): the elements before the first False of a user function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.plan.checks import require_callable
from dataset.plan.node import UnaryNode, holds_user_code
from dataset.plan.origin import function_name
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.functions.predicates import BOOLEANS, boolean, boolean_column
from dataset.world.interrupts import interruptible


@dataclass(frozen=True, eq=False)
class TakeWhile(UnaryNode, pure=False, counted=False):
    """Node that passes on the elements before the first for which ``predicate`` returns False."""

    op: ClassVar[str] = "take_while"
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        require_callable("take_while", "predicate", self.predicate)

    def label(self) -> str:
        return f"take_while({function_name(self.predicate)})"

    def lower(self, context: ExecutionContext) -> Operator:
        return TakeWhileOperator(context(self.source), self)


class TakeWhileOperator(ElementwiseOperator):
    """Operator that calls the predicate up to the first False, which ends it.

    The last element is only known after calling the predicate for the next one. If the input calls user code, which
    could observe reading ahead, elements are therefore pulled one at a time.
    """

    saved = ("_ended",)

    def __init__(self, source: Operator, node: TakeWhile) -> None:
        super().__init__(source, node, node.predicate)
        self._one_by_one = holds_user_code(node.source)
        self._ended = False

    @interruptible
    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:
        with self.sharing(inputs):
            for element in zip(*self.arguments(inputs, position), strict=True):
                result = self.function(*element)
                if not (result if type(result) in BOOLEANS else boolean(result, self.node)):
                    self._ended = True
                    return
                results.append(True)

    @property
    def stops(self) -> bool:
        return self._ended

    def next_inputs(self, n: int) -> Chunk | None:
        if self._ended:
            return None
        return super().next_inputs(1 if self._one_by_one else n)

    def unread(self, inputs: Chunk, start: int) -> None:
        if not self._ended:
            super().unread(inputs, start)

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk:  # noqa: ARG002  # all are True
        return inputs

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        false = np.flatnonzero(~boolean_column(result, inputs.length, self.node))
        if not len(false):
            return inputs
        self._ended = True
        return inputs.slice(0, int(false[0])) if false[0] else None

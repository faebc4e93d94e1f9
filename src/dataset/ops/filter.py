"""Node and operator of filter(predicate): keep the elements for which a user function returns True."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.ops.elementwise import Elementwise
from dataset.plan.checks import require_callable
from dataset.plan.node import Miss, Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.functions.predicates import BOOLEANS, boolean, boolean_column
from dataset.world.interrupts import interruptible


@dataclass(frozen=True, eq=False)
class Filter(Elementwise, separable=True, counted=False):
    """Node that passes on the elements for which ``predicate`` returns True."""

    op: ClassVar[str] = "filter"
    rule: ClassVar[str] = "filter_parallelization"
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        require_callable("filter", "predicate", self.predicate)

    @property
    def called(self) -> Callable[..., Any]:
        return self.predicate

    def rewritten(self) -> Node | Miss | None:
        """Return the filter with the settings of a parallel map directly upstream, so that both can be fused."""
        found, below = super().rewritten(), self.source
        if not isinstance(found, Filter):
            return found
        calls, deterministic = found.num_parallel_calls, found.deterministic
        if (
            isinstance(below, Elementwise)
            and below.traits.aligned
            and below.executor == "thread"
            and below.num_parallel_calls is not None
        ):
            calls, deterministic = below.num_parallel_calls, below.deterministic
        return replace(found, num_parallel_calls=calls, deterministic=deterministic, fused=False)

    def operator(self, source: Operator) -> ElementwiseOperator:
        return FilterOperator(source, self, self.predicate, columnwise=self.columnwise, divided=self.divided)


class FilterOperator(ElementwiseOperator):
    """Operator that selects inputs by the boolean results of the function."""

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        if not BOOLEANS.issuperset(map(type, results)):
            results = [boolean(result, self.node) for result in results]
        if len(results) == 1:
            return inputs if results[0] else None
        return self._choose(inputs, np.array(results, np.bool_))

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        return self._choose(inputs, boolean_column(result, inputs.length, self.node))

    def _choose(self, inputs: Chunk, mask: npt.NDArray[np.bool_]) -> Chunk | None:
        indices = np.flatnonzero(mask)
        if not len(indices):
            return None
        return inputs if len(indices) == inputs.length else inputs.take(indices)

    @interruptible
    def pass_on(self, given: tuple[Any, ...], function: Callable[..., Any]) -> tuple[Any, ...] | None:
        result = function(*given)
        passes = result if type(result) in BOOLEANS else boolean(result, self.node)
        self.at += 1
        return given if passes else None

"""Node and operator of scan(initial_state, scan_func): a map that carries a state. See reduce.py for the end result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.ops.map import MapOperator
from dataset.plan.checks import require_callable
from dataset.plan.node import UnaryNode
from dataset.plan.origin import function_name
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.ownership import is_immutable, own
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.accumulator import Accumulator, canonical_copy
from dataset.runtime.functions.kernels.vectorized import require_one_by_one
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.position import Position
from dataset.world.interrupts import call


@dataclass(frozen=True, eq=False)
class Scan(UnaryNode, pure=False, static_spec=False):
    """Node that yields the second result of ``function(state, element)``; the first is the state of the next call."""

    op: ClassVar[str] = "scan"
    initial_state: Any
    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        require_callable("scan", "scan_func", self.function)
        require_one_by_one("scan", "scan_func", self.function)
        self._set("initial_state", canonical_copy(self.initial_state))

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def label(self) -> str:
        return f"scan({function_name(self.function)})"

    def lower(self, context: ExecutionContext) -> Operator:
        return ScanOperator(context(self.source), self)


class ScanOperator(MapOperator):
    """Operator that holds the state. As in tf.data, failures of the function or the input do not change it."""

    one_to_one = False  # depends on earlier elements
    returns_results = False  # they advance a state, too
    lists_are_structure = False  # a list becomes an array, as in tf.data

    def __init__(self, source: Operator, node: Scan) -> None:
        super().__init__(source, node, self._step)
        self.accumulator = Accumulator(node.label(), node.initial_state)
        self._scan_func = node.function

    def arguments(self, inputs: Chunk, position: int) -> list[Any]:  # noqa: ARG002  # used by random_map
        return [inputs.rows()]  # a tuple is one argument, in addition to the state

    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:  # noqa: ARG002  # it passes no numbers
        # Not interruptible: the state and the results must advance together.
        results.extend(map(self._step, inputs.rows()))

    def _step(self, element: Any) -> Any:
        given = (self.accumulator.give(), element)
        results = [call(self._scan_func, *given)]  # a variable would be a reference that own() counts
        plain = type(results[0]) is tuple and len(results[0]) == 2 and is_immutable(results[0][1])
        if plain and self.accumulator.replace_scalars(results[0][0]):
            return results[0][1]
        return self._take(own(results.pop(), given))

    def _take(self, result: Any) -> Any:
        if type(result) not in {tuple, list} or len(result) != 2:
            raise SpecError(
                f"{self.node.label()}: the function must return a pair of the new state and the output "
                f"element, got {structure_of(result)!r}"
            )
        new, output = result
        self.accumulator.replace(new)
        return self.accumulator.detached(output)

    def save(self) -> Position:
        return super().save().having(own={"carried": self.accumulator.save()})

    def load(self, position: Position) -> None:
        super().load(position)
        self.accumulator.load(position.own["carried"])

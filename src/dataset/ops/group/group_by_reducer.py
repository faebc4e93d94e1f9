"""Node and operator of group_by_reducer(key_func, reducer): one accumulated state for each key.

A ``map`` after this node calls ``finalize_func``. group_by_window.py also groups elements by keys, but holds them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import StateError
from dataset.ops.group.integer_keys import as_integer
from dataset.ops.map import Map, MapOperator
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_callable
from dataset.plan.node import Node, UnaryNode
from dataset.plan.origin import function_name
from dataset.plan.structure import is_tuple, structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import own
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.accumulator import Accumulator, canonical_copy
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.world.interrupts import call


@dataclass(frozen=True)
class Reducer:
    """The functions of ``group_by_reducer``, as in ``tf.data.experimental.Reducer``.

    Args:
        init_func: takes a key, as int64, and returns the initial state of its group: any structure of components.
        reduce_func: takes the state and an element, which may be a tuple, and returns the new state. Like that of
            ``reduce``, it must have the structure and the dtypes of the initial state.
        finalize_func: takes the state of a group, a tuple as separate arguments, and returns the output element.

    Raises:
        TypeError: if one of them is not callable.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        for name, function in vars(self).items():
            require_callable("Reducer", name, function)


def group_by_reducer_plan(source: Node, key_func: Callable[..., Any], reducer: Any, name: str | None) -> Node:
    """Return the plan of ``Dataset.group_by_reducer``."""
    require_callable(ReduceGroups.op, "key_func", key_func)
    if not isinstance(reducer, Reducer):
        raise TypeError(f"{ReduceGroups.op}(): reducer must be a Reducer, got {reducer!r:.100}")
    states = ReduceGroups(source, key_func, reducer.init_func, reducer.reduce_func, name=name)
    return Map(states, reducer.finalize_func, name=name)


@dataclass(frozen=True, eq=False)
class ReduceGroups(UnaryNode, pure=False, static_spec=False):
    """Node that yields the final state of each group, in the order of their keys."""

    op: ClassVar[str] = "group_by_reducer"
    key_func: Callable[..., Any]
    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def label(self) -> str:
        return f"{self.op}({function_name(self.key_func)}, {function_name(self.reduce_func)})"

    def lower(self, context: ExecutionContext) -> Operator:
        return ReduceGroupsOperator(context(self.source), self)


class ReduceGroupsOperator(MapOperator):
    """Operator that holds a state for each key; the first pull reads the whole input.

    An element for which a function fails is dropped after its exception, as in tf.data, and changes no state.
    """

    saved = ("_ended",)

    node: ReduceGroups
    one_to_one = False  # depends on earlier elements
    returns_results = False  # they are states

    def __init__(self, source: Operator, node: ReduceGroups) -> None:
        super().__init__(source, node, self._step)
        self._groups: dict[int, Accumulator] = {}
        self._ended = False

    def pull(self, n: int) -> Chunk | None:
        while not self._ended:
            self._ended = super().pull(STEP_ELEMENTS) is None
        keys = sorted(self._groups)[:n]
        return self._states([self._groups.pop(key) for key in keys]) if keys else None

    def arguments(self, inputs: Chunk, position: int) -> list[Any]:  # noqa: ARG002  # used by random_map
        return [inputs.rows()]  # a tuple is one argument, in addition to the state

    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:  # noqa: ARG002  # it passes no numbers
        # Not interruptible: the states and the results must advance together.
        results.extend(map(self._step, inputs.rows()))

    def finish(self, inputs: Chunk | None, results: list[Any]) -> Chunk:  # noqa: ARG002  # the results are the states
        assert inputs is not None  # there are calls
        return inputs

    def _step(self, element: Any) -> None:
        key_func, arguments = self.node.key_func, element if is_tuple(structure_of(element)) else (element,)
        key = as_integer(self.node, "key_func", call(key_func, *arguments))
        group = self._groups.get(key)
        if group is None:
            group = self._new_group(own(call(self.node.init_func, np.int64(key))))
        given = (group.give(), element)
        result = own(call(self.node.reduce_func, *given), given)
        group.replace(tuple(result) if type(result) is list else result)  # as in reduce
        self._groups[key] = group

    def _new_group(self, initial: Any) -> Accumulator:
        """Return the state of a new group, which must be like those of the others."""
        if not self._groups:
            return Accumulator(self.node.label(), canonical_copy(initial))
        group = copy.copy(next(iter(self._groups.values())))
        group.replace(initial)
        return group

    @staticmethod
    def _states(groups: list[Accumulator]) -> Chunk:
        return chunk_of_rows([group.give() for group in groups])

    def save(self) -> Position:
        states = save_chunk(self._states(list(self._groups.values()))) if self._groups else None
        return super().save().with_held(states=states).with_own(keys=list(self._groups))

    def load(self, position: Position) -> None:
        super().load(position)
        states, keys = load_chunk(position.held.get("states"), lambda: self.node.element_spec), position.own["keys"]
        rows = [] if states is None else states.rows()
        if len(rows) != len(keys):
            raise StateError(f"{self.node.label()}: {len(rows)} states were saved for {len(keys)} keys")
        for key, row in zip(keys, rows, strict=True):
            self._groups[int(key)] = self._new_group(row)

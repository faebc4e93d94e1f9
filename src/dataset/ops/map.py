"""Node and operator of map(map_func): apply a user function to each element."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.elementwise import Elementwise, MapNode
from dataset.plan.checks import require_callable
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Miss, Node
from dataset.plan.structure import LEAF, Structure, StructureMismatchError, is_tuple, structure_of
from dataset.plan.traits import Traits, calls_no_user_code
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.normalization import chunk_of_rows, is_canonical
from dataset.runtime.chunks.ownership import own
from dataset.runtime.contract import Operator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.functions.kernels.vectorized import chunk_of_columns, is_vectorized
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.parallel.tasks import Task
from dataset.runtime.resources.exceptions import with_location
from dataset.world.interrupts import interruptible


@dataclass(frozen=True, eq=False)
class Map(MapNode, Elementwise, aligned=True, static_spec=False, seekable=True, separable=True, elastic=True):
    """Node that applies ``function`` to each element."""

    op: ClassVar[str] = "map"
    rule: ClassVar[str] = "map_parallelization"
    function: Callable[..., Any]
    synchronous: bool = field(default=False, kw_only=True, repr=False)
    """Whether calls must never run ahead or concurrently."""
    use_unbounded_threadpool: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        require_callable("map", "map_func", self.function)
        self.require_calls()

    @property
    def called(self) -> Callable[..., Any]:
        return self.function

    def rewritten(self) -> Node | Miss | None:
        return None if self.synchronous else super().rewritten()

    @lazy_property
    def traits(self) -> Traits:
        traits = super().traits
        called: Any = self.function if self.column_function is None else self.column_function
        has_spec = calls_no_user_code(self.function) and hasattr(self.function, "element_spec")
        return traits.having(
            pure=traits.pure or calls_no_user_code(called),
            # Not the spec that a rule has found: ops downstream would refuse elements earlier than without the rule.
            static_spec=traits.static_spec or has_spec,
            proved_spec=getattr(self.column_function, "element_spec", None),
        )

    def _element_spec(self) -> Any:
        called: Any = self.function if self.column_function is None else self.column_function
        declared = getattr(called, "element_spec", None)
        return probed_spec(self) if declared is None else declared

    def _details(self) -> list[str]:
        parallel, columns, joined = super()._details()
        in_blocks = "" if self.function_of_blocks is None else "on records in blocks"
        return [parallel, columns, in_blocks, joined, "into arrays" if self.write_into_batch else ""]

    def operator(self, source: Operator) -> ElementwiseOperator:
        function = self.function if self.function_of_blocks is None else self.function_of_blocks
        operator = MapOperator(
            source,
            self,
            function,
            columnwise=self.columnwise,
            column_function=self.column_function,
            divided=self.divided,
        )
        operator.write_into_batch = self.write_into_batch
        return operator

    def parallel_settings(self) -> tuple[Any, ...]:
        return self.parallelism(), self.deterministic, not self.use_unbounded_threadpool, self.executor


class MapOperator(ElementwiseOperator):
    """Operator whose elements are the results of the function. All have the structure of the first."""

    one_to_one = returns_results = True
    lists_are_structure: ClassVar[bool] = True  # as in tf.data
    # For results that can be passed on unchanged: the dtype of bare arrays, the length of tuples of components, and the
    # type of bare numbers and bytes.
    _usual_dtype: np.dtype[Any] | None = None
    _usual_width: int | None = None
    _usual_scalar: type[Any] | None = None

    def finish(self, inputs: Chunk | None, results: list[Any]) -> Chunk:  # noqa: ARG002  # used by filter
        if self.lists_are_structure and type(results[0]) is list:
            results = [tuple(result) if type(result) is list else result for result in results]
        structure = self.structure or self._expect_structure(structure_of(results[0]))
        try:
            return chunk_of_rows(results, structure, lists_are_structure=self.lists_are_structure)
        except StructureMismatchError:
            if len(results) == 1:  # an element that is invalid anyway fails as if it were the first one
                chunk_of_rows(results, lists_are_structure=self.lists_are_structure)
            raise

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk:
        given = () if is_vectorized(self.function) else inputs.columns()
        if type(result) is list and self.lists_are_structure:
            result = tuple(result)
        output = chunk_of_columns(result, inputs.length, given, to_be_stacked=self.write_into_batch)
        if output.structure != self._expect_structure(output.structure):
            raise StructureMismatchError
        return output

    def _expect_structure(self, structure: Structure) -> Structure:
        if not structure.num_components:
            raise SpecError(f"{self.node.label()} must return an element, got {structure!r}")
        if self.structure is None:
            self.structure = structure
        return self.structure

    @interruptible
    def pass_on(self, given: tuple[Any, ...], function: Callable[..., Any]) -> tuple[Any, ...] | None:
        result = own(function(*given), given)
        if type(result) is np.ndarray and result.dtype is self._usual_dtype and result.ndim:
            passed: tuple[Any, ...] = (result,)
        elif type(result) is tuple and len(result) == self._usual_width and all(map(is_canonical, result)):
            passed = result
        elif type(result) is self._usual_scalar:
            passed = (result,)
        else:
            passed = self._arguments_of(result)
        self.at += 1
        return passed

    def _arguments_of(self, result: Any) -> tuple[Any, ...]:
        try:
            row = self.finish(None, [result]).only()
        except StructureMismatchError:
            raise SpecError(self.mismatch(result)) from None
        assert self.structure is not None  # set by finish
        self.bytes_passed = sum(part.nbytes for part in self.structure.flatten(row) if isinstance(part, np.ndarray))
        if not is_tuple(self.structure):
            plain = self.structure is LEAF and is_canonical(row)
            self._usual_dtype = row.dtype if plain and type(row) is np.ndarray else None
            self._usual_scalar = type(row) if plain and type(row) is not np.ndarray else None
            return (row,)
        flat = type(row) is tuple and all(child is LEAF for child in self.structure.children)
        self._usual_width = len(row) if flat else None
        arguments: tuple[Any, ...] = row
        return arguments

    def merge_context(self, context: Structure | None, position: int) -> Exception | None:
        if context is None or self._expect_structure(context) == context:
            return None
        return with_location(SpecError(self._mismatch_of(context)), self.node, position)

    # With several workers, the first element determines the structure. Until then, each task has one element, and
    # mismatches are detected in output order.

    @property
    def single_element_tasks(self) -> bool:
        return self.structure is None

    def task_context(self) -> Any:
        return self.structure

    def begin(self, task: Task, context: Structure | None) -> None:
        super().begin(task, context)
        self.structure = context
        self._usual_dtype = self._usual_width = self._usual_scalar = None

    def accept(self, task: Task) -> Iterable[Outcome]:
        position = task.position
        for outcome in super().accept(task):
            if isinstance(outcome, BaseException):
                yield outcome
                position += 1
                continue
            if self._expect_structure(outcome.structure) == outcome.structure:
                yield outcome
            else:
                for index, row in enumerate(outcome.rows()):
                    yield with_location(SpecError(self.mismatch(row)), self.node, position + index)
            position += outcome.length

    def mismatch(self, result: Any) -> str:
        is_list = self.lists_are_structure and type(result) is list
        return self._mismatch_of(structure_of(tuple(result) if is_list else result))

    def _mismatch_of(self, structure: Structure) -> str:
        got = "a bare component" if structure is LEAF else repr(structure)
        message = (
            f"{self.node.label()} returned {got}, but earlier elements had the structure {self.structure!r}; "
            "the function must return the same structure for every element"
        )
        if self.lists_are_structure and self.structure is not None and is_tuple(structure) and is_tuple(self.structure):
            message += (
                ". A list that a function returns becomes a tuple, as in tf.data: return np.asarray(values) if it is "
                "one array, such as the ids of tokens"
            )
        return message

"""Node and operator of batch(batch_size): stack consecutive elements. See unbatch.py for the inverse."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dataset.errors import SpecError
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import is_known, map_known
from dataset.plan.checks import require_bool, require_int, require_parallelism
from dataset.plan.lazy import lazy_property
from dataset.plan.node import (
    MemoryNode,
    Miss,
    Node,
    ParallelNode,
    Sharding,
    elements_in_memory,
    is_exact,
    spec_is_static,
)
from dataset.plan.packed import BytesColumn
from dataset.plan.spec import ComponentSpec, RaggedTensorSpec, TensorSpec, flatten_spec, map_spec
from dataset.plan.traits import Traits
from dataset.runtime.chunks.batching import ColumnMismatchError, NoRoomError, stack_column
from dataset.runtime.chunks.chunk import Array, Chunk, Column, Outcome
from dataset.runtime.chunks.lineage import grouped
from dataset.runtime.chunks.ragged_stack import stack_as_ragged
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, assumes_no_failures
from dataset.runtime.parallel.pool import in_parallel
from dataset.runtime.parallel.tasks import Divisible, Task, Worker, passed_over
from dataset.runtime.position import BATCH_SIZE, Position, Run
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class Batch(ParallelNode, MemoryNode, seekable=True, views=True, batches=True, takes_packed=True, elastic=True):
    """Node that stacks ``batch_size`` elements along a new first axis; fewer at the end unless ``drop_remainder``."""

    op: ClassVar[str] = "batch"
    advice: ClassVar[str] = (
        "all elements of a batch must have the same {what}: make them equal in map(), or use padded_batch() or "
        "ragged_batch()"
    )
    rule: ClassVar[str] = "parallel_batch"
    batch_size: int
    drop_remainder: bool = False
    in_blocks: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if a batch of byte strings may be a BytesColumn instead of an array."""

    def __post_init__(self) -> None:
        self._set("batch_size", require_int(self.op, "batch_size", self.batch_size, minimum=1))
        self._set("drop_remainder", require_bool(self.op, "drop_remainder", self.drop_remainder))
        require_parallelism(self.op, self.num_parallel_calls, self.deterministic)

    def _element_spec(self) -> Any:
        size = self.batch_size if self.drop_remainder else None
        return map_spec(lambda spec: spec.batched(size), self.source.element_spec)

    def cardinality(self) -> int:
        size = self.batch_size
        return map_known(lambda n: n // size if self.drop_remainder else -(-n // size), self.source.cardinality())

    @lazy_property
    def traits(self) -> Traits:
        """Separable only if the total number of batches is unknown; exact only if stacking cannot fail."""
        separable = not is_known(self.source.cardinality())
        rows = self.batch_size if self.drop_remainder else None
        stacks = self.batch_size if self._is_plain else 0
        packed = super().traits.takes_packed and self.batch_size > 1
        return super().traits.having(
            separable=separable, exact=self._is_exact(), rows=rows, stacks=stacks, takes_packed=packed
        )

    @property
    def _is_plain(self) -> bool:
        """Whether this is not one of the subclasses, which have more reasons to fail and no parallel calls."""
        return type(self) is Batch

    def rewritten(self) -> Node | Miss | None:
        return super().rewritten() if self._is_plain else None

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self:
        elements = shard.below_batch(self.batch_size, drop_remainder=self.drop_remainder)
        return self.with_inputs([below(self.source, elements)])

    def _is_exact(self) -> bool:
        """Return whether all elements are known to have the same shape, and the order of batches is determined."""
        return (
            self._is_plain
            and self.deterministic is not False
            and is_exact(self.source)
            and spec_is_static(self.source)
            and all(map(_is_of_one_shape, flatten_spec(self.source.element_spec)[1]))
        )

    def keeping_blocks(self) -> Node | None:
        return replace(self, in_blocks=True) if self._is_plain else None

    def input_positions(self, positions: Array) -> Array | None:
        size, available = self.batch_size, self.source.cardinality()
        elements = (positions[:, np.newaxis] * size + np.arange(size)).ravel()
        if available >= 0:
            if len(positions) > 1 and (positions[:-1].max() + 1) * size > available:
                return None  # only the last batch of a plan may have fewer elements
            elements = elements[elements < available]
        return elements

    def label(self) -> str:
        return f"{self.op}({self.batch_size}{', drop_remainder' if self.drop_remainder else ''})"

    @lazy_property
    def _ragged_ranks(self) -> dict[int, tuple[int, np.dtype[Any]]]:
        """Ragged rank and row splits dtype of the components whose batches are ragged, by index."""
        if not spec_is_static(self.source):
            return {}
        specs = flatten_spec(self.source.element_spec)[1]
        return {index: found for index, spec in enumerate(specs) if (found := self._ragged_rank(spec)) is not None}

    def _ragged_rank(self, spec: ComponentSpec) -> tuple[int, np.dtype[Any]] | None:
        """Return the ragged rank for rows of ragged tensors, which are batched into a ragged tensor, as in tf.data."""
        if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank == 0:
            return 1, spec.row_splits_dtype
        return None

    def stack(self, index: int, column: Column) -> Any:
        """Combine the column of component ``index`` into one batched component."""
        if isinstance(column, BytesColumn):
            return column
        if isinstance(column, np.ndarray) and column.ndim == 1:  # scalars, so not rows of ragged tensors
            return column
        ragged = self._ragged_ranks.get(index)
        return stack_column(column) if ragged is None else stack_as_ragged(column, *ragged)

    def operator(self, source: Operator) -> BatchOperator:
        """Return the operator of this op alone, for one thread."""
        return BatchOperator(source, self)

    def elements_in_memory(self) -> Chunk | None:
        elements: Chunk | None = elements_in_memory(self.source) if self._is_plain else None
        if elements is None or elements.is_packed or not elements.length or self.num_parallel_calls is not None:
            return None
        if elements.length > self.batch_size or (elements.length < self.batch_size and self.drop_remainder):
            return None
        try:
            batch = [[self.stack(index, column)] for index, column in enumerate(elements.columns())]
        except ColumnMismatchError:  # raised again by the operator
            return None
        return Chunk(elements.structure, 1, batch)

    def lower(self, context: ExecutionContext) -> Operator:
        operator = self.operator(context(self.source, packed=self.in_blocks))
        return in_parallel(context, operator, self)


def _is_of_one_shape(spec: ComponentSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape is not None and None not in spec.shape and spec.dtype != object


class BatchOperator(Divisible):
    """Operator that collects elements until a batch is full. Shared by all batching ops.

    It pulls exactly the elements that its batches need. Elements are only buffered if the input returned fewer than
    requested.
    """

    node: Batch
    task_size_max: ClassVar[int | None] = 1
    window_per_call: ClassVar[int] = 2  # batches are large and take similar time

    def __init__(self, source: Operator, node: Batch) -> None:
        super().__init__(source, node)
        self.stack: Callable[[int, Column], Any] = node.stack
        self._waiting: list[Chunk] = []
        self.given: deque[Run] = deque()

    def produce(self, n: int) -> Chunk | None:
        if self.given:
            n = self.after_given(n)
        size = self.node.batch_size
        if not self._waiting:
            try:
                chunk = self.source.pull(n * size)
            except Exception:
                self.at += 1
                raise
            if chunk is None:
                return None
            if chunk.length == size:  # the usual case: the chunk is the batch
                self.at += size
                return self._stack(chunk, size, self.at - size)
            self._waiting.append(chunk)
        ended = self._collect(n * size, size)
        waiting = Chunk.concatenate(self._waiting)
        whole = waiting.length - waiting.length % size
        if whole:
            return self._stack_whole(waiting, whole, size)
        assert ended
        self._waiting = []
        return None if self.node.drop_remainder else self._stack(waiting, waiting.length, self.at)

    def _stack_whole(self, waiting: Chunk, whole: int, size: int) -> Chunk:
        """Return the batches of the first ``whole`` elements, or those before the first that fails."""
        try:
            batches = self._stack(waiting.slice(0, whole), size, self.at)
        except Exception:
            if whole > size:
                return self._stack_whole(waiting, size, size)
            self._wait(waiting, whole)
            raise
        self._wait(waiting, whole)
        return batches

    def _wait(self, waiting: Chunk, start: int) -> None:
        self.at += start
        self._waiting = [waiting.slice(start, waiting.length)] if start < waiting.length else []

    def _collect(self, wanted: int, needed: int) -> bool:
        """Collect ``needed`` elements, at most ``wanted``; return True if the input ended first."""
        have = sum(chunk.length for chunk in self._waiting)
        while have < needed:
            chunk = self._pull_or_drop(wanted - have)
            if chunk is None:
                return True
            if chunk.structure != self._waiting[0].structure:
                raise self._different_structure(chunk)
            self._waiting.append(chunk)
            have += chunk.length
        return False

    def _pull_or_drop(self, n: int) -> Chunk | None:
        """Pull elements. As in tf.data, a failed element drops the batch it would have been in."""
        try:
            return self.source.pull(n)
        except Exception:
            self.at += 1 + sum(chunk.length for chunk in self._waiting)
            self._waiting = []
            raise

    def _different_structure(self, chunk: Chunk) -> SpecError:
        """Return the error, and drop the batch; the next one begins where the structure changes."""
        error = SpecError(
            f"{self.node}: all elements of a batch must have the same structure, got "
            f"{self._waiting[0].structure!r} and {chunk.structure!r}"
        )
        self.at += sum(waiting.length for waiting in self._waiting)
        self._waiting = [chunk]
        return error

    # Resuming after a saved position skips elements, not batches, since the batch boundaries are known there.

    def pass_given(self, n: int) -> int:
        if not self.given or self.outbox:
            return n
        start, inputs, outputs = self.given[0]
        if start > self.at:
            return min(n, max(1, (start - self.at) // self.node.batch_size))
        if not inputs:
            self.given.popleft()
            return 0
        passed = self._pass_waiting(inputs) if self._waiting else passed_over(self.source, inputs)
        self.at += passed
        if not passed:  # the input is shorter than expected; the next pull finds its end
            self.given.clear()
        else:
            self.given[0] = self.at, inputs - passed, outputs
        return 0

    def _pass_waiting(self, n: int) -> int:
        first, *others = self._waiting
        passed = min(n, first.length)
        rest = [first.slice(passed, first.length)] if passed < first.length else []
        self._waiting = rest + others
        return passed

    def advance(self, position: Position, count: int) -> Position | None:
        source = self.node.source
        if not (assumes_no_failures() or (is_exact(source) and spec_is_static(source))):
            return None  # a failed element ends a batch early
        return self.advance_input(position, count * self.node.batch_size)

    # Parallel tasks: a worker stacks the collected elements of one batch.

    def next_task(self, n: int) -> Task | None:
        if self.outbox:
            return Task(None, self.at, len(self.outbox), self.outbox.take_all())
        if self.given:
            self.after_given(n)
        elements = self._next_elements()
        if elements is None:
            return None
        task = Task(elements, self.at, 1)
        self.at += elements.length
        return task

    def _next_elements(self) -> Chunk | None:
        """Return the elements of the next batch; None at the end."""
        size = self.node.batch_size
        if not self._waiting:
            chunk = self._pull_or_drop(size)
            if chunk is None:
                return None
            self._waiting = [chunk]
        self._collect(size, size)
        waiting = Chunk.concatenate(self._waiting)
        self._waiting = [waiting.slice(size, waiting.length)] if waiting.length > size else []
        too_few = waiting.length < size and self.node.drop_remainder
        return None if too_few else waiting.slice(0, min(size, waiting.length))

    def worker(self) -> Worker:
        return self._stack_task

    def _stack_task(self, task: Task) -> list[Outcome]:
        assert task.inputs is not None  # otherwise it would have failed before
        try:
            return [self._stack(task.inputs, task.inputs.length, task.position)]
        except BaseException as error:  # noqa: BLE001  # raised in the consumer's thread, at its position
            return [error]

    def stacked(self, elements: Chunk) -> Chunk:
        """Return the batch of these elements. Error messages count them from 0."""
        return self._stack(elements, elements.length, 0)

    def _stack(self, elements: Chunk, size: int, position: int) -> Chunk:
        """Stack batches of ``size`` from ``elements``, whose first element is at ``position``."""
        columns: list[Column] = []
        index = 0
        starts = range(0, elements.length, size)
        try:
            for index, column in enumerate(elements.columns()):  # the except clause reads the index
                if elements.length > size:
                    columns.append([self.stack(index, column[i : i + size]) for i in starts])
                else:
                    columns.append([self.stack(index, column)])
        except ColumnMismatchError as error:
            raise self._explained(elements.structure.component_name(index), error, position + error.index) from None
        lineage = None if elements.lineage is None else grouped(elements.lineage, size)
        return Chunk(elements.structure, elements.length // size, columns, lineage=lineage)

    def _explained(self, component: str, error: ColumnMismatchError, where: int) -> SpecError:
        if isinstance(error, NoRoomError):
            return SpecError(
                f"{self.node}: {component} has shape {error.got} in element {where}, which does not fit "
                f"into {error.before}; {self.node.advice}"
            )
        against = f" but {error.before} in element {where - 1}" if error.index else f", expected {error.before}"
        return SpecError(
            f"{self.node}: {component} has {error.what} {error.got} in element {where}{against}; "
            + self.node.advice.format(what=error.what)
        )

    def save(self) -> Position:
        waiting = save_chunk(Chunk.concatenate(self._waiting)) if self._waiting else None
        return super().save().with_held(waiting=waiting).having(own={BATCH_SIZE: self.node.batch_size})

    def load(self, position: Position) -> None:
        super().load(position)
        waiting = load_chunk(position.held.get("waiting"), lambda: self.node.source.element_spec)
        self._waiting = [] if waiting is None else [waiting]

"""Elementwise base node of map and filter: a function that is called for each element, and how it runs.

It runs sequentially or in parallel, or on whole columns if it is proven to be arithmetic. It may be fused with the
upstream op, so that each element passes through both functions while it is in the CPU cache.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dataset.amounts import AHEAD_BYTES, AHEAD_ELEMENTS, AHEAD_FIRST, STEP_BYTES, STEP_ELEMENTS
from dataset.options import AUTOTUNE, Autotune
from dataset.plan.checks import require_parallelism
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Miss, Node, ParallelNode, holds_user_code, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.packed import TAKES_BLOCKS
from dataset.plan.spec import TensorSpec, flatten_spec
from dataset.plan.traits import Traits
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.functions.expression import Graph
from dataset.runtime.functions.fused import FusedOperator
from dataset.runtime.functions.kernels.columns import ColumnFunction, ElementwiseFunction
from dataset.runtime.functions.kernels.divided import DividedFunction
from dataset.runtime.functions.kernels.vectorized import is_vectorized
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.pool import in_parallel
from dataset.runtime.parallel.read_ahead import ReadAheadOperator
from dataset.shared_calls import shares_calls

# Elements and bytes that are read ahead for a function that parses. They make the fixed cost of a shared call small.
_SHARED_MAX = AHEAD_FIRST, AHEAD_BYTES
_COLUMNS_MAX = STEP_ELEMENTS, STEP_BYTES  # if it runs on columns, whose fixed cost is higher


@dataclass(frozen=True, eq=False)
class MapNode(ParallelNode):
    """Base node of map and random_map: each element is the result of a function, called in threads or processes."""

    executor: str | int = field(default="thread", kw_only=True, repr=False)
    write_into_batch: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if the results will be written into the arrays of a batch downstream."""

    def require_calls(self) -> None:
        """Check the arguments of parallel calls; calls in processes are parallel."""
        require_parallelism(self.op, self.num_parallel_calls, self.deterministic)
        executor = self.executor
        is_bounded = isinstance(executor, Autotune) and executor.max is not None
        if executor not in {"thread", "process", AUTOTUNE} or is_bounded:
            raise ValueError(f'{self.op}(): executor must be "thread", "process" or AUTOTUNE, got {executor!r}')
        if executor != "thread" and self.num_parallel_calls is None:
            self._set("num_parallel_calls", AUTOTUNE)

    def parallelism(self) -> str:
        place = {"process": " in processes", AUTOTUNE: " in threads or processes"}.get(self.executor, "")
        return super().parallelism() + place


@dataclass(frozen=True, eq=False)
class Elementwise(ParallelNode, pure=False):
    """Base node of an op that calls a function for each element."""

    columnwise: ElementwiseFunction | None = field(default=None, kw_only=True, repr=False)
    """Set by the optimizer if the function is proven to have no effects and may be tried on whole columns."""
    divided: DividedFunction | None = field(default=None, kw_only=True, repr=False)
    """Set by the optimizer if only the beginning of the function is proven so, and may be computed on columns."""
    column_function: ColumnFunction | None = field(default=None, kw_only=True, repr=False)
    """Set by the optimizer if the function gives results: tried before it if there are enough elements."""
    function_of_blocks: Callable[..., Any] | None = field(default=None, kw_only=True, repr=False)
    """Set by the optimizer if the elements may be BytesColumns instead of arrays: called in place of the function."""
    fused: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if the op is fused with its input, which is also Elementwise."""

    @property
    @abstractmethod
    def called(self) -> Callable[..., Any]:
        """The user function."""

    @abstractmethod
    def operator(self, source: Operator) -> ElementwiseOperator:
        """Return the operator of this op alone, for one thread."""

    def label(self) -> str:
        return f"{self.op}({function_name(self.called)})"

    @lazy_property
    def traits(self) -> Traits:
        """Arithmetic is pure: computing it early, late or repeatedly is unobservable."""
        return super().traits.having(pure=self.only_computes, computes=self.whole_graph is not None)

    @property
    def whole_graph(self) -> Graph | None:
        """What the function computes, if all of that is known."""
        graph = None if self.columnwise is None else self.columnwise.graph
        return graph if graph is not None and graph.is_whole else None

    @property
    def takes_columns(self) -> bool:
        """Whether the function is called for many elements at once, so that it cannot be fused."""
        return self.column_function is not None or is_vectorized(self.called)

    def rewritten(self) -> Node | Miss | None:
        is_fast = self.columnwise is not None and not self.columnwise.graph.waits
        if self.num_parallel_calls is None and (is_fast or is_vectorized(self.called)):
            return Miss("the function runs on whole columns, which is fast")
        return super().rewritten()

    @property
    def parses_blocks(self) -> bool:
        """Whether the elements of the input are only read by functions that take a BytesColumn of them."""
        if self.column_function is not None or self.columnwise is None:
            function = self.called if self.column_function is None else self.column_function
            return self.takes_columns and bool(vars(type(function)).get(TAKES_BLOCKS, False))
        return self.columnwise.graph.takes_blocks

    @lazy_property
    def only_computes(self) -> bool:
        """Whether the function is proven to have no effects and read no variables, and its arguments are numbers."""
        graph = self.whole_graph
        return graph is not None and graph.reads_nothing and _gives_numbers(self.source)

    def parallel_settings(self) -> tuple[Any, ...]:
        """Return the number of calls in words, their order, whether workers are counted, and the executor.

        Fused ops agree in them.
        """
        return self.parallelism(), self.deterministic, True, self.executor

    @property
    def executor(self) -> str | int:
        """Where parallel calls run: "thread", "process" or AUTOTUNE."""
        return "thread"

    def annotation(self) -> str:
        return ", ".join(filter(None, self._details()))

    def _details(self) -> list[str]:
        return [
            self.parallelism(),
            self._where_on_columns(),
            "together with its input" if self.fused else "",
        ]

    def _where_on_columns(self) -> str:
        if self.column_function is not None or self.whole_graph is not None:
            return "on columns"
        if self.columnwise is not None:
            return "on columns if its elements are dicts" if self.columnwise.graph.waits else "in part on columns"
        return "" if self.divided is None else f"on columns up to line {self.divided.division.line}"

    def lower(self, context: ExecutionContext) -> Operator:
        if context.iteration.background and self.is_unseen:
            context.fused_with(*self._unseen_below())
            return ReadAheadOperator(
                self.unseen_operator(context),
                context,
                elements_max=AHEAD_ELEMENTS,
                bytes_max=AHEAD_BYTES,
                is_steady=True,
            )
        nodes, profile = [self], context.iteration.profile
        is_profiled = profile is not None and profile.top.trace is not None
        is_apart = is_profiled and self.num_parallel_calls is None  # to find out what each function costs
        while nodes[-1].fused and isinstance(nodes[-1].source, Elementwise) and not is_apart:
            nodes.append(nodes[-1].source)
        times = context.fused_with(*nodes[1:])
        may_pack = len(nodes) == 1 and self.executor == "thread" and (self.traits.aligned or context.may_be_packed)
        packed = may_pack and self.parses_blocks
        stages = [nodes[-1].first_operator(context, packed=packed)]
        for node in reversed(nodes[:-1]):
            stages.append(node.operator(stages[-1]))
        calls = self.num_parallel_calls
        calls_each = calls.max if isinstance(calls, Autotune) else None if calls == AUTOTUNE else calls
        operator = stages[0] if len(stages) == 1 else FusedOperator(stages, times, calls_each)
        _, _, counted, executor = self.parallel_settings()
        node = replace(self, num_parallel_calls=None) if self.needs_no_threads and len(stages) == 1 else self
        return in_parallel(context, operator, node, counted=counted, executor=executor, stages=len(stages))

    def first_operator(self, context: ExecutionContext, *, packed: bool) -> ElementwiseOperator:
        """Return the operator of this op alone. If its function can share its calls, the input is read ahead."""
        below = context(self.source, packed=packed)
        graphs = [] if self.columnwise is None else [self.columnwise.graph]
        graphs += [] if self.divided is None else [self.divided.division.graph]
        shares = shares_calls(self.called) or any(graph.twins for graph in graphs)
        may_read = context.iteration.background and shares and not holds_user_code(self.source)
        if may_read and isinstance(below, BufferedOperator):
            limits = _COLUMNS_MAX if graphs else _SHARED_MAX
            ahead = ReadAheadOperator(below, context, elements_max=limits[0], bytes_max=limits[1], is_steady=True)
            operator = self.operator(ahead)
            operator.ahead = ahead
        else:
            operator = self.operator(below)
        operator.parses_blocks = packed
        return operator

    @property
    def needs_no_threads(self) -> bool:
        """Whether AUTOTUNE calls no worker: arithmetic on columns of small elements costs less than a handover."""
        graph = self.whole_graph
        is_arithmetic = graph is not None and not graph.twins
        return is_arithmetic and self.num_parallel_calls == AUTOTUNE and self.executor == "thread"

    @lazy_property
    def is_unseen(self) -> bool:
        """Whether running this op and its inputs at any time is unobservable, because this op is pure arithmetic."""
        if not (self.num_parallel_calls is None or self.needs_no_threads) or not self.only_computes:
            return False
        return self.source.is_unseen if isinstance(self.source, Elementwise) else not holds_user_code(self.source)

    def _unseen_below(self) -> Iterator[Elementwise]:
        """Yield the ops that ``unseen_operator`` includes."""
        node = self.source
        while isinstance(node, Elementwise) and node.is_unseen:
            yield node
            node = node.source

    def unseen_operator(self, context: ExecutionContext) -> ElementwiseOperator:
        """Return the operator of this op directly on top of the operators of all unobservable upstream ops."""
        below = self.source
        chained = isinstance(below, Elementwise) and below.is_unseen
        operator = self.operator(below.unseen_operator(context) if chained else context(below))  # type: ignore[attr-defined]
        operator.is_unseen = True
        return operator


def _gives_numbers(node: Node) -> bool:
    if isinstance(node, Elementwise):
        return node.only_computes
    if not spec_is_static(node):
        return False
    return all(
        isinstance(spec, TensorSpec) and spec.dtype.kind in "biufc" for spec in flatten_spec(node.element_spec)[1]
    )

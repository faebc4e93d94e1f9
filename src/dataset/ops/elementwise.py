"""What map and filter share as nodes: a function that is called for each element, and how it is run.

Alone or in parallel; on whole columns where it is proven to be arithmetic; together with the op below, so that each
element goes through both functions while it is in the processor's cache.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dataset.options import AUTOTUNE
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, holds_user_code, spec_is_static
from dataset.plan.spec import TensorSpec, flatten_spec
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.ahead import AheadOperator
from dataset.runtime.functions.calls import ElementwiseOperator
from dataset.runtime.functions.elementwise import ElementwiseProof
from dataset.runtime.functions.fused import FusedOperator
from dataset.runtime.parallel.pool import in_parallel, parallel_detail
from dataset.runtime.parallel.tasks import Divisible


@dataclass(frozen=True, eq=False)
class Elementwise(UnaryNode):
    """An op that calls ``function`` for each element."""

    num_parallel_calls: int | None = field(default=None, kw_only=True, repr=False)
    deterministic: bool | None = field(default=None, kw_only=True, repr=False)
    columnwise: ElementwiseProof | None = field(default=None, kw_only=True, repr=False)
    """Set by the optimizer where the function is proved to have no effects and may be tried on whole columns."""
    joined: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer where the op is run together with the one below, which is Elementwise, too."""

    @property
    @abstractmethod
    def called(self) -> Callable[..., Any]:
        """The function."""

    @abstractmethod
    def operator(self, source: Operator) -> ElementwiseOperator:
        """The op alone, in one thread."""

    @property
    def calls_user_code(self) -> bool:  # type: ignore[override]  # here it depends on the function
        """What only computes with numbers can be done early, late or again, and nobody notices."""
        return not self.only_computes

    @lazy_property
    def only_computes(self) -> bool:
        """Whether the function, by its proof, has no effects and reads no variables, and is given numbers only."""
        return self.columnwise is not None and self.columnwise.reads_nothing and _gives_numbers(self.source)

    def parallel_settings(self) -> tuple[Any, ...]:
        """What must be equal for two ops to run together."""
        return self.num_parallel_calls, self.deterministic, True, self.runs_in_processes

    @property
    def runs_in_processes(self) -> bool:
        """Whether the function is called in worker processes."""
        return False

    def detail(self) -> str:
        return ", ".join(filter(None, self._details()))

    def _details(self) -> list[str]:
        return [
            parallel_detail(self.num_parallel_calls, self.deterministic),
            "on columns" if self.columnwise else "",
            "together with the op below" if self.joined else "",
        ]

    def lower(self, build: ExecutionContext) -> Operator:
        if build.background and self.is_unseen:
            build.joins(*self._unseen_below())
            return AheadOperator(self.unseen_operator(build), build)
        nodes = [self]
        while nodes[-1].joined and isinstance(nodes[-1].source, Elementwise):
            nodes.append(nodes[-1].source)
        build.joins(*nodes[1:])
        stages = [nodes[-1].operator(build(nodes[-1].source))]
        for node in reversed(nodes[:-1]):
            stages.append(node.operator(stages[-1]))
        calls_each = None if self.num_parallel_calls == AUTOTUNE else self.num_parallel_calls
        operator = stages[0] if len(stages) == 1 else FusedOperator(stages, calls_each)
        return self._in_parallel(build, operator, len(stages))

    def _in_parallel(self, build: ExecutionContext, operator: Divisible, stages: int) -> Operator:
        """The operator, or one that has its work done by several workers."""
        return in_parallel(build, operator, self.num_parallel_calls, self.deterministic, stages=stages)

    @lazy_property
    def is_unseen(self) -> bool:
        """Whether this is arithmetic, and nobody can notice when it, and all that is below it, are run."""
        if self.num_parallel_calls is not None or not self.only_computes:
            return False
        return self.source.is_unseen if isinstance(self.source, Elementwise) else not holds_user_code(self.source)

    def _unseen_below(self) -> Iterator[Elementwise]:
        """The ops that ``unseen_operator`` takes in."""
        node = self.source
        while isinstance(node, Elementwise) and node.is_unseen:
            yield node
            node = node.source

    def unseen_operator(self, build: ExecutionContext) -> ElementwiseOperator:
        """The operator of this op over those of all below that are unseen, too, with nothing between them."""
        below = self.source
        chained = isinstance(below, Elementwise) and below.is_unseen
        operator = self.operator(below.unseen_operator(build) if chained else build(below))  # type: ignore[attr-defined]
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

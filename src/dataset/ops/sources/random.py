"""Node and operator of random(seed, rerandomize_each_iteration): an infinite sequence of random integers."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_bool
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.random_state import RandomState
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position
from dataset.runtime.random.streams import RandomPass, random_state

_SIZE = 2**32  # tf.data yields 32 random bits as an int64


@dataclass(frozen=True, eq=False)
class Random(Node, generated=True):
    """Source node of uniformly distributed integers from 0 to 2**32 - 1."""

    op: ClassVar[str] = "random"
    seed: InitVar[int | None] = None
    rerandomize_each_iteration: bool = False
    random: RandomState = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]  # set below

    def __post_init__(self, seed: int | None) -> None:
        require_bool("random", "rerandomize_each_iteration", self.rerandomize_each_iteration)
        if self.random is None:  # else the node is a copy
            self._set("random", random_state("random", seed))

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(stable=not self.rerandomize_each_iteration)

    def _element_spec(self) -> Any:
        return TensorSpec((), np.int64)

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY

    def label(self) -> str:
        return "random()" if self.random.seed is None else f"random(seed={self.random.seed})"

    def lower(self, context: ExecutionContext) -> Operator:
        again = not self.rerandomize_each_iteration
        draws = context.draws(self.random)
        stream = RandomPass(draws, context.iteration.epochs, self.random, again=again)
        return RandomOperator(stream, source_lineage(context, self))


class RandomOperator(Operator):
    """Operator that holds a position in the random stream."""

    op = "random"

    def __init__(self, random: RandomPass, lineage: LineageWriter | None) -> None:
        self.random = random
        self._lineage = lineage

    def pull(self, n: int) -> Chunk:
        chunk = Chunk(LEAF, n, [(self.random.stream.random(n) * _SIZE).astype(np.int64)])
        if self._lineage is not None:
            chunk.lineage = self._lineage.run(self.random.stream.position - n, n)
        return chunk

    def save(self) -> Position:
        return Position(self.op, own=self.random.save())

    def load(self, position: Position) -> None:
        self.random.load(position.own)

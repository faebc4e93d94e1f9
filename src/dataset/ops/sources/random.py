"""Node and operator of random(seed, rerandomize_each_iteration): an infinite sequence of random integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_bool, require_seed
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.random.streams import EpochCounter, RandomPass, resolve_seed

_SIZE = 2**32  # tf.data yields 32 random bits as an int64


@dataclass(frozen=True, eq=False)
class Random(Node):
    """Source node of uniformly distributed integers from 0 to 2**32 - 1."""

    op: ClassVar[str] = "random"
    seed: int | None = field(default=None, repr=False)
    rerandomize_each_iteration: bool = False
    counter: EpochCounter = field(default_factory=EpochCounter, kw_only=True, repr=False)
    key: int | None = field(default=None, kw_only=True, repr=False)
    """The 64-bit seed derived from the op's seed and the global seed."""

    def __post_init__(self) -> None:
        self._set("seed", require_seed("random", self.seed))
        require_bool("random", "rerandomize_each_iteration", self.rerandomize_each_iteration)
        if self.key is None:
            self._set("key", resolve_seed(self.seed))

    def _element_spec(self) -> Any:
        return TensorSpec((), np.int64)

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY

    def label(self) -> str:
        return "random()" if self.seed is None else f"random(seed={self.seed})"

    def lower(self, context: ExecutionContext) -> Operator:
        assert self.key is not None
        again = not self.rerandomize_each_iteration
        return RandomOperator(RandomPass(context.draws(self), context.iteration.epochs, self.counter, again=again))


class RandomOperator(Operator):
    """Operator that holds a position in the random stream."""

    def __init__(self, random: RandomPass) -> None:
        self.random = random

    def pull(self, n: int) -> Chunk:
        return Chunk(LEAF, n, [(self.random.stream.random(n) * _SIZE).astype(np.int64)])

    def save(self) -> State:
        return {"op": "random", **self.random.save()}

    def load(self, state: State) -> None:
        self.random.load(state)

"""Node and operator of random_map(map_func): a reproducible map with a user function that draws random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, ClassVar, Self

from dataset.ops.elementwise import MapNode
from dataset.ops.map import MapOperator
from dataset.plan.block_cyclic_shard import BlockCyclicShard, places_in
from dataset.plan.checks import require_callable
from dataset.plan.node import Sharding
from dataset.plan.origin import function_name
from dataset.plan.random_state import RandomState
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.kernels.vectorized import require_one_by_one
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.parallel.pool import in_parallel
from dataset.runtime.parallel.tasks import Task
from dataset.runtime.position import Position
from dataset.runtime.random.streams import ElementGenerators, EpochLedger, random_state


@dataclass(frozen=True, eq=False)
class RandomMap(MapNode, pure=False, static_spec=False, separable=True, elastic=True):
    """Node that applies ``function`` to a random generator and each element."""

    op: ClassVar[str] = "random_map"
    rule: ClassVar[str] = "map_parallelization"
    function: Callable[..., Any]
    seed: InitVar[int | None] = None
    random: RandomState = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]  # set below
    shards: tuple[BlockCyclicShard, ...] = field(default=(), kw_only=True, repr=False)
    """The nested shards that this node processes; empty if it processes all elements."""

    def __post_init__(self, seed: int | None) -> None:
        require_callable("random_map", "map_func", self.function)
        require_one_by_one("random_map", "map_func", self.function)
        self.require_calls()
        if self.random is None:  # else the node is a copy
            self._set("random", random_state("random_map", seed))

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self:
        """Give each element the random numbers of its position in the unsharded dataset."""
        return replace(self, source=below(self.source, shard.ordered()), shards=(*self.shards, shard))

    def label(self) -> str:
        seed = "" if self.random.seed is None else f", seed={self.random.seed}"
        return f"random_map({function_name(self.function)}{seed})"

    def annotation(self) -> str:
        return ", ".join(filter(None, [self.parallelism(), "into arrays" if self.write_into_batch else ""]))

    def lower(self, context: ExecutionContext) -> Operator:
        operator = RandomMapOperator(context, context(self.source), self)
        operator.write_into_batch = self.write_into_batch
        return in_parallel(context, operator, self, executor=self.executor)


class RandomMapOperator(MapOperator):
    """Operator that knows the epoch. An element's generator depends only on the epoch and the element's position."""

    saved = ("since", "base", "key", "iteration", "epoch")

    def __init__(self, context: ExecutionContext, source: Operator, node: RandomMap) -> None:
        super().__init__(source, node, node.function)
        self.epochs = context.iteration.epochs
        self.random = node.random
        self.shards = node.shards
        self.since = self.base = 0  # see runtime/state/resharding.py
        self._open(*context.draws(node.random))

    def _open(self, key: int, iteration: int, epoch: int) -> None:
        self.key, self.iteration, self.epoch = key, iteration, epoch
        self.generators = ElementGenerators(key, iteration, epoch)

    def arguments(self, inputs: Chunk, position: int) -> list[Any]:
        positions = range(position, position + inputs.length)
        places = (self.base + places_in(self.shards, position - self.since) for position in positions)
        return [map(self.generators.at, places if self.shards else positions), *super().arguments(inputs, position)]

    # A worker is created before a state may be loaded, so each task says for which epoch it draws.

    def task_context(self) -> Any:
        return super().task_context(), (self.key, self.iteration, self.epoch), self.since, self.base

    def begin(self, task: Task, context: Any) -> None:
        structure, draws, self.since, self.base = context
        super().begin(task, structure)
        if draws != (self.key, self.iteration, self.epoch):
            self._open(*draws)

    def worker_copy(self) -> Self:
        copied = super().worker_copy()
        copied.epochs = EpochLedger()  # it loads no state
        copied._open(self.key, self.iteration, self.epoch)  # noqa: SLF001  # its own class; generators are of one thread
        return copied

    def load(self, position: Position) -> None:
        super().load(position)
        self._open(self.key, self.iteration, self.epoch)
        self.epochs.resume(self.random, self.key, self.iteration)

"""Node and operator of cache(AUTOTUNE): caches the elements of the op upstream where that saves most time.

The *places* are the ops from the call up to the first that has several inputs, repeats, or runs elsewhere, as far as
their elements are the same in each pass. The first pass keeps the elements of the last place, which saves all work
upstream, as long as they fit into the memory. At its end, the measured times and sizes decide which place is used from
then on; another one is filled in the second pass. No choice changes any element, so it may depend on time: elements
that fail are not left out of later passes, and arrays are copies, as writable as without the cache.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from dataset.amounts import SAMPLE_ELEMENTS
from dataset.errors import StateError
from dataset.ops.cache.cache import Cache, MemoryCache
from dataset.ops.cache.caching import CacheOperator, CacheStore, CacheWriter, RefusedElementError
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.drawing.brief import brief_bytes, brief_seconds
from dataset.plan.epochs import random_states
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.lazy import lazy_property, once
from dataset.plan.node import Node, Sharding, UnaryNode, inputs_first
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.ownership import copied_component
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.metrics.statistics import OperatorStatistics
from dataset.runtime.position import Position
from dataset.runtime.resources.memory import default_budget
from dataset.world import threading

_SHARE = 0.5  # of the budget, or of the free space on the disk; the rest is for buffers
_READ_BYTES_PER_SECOND = 1e9  # from files, assumed
_SAVED_MIN = 0.05  # of the time of all ops upstream: caching what saves less would waste memory
_NONE = -1  # instead of the index of a place


class DirectoryFactory(Protocol):
    """Makes the stores in a directory, which holds the elements of one place.

    Attributes:
        folder: its path.
    """

    @property
    def folder(self) -> str: ...

    def __call__(self, source: Node, *, replaces: bool) -> CacheStore:
        """Return a store for the elements of ``source``, which ``replaces`` those of another pipeline or place."""


class PlaceCost(NamedTuple):
    """What keeping the elements of a place costs in bytes, and the seconds that it saves in each pass."""

    nbytes: int
    seconds: float


class CachePlacement:
    """What cache(AUTOTUNE) has measured, chosen and kept; shared by all iterations of the dataset.

    The optimizer may rewrite the ops upstream in several ways, so places are known by the fingerprint of their plan.

    Attributes:
        chosen: the place that is used, "" for none; None until that is decided.
        reason: why, in one line.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.chosen: str | None = None
        self.reason = "the first pass decides where"
        self.stores: dict[str, MemoryCache] = {}
        self.measured: dict[str, PlaceCost] = {}
        self.unfit: dict[str, str] = {}
        """Why the elements of a place cannot be kept."""

    def __reduce__(self) -> tuple[type[CachePlacement], tuple[()]]:
        return type(self), ()  # a copy of a pipeline decides on its own

    def __repr__(self) -> str:
        return "CachePlacement()"


@dataclass(eq=False)
class CacheChoice:
    """Where the elements are kept in one pass.

    Attributes:
        index: the index of the place; -1 for nowhere.
        store: its store.
        limit: the bytes that may be kept.
        writer: fills the store in this pass.
    """

    index: int = _NONE
    store: CacheStore = field(default_factory=MemoryCache)
    limit: float = float("inf")
    writer: BoundedWriter | None = None


@dataclass(frozen=True, eq=False)
class CachePoint(Cache):
    """Node at a place: caches the elements of ``source`` if the place is chosen, or else passes them on."""

    placement: CachePlacement = field(kw_only=True, repr=False)
    index: int = field(kw_only=True, repr=False)
    original: Node = field(kw_only=True, repr=False)  # the source without other places in it

    @lazy_property
    def key(self) -> str:
        return fingerprint(self.original)

    def lower(self, context: ExecutionContext) -> Operator:
        choice = context.iteration.cache_choices.get(self.placement)
        if choice is None or choice.index != self.index:
            return context(self.source)
        context.replays = True
        return _PointOperator(context, self, choice)


class _CachePlaces(NamedTuple):
    """The places with the last op first, and the plan that contains them."""

    points: tuple[CachePoint, ...]
    plan: Node


@dataclass(frozen=True, eq=False)
class AutoCache(UnaryNode, seekable=True, separable=True, keeps_pass=True):
    """Node that caches the elements of ``source`` or of an op upstream, in memory or in a ``directory``."""

    op: ClassVar[str] = "cache"
    directory: DirectoryFactory | None = field(default=None, repr=False)
    placement: CachePlacement = field(default_factory=CachePlacement, kw_only=True, repr=False)

    def label(self) -> str:
        return "cache(AUTOTUNE)"

    def annotation(self) -> str:
        return self.placement.reason if self.places().points else f"keeps nothing: {self._reason_for_nothing()}"

    def _reason_for_nothing(self) -> str:
        """Return why it keeps nothing."""
        parts = inputs_first(self.source)
        source = next((part for part in parts if random_states(part)), None)
        if source is not None:
            return f"{source.label()} from {source.origin} is random, and nothing before it is worth keeping"
        return "there are no elements that take work and are the same in each pass"

    def parameters(self) -> dict[str, Any]:
        return {"at": "AUTOTUNE"}

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(reads_files=self.directory is not None)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self:
        return replace(self, source=below(self.source, shard), placement=CachePlacement())

    def restarted(self) -> Self:
        return replace(self, placement=CachePlacement())

    def lower(self, context: ExecutionContext) -> Operator:
        return AutoCacheOperator(context, self)

    @once
    def places(self) -> _CachePlaces:
        """Return the places, and the input with the places in it."""
        chain, node = [self.source], self.source
        while len(node.inputs) == 1 and node.traits.passes == 1 and not node.traits.remote:
            node = node.inputs[0]
            chain.append(node)
        points: list[CachePoint] = []
        count = sum(map(is_cacheable, chain))
        plan = chain[-1]
        for original in reversed(chain):
            if original is not chain[-1]:
                plan = original.with_inputs([plan])
            if is_cacheable(original):
                name = f"cache() after {original.name or original.label()}"
                plan = CachePoint(
                    plan, name=name, origin=self.origin, placement=self.placement, index=count - len(points) - 1,
                    original=original,
                )  # fmt: skip
                points.append(plan)
        return _CachePlaces(tuple(reversed(points)), plan)

    def choice(self, context: ExecutionContext) -> CacheChoice:
        """Return the choice for a pass that begins now."""
        placement, profile = self.placement, context.iteration.profile
        if context.iteration.epochs.probing or profile is None or profile.record_of(self) is None:
            return CacheChoice()
        with placement.lock:
            points = [point for point in self.places().points if point.key not in placement.unfit]
            if placement.chosen == "" or not points:
                return CacheChoice()
            kept = [point for point in points if point.key == placement.chosen] or [
                point for point in points if self._store(point, replaces=True).finished() is not None
            ]
            return self.choice_of((kept or points)[0].index, self._limit(context))

    def choice_of(self, index: int, limit: float = float("inf")) -> CacheChoice:
        """Return the choice of a place."""
        store = self._store(self.places().points[index], replaces=bool(self.placement.measured))
        return CacheChoice(index, store, limit)

    def _store(self, point: CachePoint, *, replaces: bool) -> CacheStore:
        if self.directory is not None:
            return self.directory(point.original, replaces=replaces)
        with self.placement.lock:
            return self.placement.stores.setdefault(point.key, MemoryCache())

    def _limit(self, context: ExecutionContext) -> float:
        if self.directory is None:
            return _SHARE * min(context.iteration.limits.ledger.budget, default_budget())
        folder = Path(self.directory.folder)
        return _SHARE * shutil.disk_usage(folder if folder.exists() else folder.absolute().parent).free

    def conclude(self, choice: CacheChoice, costs: Mapping[Node, OperatorStatistics]) -> None:
        """Decide, at the end of a complete pass that was to fill a store, where elements are kept from now on."""
        placement, points = self.placement, self.places().points
        with placement.lock:
            if choice.store.finished() is None:
                placement.unfit.setdefault(points[choice.index].key, "a later op ends its pass early")
            if not placement.measured:
                for point in points:
                    upstream = [costs[node].seconds for node in inputs_first(point.source) if node in costs]
                    nbytes = costs[point.source].nbytes if point.source in costs else 0
                    placement.measured[point.key] = PlaceCost(nbytes, sum(upstream))
            self._choose(choice.limit)
            for key in placement.stores.keys() - {placement.chosen}:
                del placement.stores[key]

    def _choose(self, limit: float) -> None:
        placement = self.placement
        speed = float("inf") if self.directory is None else _READ_BYTES_PER_SECOND
        found = {point: placement.measured.get(point.key, PlaceCost(0, 0.0)) for point in self.places().points}
        saved = {
            point: measured.seconds - measured.nbytes / speed
            for point, measured in found.items()
            if measured.nbytes <= limit and point.key not in placement.unfit
        }
        best = max(saved, key=lambda point: saved[point], default=None)
        placement.chosen = ""
        if best is None:
            reasons = dict.fromkeys(placement.unfit.values()) or [f"the elements take more than {brief_bytes(limit)}"]
            placement.reason = f"keeps nothing: {'; '.join(reasons)}"
        elif saved[best] <= _SAVED_MIN * max(measured.seconds for measured in found.values()):
            placement.reason = "keeps nothing: that would save no time"
        else:
            placement.chosen = best.key
            size, seconds = brief_bytes(found[best].nbytes), brief_seconds(found[best].seconds)
            what = best.original.name or best.original.label()
            placement.reason = f"keeps about {size} after {what}, which saves {seconds} of work in each pass"


def is_cacheable(node: Node) -> bool:
    """Return whether the elements of a plan are the same in each pass, finitely many, and take work to produce.

    Functions that are not deterministic cannot be recognized.
    """
    parts = inputs_first(node)
    works = any(not part.traits.pure or part.traits.reads_files for part in parts)
    return works and not random_states(node) and node.cardinality() != INFINITE_CARDINALITY


class AutoCacheOperator(UnaryOperator):
    """Operator that opens its input with the choice for the pass, and ends the pass with the next choice."""

    def __init__(self, context: ExecutionContext, node: AutoCache) -> None:
        self._context = context
        self.node = node
        self._choice = node.choice(context)
        self._is_complete = True  # whether the pass has run from its beginning, and has not ended
        super().__init__(self._open())

    def _open(self) -> Operator:
        with self.node.placement.lock:  # another thread may open the same node, for another pass
            self._context.iteration.cache_choices[self.node.placement] = self._choice
            return self._context(self.node.places().plan)

    def pull(self, n: int) -> Chunk | None:
        chunk = self.source.pull(n)
        if chunk is None and self._is_complete:
            self._is_complete = False
            profile = self._context.iteration.profile
            if self._choice.writer is not None and profile is not None:
                self.node.conclude(self._choice, profile.costs(self.node))
        return chunk

    def save(self) -> Position:
        return Position(self.op, inputs=(self.source.save(),), own={"kept_at": self._choice.index})

    def advance(self, position: Position, count: int) -> Position | None:
        return self.advance_input(position, count) if position.own["kept_at"] == self._choice.index else None

    def load(self, position: Position) -> None:
        self._is_complete = False
        index = position.like("kept_at", _NONE)
        if not _NONE <= index < len(self.node.places().points):
            raise StateError(f"{self.node}: the state is of a pipeline with other operations")
        self.source.close()
        # Where the state says that elements are kept, they were, however large.
        self._choice = CacheChoice() if index == _NONE else self.node.choice_of(index)
        self.source = self._open()
        self.source.load(position.source)


class _PointOperator(CacheOperator):
    """Operator of a place: keeps at most a number of bytes, no pass with failures, and hands out copies."""

    def __init__(self, context: ExecutionContext, node: CachePoint, choice: CacheChoice) -> None:
        super().__init__(context, node, choice.store)
        self._choice = choice
        self._note = partial(node.placement.unfit.setdefault, node.key)

    def pull(self, n: int) -> Chunk | None:
        chunk = super().pull(n)
        if chunk is None:
            return None
        columns = [
            column.copy() if isinstance(column, np.ndarray) else list(map(copied_component, column))
            for column in chunk.columns()
        ]
        return Chunk(chunk.structure, chunk.length, columns, lineage=chunk.lineage)

    def _begin(self) -> None:
        if self._begun:
            return
        try:
            super()._begin()
        except FileExistsError:  # another process fills the directory: perhaps the next pass can read it
            self._begun = self._bypasses = True
        except OSError as error:
            self._begun = self._bypasses = True
            self._note(str(error))
        if self._filling is not None:
            self._filling = self._choice.writer = BoundedWriter(self._filling, self._choice.limit, self._note)


class BoundedWriter:
    """Writer that gives up, without an error, if the elements are too large or cannot be stored."""

    def __init__(self, writer: CacheWriter, limit: float, note: Callable[[str], Any]) -> None:
        self._writer: CacheWriter | None = writer
        self._limit = limit
        self._note = note
        self._nbytes = 0.0

    def add(self, chunk: Chunk) -> None:
        if self._writer is None:
            return
        some = chunk.slice(0, min(chunk.length, SAMPLE_ELEMENTS))
        self._nbytes += some.nbytes * chunk.length / some.length
        if self._nbytes > self._limit:
            self._give_up(f"the elements take more than {brief_bytes(self._limit)}")
            return
        try:
            self._writer.add(chunk)
        except (RefusedElementError, OSError) as error:
            self._give_up(f"the elements cannot be stored: {getattr(error, 'error', error)}")

    def finish(self, failures: int) -> None:
        if failures:
            self._give_up("some elements fail")
        elif self._writer is not None:
            self._writer.finish(failures)

    def _give_up(self, reason: str) -> None:
        self._note(reason)
        self.discard()

    def discard(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.discard()

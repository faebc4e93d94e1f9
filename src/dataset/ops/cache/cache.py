"""Node and in-memory store of cache(): the first full pass is kept for later passes. For files, see io/elements/."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dataset.amounts import AHEAD_ELEMENTS, STEP_BYTES
from dataset.ops.cache.caching import CacheEntry, CacheStore, CacheWriter, lower_keeping
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import is_known
from dataset.plan.node import Sharding, UnaryNode
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Array, Chunk, Column, concatenate_columns, lineage_of
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position
from dataset.runtime.state.held_elements import Elements
from dataset.world import threading


class MemoryCache:
    """In-memory store of one cache(); shared by all iterators of the Dataset, as in tf.data."""

    in_order: ClassVar[bool] = True
    keeps_lineage: ClassVar[bool] = True

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _finished
        self._finished: CacheEntry | None = None

    def finished(self) -> CacheEntry | None:
        return self._finished

    def begin(self, start: Position, count: int) -> CacheWriter | None:
        return MemoryFilling(self, start, count) if self._finished is None else None

    def keep(self, chunks: list[Chunk], start: Position, failures: int) -> None:
        """Keep the elements of a full pass. The first pass to finish wins. Empties the list of chunks."""
        elements = _joined(chunks).read_only() if chunks else Chunk(LEAF, 0, [[]])
        with self._lock:
            if self._finished is None:
                self._finished = CacheEntry(start, Elements(elements), failures)

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[()]]:
        return type(self), ()  # a copy of a pipeline starts with an empty cache

    def __repr__(self) -> str:
        return "MemoryCache()"


_BLOCK_ELEMENTS_MIN = 8  # a single array does not show whether others share its memory


class MemoryFilling:
    """Writer that collects elements in memory.

    Arrays that arrive one by one are copied into a large array, one block at a time. A batch of a later pass is then a
    slice of it and costs nothing. If the number of elements is known, blocks are copied to their final position
    immediately; else they are joined at the end.
    """

    def __init__(self, memory: MemoryCache, start: Position, count: int) -> None:
        self._memory = memory
        self._start = start
        self._count = count  # number of elements, if known
        self._whole: _Whole | None = None
        self._chunks: list[Chunk] = []  # blocks that do not fit into _whole
        self._waiting: list[Chunk] = []  # until they form a block
        self._waiting_bytes = self._waiting_elements = 0
        self._are_lists = False  # whether _waiting has columns that are lists of arrays

    def add(self, chunk: Chunk) -> None:
        columns = chunk.columns()
        are_lists = any(type(column) is list and type(column[0]) is np.ndarray for column in columns)
        if are_lists is not self._are_lists:
            self._end_block()
            self._are_lists = are_lists
        self._waiting.append(chunk)
        self._waiting_elements += chunk.length
        for column in columns:
            if isinstance(column, np.ndarray):
                self._waiting_bytes += column.nbytes
            elif are_lists and type(column[0]) is np.ndarray:
                self._waiting_bytes += column[0].nbytes * chunk.length
        is_full = self._waiting_bytes >= STEP_BYTES or self._waiting_elements >= AHEAD_ELEMENTS
        if is_full and self._waiting_elements >= _BLOCK_ELEMENTS_MIN:
            self._end_block()

    def _end_block(self) -> None:
        if not self._waiting:
            return
        block = _stacked(Chunk.concatenate(self._waiting))
        self._waiting, self._waiting_bytes, self._waiting_elements = [], 0, 0
        if self._whole is None and not self._chunks:
            self._whole = _Whole.fitting(block, self._count)
        if self._whole is None or not self._whole.add(block):
            self._leave_whole()
            self._chunks.append(block)

    def _leave_whole(self) -> None:
        if self._whole is not None:
            self._chunks.append(self._whole.chunk())
            self._whole = None

    def finish(self, failures: int) -> None:  # failed elements are dropped, as in tf.data
        self._end_block()
        self._leave_whole()
        self._memory.keep(self._chunks, self._start, failures)
        self._chunks = []

    def discard(self) -> None:
        self._chunks, self._waiting, self._whole = [], [], None


class _Whole:
    """Preallocated columns with room for all elements. The OS only assigns memory pages that are written to."""

    def __init__(self, like: Chunk, columns: list[Column]) -> None:
        self._structure = like.structure
        self._columns = columns
        self._length = 0
        self._lineages: list[Lineage] = []  # of the chunks, if all have one

    @classmethod
    def fitting(cls, chunk: Chunk, count: int) -> _Whole | None:
        """Return columns for ``count`` elements like these; None if the count is unknown or there are no arrays."""
        columns = chunk.columns()
        if not is_known(count) or not any(isinstance(column, np.ndarray) for column in columns):
            return None
        try:
            return cls(chunk, [_room(column, count) for column in columns])
        except (MemoryError, ValueError):  # the estimate is far too large
            return None

    def add(self, chunk: Chunk) -> bool:
        """Add elements; return False if they do not fit."""
        columns = chunk.columns()
        start, stop = self._length, self._length + chunk.length
        if chunk.structure != self._structure or not all(map(_fits, self._columns, columns, itertools.repeat(stop))):
            return False
        for mine, column in zip(self._columns, columns, strict=True):
            if isinstance(mine, np.ndarray):
                mine[start:stop] = column
            else:
                mine.extend(column)
        self._length = stop
        if chunk.lineage is not None:
            self._lineages.append(chunk.lineage)
        return True

    def chunk(self) -> Chunk:
        whole = Chunk(self._structure, self._length, [column[: self._length] for column in self._columns])
        if sum(map(len, self._lineages)) == self._length and self._lineages:
            whole.lineage = concatenate_columns(self._lineages)
        return whole


def _room(column: Column, count: int) -> Column:
    return np.empty((count, *column.shape[1:]), column.dtype) if isinstance(column, np.ndarray) else []


def _fits(mine: Column, column: Column, stop: int) -> bool:
    if not isinstance(mine, np.ndarray):
        return not isinstance(column, np.ndarray)
    return (
        isinstance(column, np.ndarray)
        and (column.dtype, column.shape[1:]) == (mine.dtype, mine.shape[1:])
        and stop <= len(mine)
    )


def _stacked(chunk: Chunk) -> Chunk:
    """Return the same elements, with arrays of one shape stacked if that takes no more memory."""
    columns = [_one_array(column) if type(column) is list else column for column in chunk.columns()]
    return Chunk(chunk.structure, chunk.length, columns, lineage=chunk.lineage)


def _one_array(values: list[Any]) -> Column:
    if {type(value) for value in values} != {np.ndarray} or values[0].dtype.hasobject:
        return values
    if len({(value.shape, value.dtype) for value in values}) > 1 or not _hold_no_memory_in_common(values):
        return values
    return np.stack(values)


def _hold_no_memory_in_common(arrays: list[Array]) -> bool:
    """Return whether no array shares memory, so that copying and then freeing them takes no additional memory."""
    owners = set()
    for array in arrays:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner.base is not None or owner.nbytes > array.nbytes:
            return False
        owners.add(id(owner))
    return len(owners) == len(arrays)


def _joined(chunks: list[Chunk]) -> Chunk:
    """Concatenate the chunks. Each part is released as soon as its elements are copied."""
    if len(chunks) == 1:
        return chunks.pop()
    structure, length = chunks[0].structure, sum(chunk.length for chunk in chunks)
    columns = [list(parts) for parts in zip(*(chunk.columns() for chunk in chunks), strict=True)]
    lineage = lineage_of(chunks)
    chunks.clear()
    return Chunk(structure, length, [_joined_column(parts, length) for parts in columns], lineage=lineage)


def _joined_column(parts: list[Column], length: int) -> Column:
    kinds = {(part.dtype, part.shape[1:]) if isinstance(part, np.ndarray) else None for part in parts}
    first = parts[0]
    if len(kinds) > 1 or not isinstance(first, np.ndarray):
        return concatenate_columns(parts)
    whole = np.empty((length, *first.shape[1:]), first.dtype)
    start = 0
    del first
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


@dataclass(frozen=True, eq=False)
class Cache(UnaryNode, seekable=True, separable=True, keeps_pass=True):
    """Node that caches the elements of ``source``, which runs once."""

    op: ClassVar[str] = "cache"
    store: CacheStore = field(default_factory=MemoryCache, kw_only=True, repr=False)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        """Let each process cache its own share. Padding is not supported, since failed elements are not cached."""
        return None if shard.remainder == "pad" else self.with_inputs([below(self.source, shard)])

    def restarted(self) -> Self:
        return replace(self, store=MemoryCache())

    def lower(self, context: ExecutionContext) -> Operator:
        return lower_keeping(context, self, self.store)

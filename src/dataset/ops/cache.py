"""cache(): the elements of the first full pass, kept in memory for the passes after it. In files: io/elements/."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from dataset.plan.deal import Deal
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk
from dataset.runtime.elements import Elements, ElementsOperator
from dataset.runtime.keeping import Filling, Finished, Store, lower_keeping
from dataset.runtime.operator import Build, Operator, State


class MemoryCache:
    """What one cache() holds; shared by all iterations of the Dataset, as in tf.data."""

    in_order: ClassVar[bool] = True

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _finished
        self._finished: Finished | None = None

    def finished(self) -> Finished | None:
        return self._finished

    def begin(self, start: State) -> Filling | None:
        return MemoryFilling(self, start)

    def keep(self, chunks: list[Chunk], start: State, failures: int) -> None:
        """Keep the elements of a full pass. The first pass to end wins."""
        elements = Chunk.concatenate(chunks).read_only() if chunks else Chunk(LEAF, 0, [[]])
        with self._lock:
            if self._finished is None:
                self._finished = Finished(start, Elements(elements), ElementsOperator.state_at, failures)

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[()]]:
        return type(self), ()  # a copy of a pipeline starts with an empty cache

    def __repr__(self) -> str:
        return "MemoryCache()"


class MemoryFilling:
    """Collects chunks."""

    def __init__(self, memory: MemoryCache, start: State) -> None:
        self._memory = memory
        self._start = start
        self._chunks: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self, failures: int) -> None:  # they are left out, as in tf.data
        self._memory.keep(self._chunks, self._start, failures)
        self._chunks = []

    def discard(self) -> None:
        self._chunks = []


@dataclass(frozen=True, eq=False)
class Cache(UnaryNode):
    """The elements of ``source``, which is run through once."""

    op: ClassVar[str] = "cache"
    seeks: ClassVar[bool] = True
    store: Store = field(default_factory=MemoryCache, kw_only=True, repr=False)

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: Deal) -> Deal | None:
        """Each process keeps its own; but no stand-in, since what fails is not kept."""
        return None if deal.remainder == "pad" else deal

    def over_share(self, inputs: Sequence[Node], deal: Deal) -> Self:  # noqa: ARG002  # whatever it is
        return self.with_inputs(inputs).emptied()

    def over_part(self, inputs: Sequence[Node]) -> Self:
        return self.with_inputs(inputs).emptied()

    def emptied(self) -> Self:
        """The op with nothing in its store; what is there may be the elements of another input."""
        return replace(self, store=MemoryCache())

    def lower(self, build: Build) -> Operator:
        return lower_keeping(build, self, self.store)

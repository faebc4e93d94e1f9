"""cache(): the elements of the first full pass, kept in memory for the passes after it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import ClassVar

from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State

_STEP = 1024  # elements at a time, where a finished pass is run again


class MemoryCache:
    """What one cache() holds; shared by all iterations of the Dataset, as in tf.data."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two fields below
        self._elements: Chunk | None = None
        self._start: State | None = None
        self.complete = False

    def fill(self, chunks: list[Chunk], start: State) -> None:
        """Keep the elements of a full pass, which started where ``start`` says. The first pass to end wins."""
        with self._lock:
            if not self.complete:
                self._elements = Chunk.concatenate(chunks).read_only() if chunks else None
                self._start = start
                self.complete = True

    def read(self) -> tuple[Chunk | None, State]:
        """The elements, None for no elements, and where the pass started that found them."""
        assert self._start is not None
        return self._elements, self._start

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[()]]:
        return type(self), ()  # a copy of a pipeline starts with an empty cache

    def __repr__(self) -> str:
        return "MemoryCache()"


@dataclass(frozen=True, eq=False)
class Cache(UnaryNode):
    """The elements of ``source``, which is run through once."""

    op: ClassVar[str] = "cache"
    memory: MemoryCache = field(default_factory=MemoryCache, kw_only=True, repr=False)

    def lower(self, build: Build) -> Operator:
        return CacheOperator(build, self.source, self.memory)


class CacheOperator(Operator):
    """Fills the cache, or reads it.

    Which of the two is decided at the first pull. What is handed out while filling is read-only, because it is kept.
    A saved state holds where the filling pass started and how far the reader is: a process without the cache runs that
    pass again up to there, so that the epochs after it see the very same elements.
    """

    def __init__(self, build: Build, source: Node, memory: MemoryCache) -> None:
        self.build = build
        self.node = source
        self.memory = memory
        self.source: Operator | None = None
        self.position = 0
        self.failures = 0  # exceptions that came before
        self._start: State | None = None
        self._filled: list[Chunk] = []
        self._elements: Chunk | None = None
        self._reading = False

    def pull(self, n: int) -> Chunk | None:
        self._begin()
        try:
            chunk = self._read(n) if self._reading else self._fill(n)
        except Exception:
            self.failures += 1
            raise
        if chunk is not None:
            self.position += chunk.length
        return chunk

    def _begin(self) -> None:
        if self._reading or self.source is not None:
            return
        if self.memory.complete:
            self._elements, self._start = self.memory.read()
            self._reading = True
            return
        self.source = self.build(self.node)
        self._start = self.source.state_dict()

    def _read(self, n: int) -> Chunk | None:
        if self._elements is None or self.position >= self._elements.length:
            return None
        return self._elements.slice(self.position, min(self.position + n, self._elements.length))

    def _fill(self, n: int) -> Chunk | None:
        assert self.source is not None
        assert self._start is not None
        chunk = self.source.pull(n)
        if chunk is None:
            self.memory.fill(self._filled, self._start)
            self._filled = []
            return None
        chunk = chunk.read_only()
        self._filled.append(chunk)
        return chunk

    def state_dict(self) -> State:
        self._begin()
        return {
            "start": self._start,
            "reading": self._reading,
            "position": self.position,
            "failures": self.failures,
        }

    def load_state_dict(self, state: State) -> None:
        position, failures = int(state["position"]), int(state["failures"])
        if self.memory.complete:
            self._begin()
            self.position = position
            return
        self.source = self.build(self.node)
        self._start = state["start"]
        self.source.load_state_dict(state["start"])
        if state["reading"]:  # then the pass had been finished, and its failures are in the past
            while not self._advance(_STEP):
                pass
            self.source.close()
            self.source = None
            self._begin()
            self.position, self.failures = position, failures
            return
        while self.position < position or self.failures < failures:
            if self._advance(max(1, position - self.position)):
                return

    def _advance(self, n: int) -> bool:
        """Go on by up to ``n`` elements or one failure, raised before the state was saved; True at the end."""
        try:
            return self.pull(n) is None
        except Exception:  # noqa: BLE001  # see above
            return False

    def close(self) -> None:
        self._filled = []
        if self.source is not None:
            self.source.close()

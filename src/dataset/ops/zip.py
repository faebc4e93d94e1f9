"""zip(datasets): elements side by side, in the nesting in which the datasets were given; the shortest ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known, shortest
from dataset.plan.node import Node, holds_user_code
from dataset.plan.structure import Structure
from dataset.runtime.chunk import Chunk, Column
from dataset.runtime.operator import Build, Operator, State
from dataset.runtime.state import load_chunk, load_error, save_chunk, save_error


@dataclass(frozen=True, eq=False)
class Zip(Node):
    """Element ``i`` holds element ``i`` of each source, at that source's place in ``structure``."""

    op: ClassVar[str] = "zip"
    structure: Structure
    sources: tuple[Node, ...]

    def _element_spec(self) -> Any:
        return self.structure.unflatten([source.element_spec for source in self.sources])

    def cardinality(self) -> int:
        return shortest([source.cardinality() for source in self.sources])

    def lower(self, build: Build) -> Operator:
        return ZipOperator(self, [_Feed(source, build(source)) for source in self.sources])


class _Feed:
    """One source, and what was pulled from it while another gave less."""

    def __init__(self, node: Node, source: Operator) -> None:
        self.node = node
        self.source = source
        cardinality = node.cardinality()
        self.left = cardinality if cardinality != UNKNOWN_CARDINALITY else None  # -1 where endless
        self.seen_early = holds_user_code(node)  # whether a user could notice that it was read ahead
        self.waiting: list[Chunk] = []
        self.ended = False

    @property
    def length(self) -> int:
        return sum(chunk.length for chunk in self.waiting)

    def gather(self, n: int) -> Exception | None:
        """Wait for ``n`` elements; fewer if the source ends, or raises the exception that is returned."""
        while self.length < n and not self.ended:
            try:
                chunk = self.source.pull(n - self.length)
            except Exception as error:  # noqa: BLE001  # raised at its place
                return error
            if chunk is None:
                self.ended = True
            else:
                self.waiting.append(chunk)
        return None

    def give(self, n: int) -> Chunk:
        joined = Chunk.concatenate(self.waiting)
        self.waiting = [joined.slice(n, joined.length)] if joined.length > n else []
        if self.left is not None and self.left > 0:
            self.left -= n
        return joined.slice(0, n)

    def drop_one(self) -> bool:
        """Skip the element that goes with one that failed elsewhere; False if there is none, since this has ended."""
        if self.gather(1) is None:
            if not self.length:
                return False
            self.give(1)
        return True


class ZipOperator(Operator):
    """Gathers equally many elements from each source."""

    def __init__(self, node: Zip, feeds: list[_Feed]) -> None:
        self.node = node
        self.feeds = feeds
        self.ended = False
        self._error: Exception | None = None

    def pull(self, n: int) -> Chunk | None:
        if self._error is not None:
            pending, self._error = self._error, None
            try:
                raise pending
            finally:
                del pending
        if self.ended:
            return None
        count = self._step(n)
        for index, feed in enumerate(self.feeds):
            self._error = feed.gather(count)
            if self._error is not None:
                return self._fail(index, feed.length)
            count = min(count, feed.length)
            if not count:
                self.ended = True
                return None
        return self._join(count)

    def _step(self, n: int) -> int:
        """How many to ask for, so that no source with user code is read past the end of another."""
        left = [feed.left for feed in self.feeds if feed.left is not None and is_known(feed.left)]
        known = len([feed for feed in self.feeds if feed.left is not None]) == len(self.feeds)
        limited = max(1, min([n, *left]))
        if known or not any(feed.seen_early for feed in self.feeds[:-1]):
            return limited
        return 1

    def _fail(self, failed: int, before: int) -> Chunk | None:
        """Give what came before the exception, and keep the others in step with the source that raised.

        As in tf.data, the exception comes out even where another source ends beside it; that end is then the next.
        """
        output = self._join(before) if before and all(feed.gather(before) is None for feed in self.feeds) else None
        for index, feed in enumerate(self.feeds):
            if index != failed:
                self.ended |= not feed.drop_one()
            elif feed.left is not None and feed.left > 0:
                feed.left -= 1
        return self.pull(1) if output is None else output

    def _join(self, count: int) -> Chunk | None:
        count = min(count, *(feed.length for feed in self.feeds))
        if not count:
            return None
        chunks = [feed.give(count) for feed in self.feeds]
        columns: list[Column] = [column for chunk in chunks for column in chunk.columns()]
        structure = self.node.structure.substitute([chunk.structure for chunk in chunks])
        return Chunk(structure, count, columns)

    def state_dict(self) -> State:
        return {
            "ended": self.ended,
            "error": None if self._error is None else save_error(self._error),
            "feeds": [
                {
                    "source": feed.source.state_dict(),
                    "left": feed.left,
                    "ended": feed.ended,
                    "waiting": save_chunk(Chunk.concatenate(feed.waiting)) if feed.waiting else None,
                }
                for feed in self.feeds
            ],
        }

    def load_state_dict(self, state: State) -> None:
        self.ended = bool(state["ended"])
        self._error = None if state["error"] is None else load_error(state["error"])
        for feed, saved in zip(self.feeds, state["feeds"], strict=True):
            feed.source.load_state_dict(saved["source"])
            feed.left, feed.ended = saved["left"], bool(saved["ended"])
            waiting = load_chunk(saved["waiting"], lambda node=feed.node: node.element_spec)  # type: ignore[misc]
            feed.waiting = [] if waiting is None else [waiting]

    def close(self) -> None:
        for feed in self.feeds:
            feed.source.close()

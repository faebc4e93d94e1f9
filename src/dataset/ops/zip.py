"""Node and operator of zip(datasets): combine elements of several datasets; ends with the shortest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import is_known, shortest
from dataset.plan.node import MemoryNode, Node, RowsNode, Sharding, elements_in_memory
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.lineage import paired
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, Upstream
from dataset.runtime.parallel.buffered_input import BufferedInput
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Zip(RowsNode, MemoryNode, aligned=True, seekable=True, exact=True, only_reorders=True, elastic=True):
    """Node whose element ``i`` holds element ``i`` of each source, at the source's place in ``structure``."""

    op: ClassVar[str] = "zip"
    structure: Structure
    sources: tuple[Node, ...]

    def _element_spec(self) -> Any:
        return self.structure.unflatten([source.element_spec for source in self.sources])

    def cardinality(self) -> int:
        return shortest([source.cardinality() for source in self.sources])

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        """Shard all sources alike. Not possible with padding, since each source would add its own padding."""
        if not shard.gives_all:
            return None
        return self.with_inputs([below(source, shard.ordered()) for source in self.sources])

    def gathered(self) -> Node | None:
        """Return a gather of all arrays, if the sources are arrays with the same rows."""
        parts = [part for part in self.sources if isinstance(part, TensorSlices)]
        if len(parts) < len(self.sources) or len({(part.all_rows, part.places) for part in parts}) > 1:
            return None
        tensors = self.structure.unflatten([part.tensors for part in parts])
        return TensorSlices(tensors, rows=parts[0].rows, name=self.name, origin=self.origin).gathered()

    def elements_in_memory(self) -> Chunk | None:
        chunks = list(map(elements_in_memory, self.sources))
        if any(chunk is None or chunk.length != chunks[0].length for chunk in chunks):
            return None
        return self.joined(chunks)

    def joined(self, chunks: Sequence[Chunk]) -> Chunk:
        """Return the elements that hold the elements of these chunks, without lineage."""
        columns: list[Column] = [column for chunk in chunks for column in chunk.columns()]
        return Chunk(self.structure.substitute([chunk.structure for chunk in chunks]), chunks[0].length, columns)

    def lower(self, context: ExecutionContext) -> Operator:
        return ZipOperator(
            self, [BufferedInput(source, context(source, index)) for index, source in enumerate(self.sources)]
        )


class ZipOperator(Operator):
    """Operator that pulls the same number of elements from each source."""

    saved = ("ended",)

    def __init__(self, node: Zip, feeds: list[BufferedInput]) -> None:
        self.node = node
        self.feeds = feeds
        self.ended = False

    def pull(self, n: int) -> Chunk | None:
        if self.ended:
            return None
        count = self._step(n)
        for feed in self.feeds:
            feed.gather(count)
            count = min(count, feed.length)
            if not count:
                self._end_or_fail()
                return None
        return self._join(count)

    def _step(self, n: int) -> int:
        """Return how many elements to request, so that no source with user code is read past the end of another."""
        left = [feed.left for feed in self.feeds if feed.left is not None and is_known(feed.left)]
        known = all(feed.left is not None for feed in self.feeds)
        if known or not any(feed.seen_early for feed in self.feeds[:-1]):
            return max(1, min([n, *left]))
        return 1

    def _end_or_fail(self) -> None:
        """Raise the first exception at this position, unless an earlier source has ended.

        As in tf.data, every source advances by one element, so that all stay aligned. The end of a source after the
        failed one takes effect at the next pull.
        """
        failed: Exception | None = None
        fails = False
        for feed in self.feeds:  # an interrupt may come here, so nothing is taken yet
            feed.gather(1)
            if not (feed.length or feed.error or fails):
                break
            fails = fails or not feed.length
        for feed in self.feeds:
            error = feed.take_error()
            if feed.length and error is None:
                feed.give(1)
            elif error is None:
                self.ended = True
                if failed is None:
                    return
            failed = failed or error
        try:
            if failed is not None:
                raise failed
        finally:
            del failed, error  # see runtime/contract.py on stored exceptions

    def _join(self, count: int) -> Chunk:
        chunks = [feed.give(count) for feed in self.feeds]
        joined = self.node.joined(chunks)
        for chunk in chunks:
            if chunk.lineage is not None:
                joined.lineage = paired([part.lineage for part in chunks], count)
                break
        return joined

    def upstream(self) -> Sequence[Upstream]:
        return self.feeds

    def advance(self, position: Position, count: int) -> Position | None:
        if position.own["ended"]:
            return None
        feeds = [feed.advance(position.input(index), count) for index, feed in enumerate(self.feeds)]
        return None if None in feeds else position.after(0, *feeds)

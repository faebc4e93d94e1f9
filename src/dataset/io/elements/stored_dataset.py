"""Directory store of cache(filename) and snapshot(path): holds the elements of a first full pass for later passes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from dataset.errors import SpecError, StateError
from dataset.io.elements.dataset_shards import ShardNumbers
from dataset.io.elements.dataset_writer import ElementsWriter, static_spec
from dataset.io.elements.load_dataset import Load, reader_plan
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.shard_dataset import SavedElements
from dataset.io.elements.write_session import RunWriter, remove_leftovers
from dataset.io.files.atomic import make_directory
from dataset.io.files.locks import holder_of
from dataset.ops.cache.caching import CacheEntry, start_of_pass
from dataset.plan.node import UnaryNode
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.position import Position
from dataset.runtime.state.held_elements import Elements

_log = logging.getLogger(__name__)


class DirectoryStore:
    """Directory of one pipeline's elements, as seen by one iteration. The subclasses are the stores of the two ops.

    Args:
        node: the node whose input is stored.
        path: the directory.
    """

    in_order: ClassVar[bool]
    """True for a cache: one iterator at a time writes one shard, and failed elements are omitted. Several iterators may
    write a snapshot; the first one to finish without failures is kept."""

    keeps_lineage: ClassVar[bool] = False
    compression = ""
    shards: ShardNumbers | None = None
    reader_func: Callable[..., Any] | None = None

    def __init__(self, node: UnaryNode, path: str) -> None:
        self.node = node
        self.path = path
        self._finished: CacheEntry | None = None

    def finished(self) -> CacheEntry | None:
        if self._finished is None:
            try:
                metadata = Metadata.read(self.path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            self._finished = self._entry(metadata)
        return self._finished

    def _entry(self, metadata: Metadata) -> CacheEntry | None:
        node = self.node
        plain, failures = metadata.about.get("start"), metadata.about.get("failures", 0)
        if not isinstance(plain, dict) or type(failures) is not int:
            raise SpecError(
                f"{node}: {self.path!r} was written by save(), not by {node.op}(); delete it, or use another name"
            )
        if not self.accepts(metadata):
            return None
        try:
            start = Position.from_plain(plain)
        except StateError:  # written by an earlier version of the library: no state of this one is of the same pass
            start = start_of_pass(None, plain.get("draws", []))
        remove_leftovers(self.path)
        if not metadata.elements:
            return CacheEntry(start, Elements(Chunk(LEAF, 0, [[]])), failures)
        saved = SavedElements(self.path, metadata, metadata.spec_or(lambda: node.element_spec))
        plan = reader_plan(node.op, saved, self.reader_func)
        if self.reader_func is not None:
            plan = _LoadStored(saved, plan, self.reader_func, origin=node.origin)
        return CacheEntry(start, plan, failures, saved.identity)

    def accepts(self, metadata: Metadata) -> bool:  # noqa: ARG002  # used by overrides
        """Return whether these elements are those of the pipeline; if not, they are replaced."""
        return True

    def about(self) -> Callable[[], dict[str, Any]]:
        """Return a function that describes the pipeline at the end of the pass which begins now."""
        return dict

    def begin(self, start: Position, count: int) -> StoreWriter | None:  # noqa: ARG002  # files grow
        spec = static_spec(self.node.op, self.node.source)
        try:
            make_directory(Path(self.path), parents=not self.in_order)
            run = RunWriter(self.path, self.compression)
        except OSError as error:
            error.add_note(f"in {self.node}")
            raise
        try:
            return self._writer(run, spec, start)
        except BaseException:
            run.discard()
            raise

    def _writer(self, run: RunWriter, spec: Any, start: Position) -> StoreWriter | None:
        if self.in_order and run.others:
            raise FileExistsError(
                f"{self.node}: {holder_of(run.others[0])} is filling the cache in {self.path!r} and has not "
                "finished; only one iterator at a time can fill it, so let that one finish or close it"
            )
        if self.in_order and self.finished() is not None:  # another iterator has filled it
            run.discard()
            return None
        return StoreWriter(self, run, spec, start)


class _LoadStored(Load):
    """Source node: the elements of a snapshot, as read by its ``reader_func``."""

    op: ClassVar[str] = "snapshot"


class StoreWriter(ElementsWriter):
    """Writer of one pass to a directory store."""

    def __init__(self, store: DirectoryStore, run: RunWriter, spec: Any, start: Position) -> None:
        super().__init__(run, spec, store.shards)
        self._store = store
        self._start = start
        self._about = store.about()

    def finish(self, failures: int) -> None:
        """Keep the elements, unless later passes would silently omit more of them than in tf.data."""
        in_order = self._store.in_order
        if self.refused or (failures and not in_order):
            super().discard()
        else:
            self.publish({"start": self._start.to_plain(), "failures": failures, **self._about()}, replace=in_order)

    def discard(self) -> None:
        if self._store.in_order and self.count:
            _log.warning(
                "%s: the pass was abandoned after %d elements, so none are kept and the next pass recomputes them; "
                "put take() before cache(), not after it",
                str(self._store.node),
                self.count,
            )
        super().discard()

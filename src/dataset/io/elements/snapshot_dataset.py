"""Node of snapshot(path): stores the elements of the first full run for later runs of the same pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.io.elements.dataset_shards import ShardNumbers, by_function, in_turn
from dataset.io.elements.dataset_writer import ElementsWriter
from dataset.io.elements.load_dataset import lower_reader, reader_plan
from dataset.io.elements.metadata import Metadata, compression_of_elements
from dataset.io.elements.save_dataset import static_spec
from dataset.io.elements.shard_dataset import SavedElements
from dataset.io.elements.write_session import RunWriter, remove_leftovers
from dataset.io.files.opening import local_folder
from dataset.ops.cache.caching import CacheEntry, lower_keeping
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH
from dataset.plan.checks import require_callable
from dataset.plan.fingerprints.content import Content
from dataset.plan.fingerprints.fingerprint import content_fingerprint
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.resources.exceptions import with_location
from dataset.runtime.state.held_elements import Elements

SHARDS = DEFAULT_CYCLE_LENGTH
"""Number of shards without a shard_func. Writing and reading in turn restores the original order."""


@dataclass(frozen=True, eq=False)
class Snapshot(UnaryNode, reads_files=True):
    """Node: the elements of ``source``, read from the files of an earlier run if there was one."""

    op: ClassVar[str] = "snapshot"
    path: str = field(repr=False)
    compression: str | None = "AUTO"
    reader_func: Callable[..., Any] | None = None
    shard_func: Callable[..., Any] | None = None
    written: Node | None = field(default=None, kw_only=True, repr=False)
    """The source before rewrites by rules; it determines the name of the directory."""

    def __post_init__(self) -> None:
        if self.written is None:
            self._set("written", self.source)
        self._set("path", local_folder("snapshot", self.path))
        self._set("compression", compression_of_elements("snapshot", self.compression))
        for name in ("reader_func", "shard_func"):
            if getattr(self, name) is not None:
                require_callable("snapshot", name, getattr(self, name))

    @lazy_property
    def traits(self) -> Traits:
        return replace(super().traits, pure=self.reader_func is None and self.shard_func is None)

    def fingerprint_fields(self) -> Any:
        return [self.reader_func, self.shard_func]

    def label(self) -> str:
        return f"snapshot({self.path!r})"

    @lazy_property
    def directory(self) -> str:
        """Return the directory of this pipeline's elements; each pipeline has its own subdirectory."""
        assert self.written is not None
        written = Content()
        written.add([content_fingerprint(self.written), self.compression, self.shard_func])
        return str(Path(self.path) / f"{written.digest():016x}")

    def lower(self, context: ExecutionContext) -> Operator:
        return lower_keeping(context, self, SnapshotDirectory(self))


@dataclass(frozen=True, eq=False)
class _SnapshotReader(Node, reads_files=True):
    """Source node that reads a finished snapshot."""

    op: ClassVar[str] = "snapshot"
    snapshot: Snapshot = field(repr=False)
    saved: SavedElements = field(repr=False)
    reader: Node = field(repr=False)

    def lower(self, context: ExecutionContext) -> Operator:
        return lower_reader(context, self.reader, self.saved, self.snapshot.reader_func, self.snapshot)


class SnapshotDirectory:
    """Directory of one pipeline's snapshot, as seen by one iteration."""

    in_order: ClassVar[bool] = False

    def __init__(self, node: Snapshot) -> None:
        self.node = node

    def finished(self) -> CacheEntry | None:
        path = self.node.directory
        try:
            metadata = Metadata.read(path)
        except FileNotFoundError:
            return None
        start = metadata.about.get("start")
        if not isinstance(start, dict):
            raise SpecError(
                f"{self.node.location()}: {path!r} was not written by a snapshot; delete it, or use another path"
            )
        remove_leftovers(path)
        if not metadata.elements:
            return CacheEntry(start, Elements(Chunk(LEAF, 0, [[]])), None)
        saved = SavedElements(path, metadata, metadata.spec_or(lambda: self.node.element_spec))
        reader = _SnapshotReader(self.node, saved, reader_plan("snapshot", saved, self.node.reader_func))
        return CacheEntry(start, reader, None, identity=saved.identity)

    def begin(self, start: State, count: int) -> SnapshotFilling:  # noqa: ARG002  # files grow
        os.makedirs(self.node.directory, exist_ok=True)  # noqa: PTH103  # keeps the name as the user wrote it
        return SnapshotFilling(self.node, start)


class SnapshotFilling:
    """Run that is being written. Several may be written at once; the first one to finish is kept."""

    def __init__(self, node: Snapshot, start: State) -> None:
        self.node = node
        self._start = start
        self._spec = static_spec("snapshot", node.source)
        self._writer = ElementsWriter(RunWriter(node.directory, node.compression or ""), self._shards())

    def _shards(self) -> ShardNumbers:
        if self.node.shard_func is None:
            return in_turn(SHARDS)
        return by_function(self.node.shard_func, "snapshot", lambda error, at: with_location(error, self.node, at))

    def add(self, chunk: Chunk) -> None:
        self._writer.add(chunk)

    def finish(self, failures: int) -> None:
        """Keep the run, unless elements failed; in that case the next run tries again, as in tf.data."""
        if failures or self._writer.refused:
            self._writer.discard()
            return
        self._writer.finish(self._spec, {"start": self._start}, may_replace=self._is_first)

    def _is_first(self) -> bool:
        try:
            Metadata.read(self.node.directory)
        except FileNotFoundError:
            return True
        return False

    def discard(self) -> None:
        self._writer.discard()

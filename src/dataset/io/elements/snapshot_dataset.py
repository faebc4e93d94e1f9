"""Node of snapshot(path): stores the elements of the first full run for later runs of the same pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dataset.io.elements.dataset_shards import by_function, in_turn
from dataset.io.elements.metadata import compression_of_elements
from dataset.io.elements.stored_dataset import DirectoryStore
from dataset.io.files.opening import local_folder
from dataset.ops.cache.caching import lower_keeping
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH
from dataset.plan.checks import require_callable
from dataset.plan.fingerprints.content import Content
from dataset.plan.fingerprints.fingerprint import content_fingerprint
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode
from dataset.plan.traits import Traits
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.resources.exceptions import with_location

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
        return super().traits.having(pure=self.reader_func is None and self.shard_func is None)

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


class SnapshotDirectory(DirectoryStore):
    """Directory of a snapshot."""

    in_order: ClassVar[bool] = False

    def __init__(self, node: Snapshot) -> None:
        super().__init__(node, node.directory)
        self.compression = node.compression or ""
        self.reader_func = node.reader_func
        self.shards = in_turn(SHARDS)
        if node.shard_func is not None:
            self.shards = by_function(node.shard_func, "snapshot", lambda error, at: with_location(error, node, at))

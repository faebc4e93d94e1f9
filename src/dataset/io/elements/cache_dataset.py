"""Node of cache(filename): stores the elements of the first full pass in a directory for later passes and processes."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.io.elements.dataset_writer import ElementsWriter
from dataset.io.elements.locks import LockFile, holder_of
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.save_dataset import static_spec
from dataset.io.elements.shard_dataset import SavedElements, SavedShardOperator
from dataset.io.elements.write_session import RunWriter, remove_leftovers
from dataset.ops.cache.caching import CacheEntry, lower_keeping
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.fingerprints.step_digests import PYTHON, Digests, difference, stable_digests, step_digests
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.state.held_elements import Elements, ElementsOperator

_log = logging.getLogger(__name__)

_LOCK = "filling.lock"


@dataclass(frozen=True, eq=False)
class FileCache(UnaryNode, reads_files=True, seekable=True):
    """Node: the elements of ``source``, which is iterated once; stored in the directory ``filename``."""

    op: ClassVar[str] = "cache"
    filename: str = field(default="", repr=False)  # a state can be loaded if the file is elsewhere
    on_mismatch: str = field(default="error", kw_only=True, repr=False)
    written: Node | None = field(default=None, kw_only=True, repr=False)
    """The source before rewrites by rules; it is compared with the source of the cache."""

    def __post_init__(self) -> None:
        if self.written is None:
            self._set("written", self.source)

    @lazy_property
    def digests(self) -> Digests:
        """Return the digests that identify the pipeline, computed before it runs."""
        assert self.written is not None
        return step_digests(self.written)

    def label(self) -> str:
        return f"cache({self.filename!r})"

    def parameters(self) -> dict[str, Any]:
        return {"in": "files"}

    def lower(self, context: ExecutionContext) -> Operator:
        return lower_keeping(context, self, CacheDirectory(self))


class CacheDirectory:
    """Directory of one cache, as seen by one iteration."""

    in_order: ClassVar[bool] = True

    def __init__(self, node: FileCache) -> None:
        self.node = node
        self.path = node.filename
        self._finished: CacheEntry | None = None

    def finished(self) -> CacheEntry | None:
        if self._finished is None:
            try:
                metadata = Metadata.read(self.path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not self._is_to_be_rebuilt(metadata):
                self._finished = self._read(metadata)
        return self._finished

    def _is_to_be_rebuilt(self, metadata: Metadata) -> bool:
        return self.node.on_mismatch == "rebuild" and "start" in metadata.about and bool(self._mismatch(metadata))

    def _read(self, metadata: Metadata) -> CacheEntry:
        start = metadata.about.get("start")
        failures = metadata.about.get("failures", 0)  # missing in older caches
        if not isinstance(start, dict) or type(failures) is not int:
            raise SpecError(
                f"{self.node.location()}: {self.path!r} was written by save(), not by a cache; use another filename"
            )
        if mismatch := self._mismatch(metadata):
            raise SpecError(
                f"{self.node.location()}: the cache in {self.path!r} was filled by another pipeline, or the pipeline "
                f'was edited since: {mismatch}; delete the directory, or pass on_mismatch="rebuild", to rebuild it'
            )
        remove_leftovers(self.path, _LOCK)
        if not metadata.elements:
            return CacheEntry(start, Elements(Chunk(LEAF, 0, [[]])), ElementsOperator.state_at, failures)
        saved = SavedElements(self.path, metadata, metadata.spec_or(lambda: self.node.element_spec))
        return CacheEntry(start, saved.shards()[0], SavedShardOperator.state_at, failures, saved.identity)

    def _mismatch(self, metadata: Metadata) -> str:
        """Return how the pipeline differs from the one that filled the cache, as far as known; empty if it does not.

        If finding the element_spec requires running user code, this is done only if the pipeline is not the one that
        wrote the file.
        """
        about, source = metadata.about, self.node.source
        if about.get("python") == PYTHON and (words := difference(about.get("steps"), self.node.digests)):
            return words
        if not spec_is_static(source) and about.get("pipeline") == fingerprint(source):
            return ""
        misfit = metadata.misfit(self.node.element_spec)
        return f"this one produces {misfit}" if misfit else ""

    def begin(self, start: State, count: int) -> CacheFilling | None:  # noqa: ARG002  # files grow
        try:
            os.mkdir(self.path)  # noqa: PTH102  # keeps the name as the user wrote it
        except FileExistsError:
            pass
        except OSError as error:
            error.add_note(f"in {self.node.location()}")
            raise
        lock_path = str(Path(self.path) / _LOCK)
        lock = LockFile.take(lock_path)
        if lock is None:
            raise FileExistsError(
                f"{self.node.location()}: {holder_of(lock_path)} is filling the cache in {self.path!r} and has not "
                "finished; only one iterator at a time can fill it, so let that one finish or close it"
            )
        if self.finished() is not None:  # another iterator has filled it
            lock.release()
            return None
        return CacheFilling(self, start, lock)


class CacheFilling:
    """Pass that is being written to the directory; holds its lock."""

    def __init__(self, directory: CacheDirectory, start: State, lock: LockFile) -> None:
        self.directory = directory
        self._about = {"start": start, "pipeline": fingerprint(directory.node.source), "python": PYTHON}
        self._digests = directory.node.digests  # computed before the pass
        self._lock = lock
        try:
            self._spec = static_spec("cache", directory.node.source)
            self._writer = ElementsWriter(RunWriter(directory.path, ""))
        except BaseException:
            lock.release()
            raise

    def add(self, chunk: Chunk) -> None:
        self._writer.add(chunk)

    def finish(self, failures: int) -> None:  # failed elements are omitted, as in tf.data
        try:
            if self._writer.refused:  # otherwise later passes would silently omit these elements
                self._writer.discard()
            else:
                written = self.directory.node.written
                assert written is not None
                steps = stable_digests(written, self._digests)
                self._writer.finish(self._spec, {**self._about, "failures": failures, "steps": steps})
        finally:
            self._lock.release()

    def discard(self) -> None:
        if self._writer.count:
            _log.warning(
                "%s: the pass was abandoned after %d elements, so none are kept and the next pass recomputes them; "
                "put take() before cache(), not after it",
                self.directory.node.location(),
                self._writer.count,
            )
        self._writer.discard()
        self._lock.release()

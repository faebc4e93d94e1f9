"""cache(filename): the elements of the first full pass, in a directory, for later passes and later processes."""

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
from dataset.io.elements.runs import RunWriter
from dataset.io.elements.save_dataset import static_spec
from dataset.io.elements.shard_dataset import SavedElements, SavedShardOperator
from dataset.plan.fingerprint import fingerprint
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk
from dataset.runtime.elements import Elements, ElementsOperator
from dataset.runtime.keeping import Finished, lower_keeping
from dataset.runtime.operator import Build, Operator, State

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FileCache(UnaryNode):
    """The elements of ``source``, which is run through once; kept in the directory ``filename``."""

    op: ClassVar[str] = "cache"
    seeks: ClassVar[bool] = True
    filename: str = field(default="", repr=False)  # a state can be loaded where the file lies elsewhere

    def described(self) -> str:
        return f"cache({self.filename!r})"

    def parameters(self) -> dict[str, Any]:
        return {"in": "files"}

    def lower(self, build: Build) -> Operator:
        return lower_keeping(build, self, CacheDirectory(self))


class CacheDirectory:
    """The directory of one cache, as one iteration sees it."""

    in_order: ClassVar[bool] = True

    def __init__(self, node: FileCache) -> None:
        self.node = node
        self.path = node.filename
        self._finished: Finished | None = None

    def finished(self) -> Finished | None:
        if self._finished is None:
            try:
                metadata = Metadata.read(self.path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            self._finished = self._read(metadata)
        return self._finished

    def _read(self, metadata: Metadata) -> Finished:
        start = metadata.about.get("start")
        failures = metadata.about.get("failures", 0)  # older caches do not say
        if not isinstance(start, dict) or type(failures) is not int:
            raise SpecError(
                f"{self.node.located()}: {self.path!r} was written by save(), not by a cache; give another filename"
            )
        self._check(metadata)
        if not metadata.elements:
            return Finished(start, Elements(Chunk(LEAF, 0, [[]])), ElementsOperator.state_at, failures)
        saved = SavedElements(self.path, metadata, metadata.spec_or(lambda: self.node.element_spec))
        return Finished(start, saved.shards()[0], SavedShardOperator.state_at, failures, saved.identity)

    def _check(self, metadata: Metadata) -> None:
        """Raise SpecError if the pipeline makes other elements than those in the file.

        Where only running user code tells what it makes, that is done only if the pipeline is not the one that wrote
        the file.
        """
        source = self.node.source
        if not spec_is_static(source) and metadata.about.get("pipeline") == fingerprint(source):
            return
        if misfit := metadata.misfit(self.node.element_spec):
            raise SpecError(
                f"{self.node.located()}: the cache in {self.path!r} holds elements of another pipeline: this one makes "
                f"{misfit}; delete the directory to fill it anew"
            )

    def begin(self, start: State, count: int) -> CacheFilling | None:  # noqa: ARG002  # files grow
        try:
            os.mkdir(self.path)  # noqa: PTH102  # the name stays as the user wrote it
        except FileExistsError:
            pass
        except OSError as error:
            error.add_note(f"in {self.node.located()}")
            raise
        lock_path = str(Path(self.path) / "filling.lock")
        lock = LockFile.take(lock_path)
        if lock is None:
            raise FileExistsError(
                f"{self.node.located()}: {holder_of(lock_path)} is filling the cache in {self.path!r}, and has not "
                "come to the end; one iterator at a time can fill it, so let that one finish or close it"
            )
        if self.finished() is not None:  # by now
            lock.release()
            return None
        return CacheFilling(self, start, lock)


class CacheFilling:
    """A pass on its way into the directory. Holds its lock."""

    def __init__(self, directory: CacheDirectory, start: State, lock: LockFile) -> None:
        self.directory = directory
        self._about = {"start": start, "pipeline": fingerprint(directory.node.source)}
        self._lock = lock
        try:
            self._spec = static_spec("cache", directory.node.source)
            self._writer = ElementsWriter(RunWriter(directory.path, ""))
        except BaseException:
            lock.release()
            raise

    def add(self, chunk: Chunk) -> None:
        self._writer.add(chunk)

    def finish(self, failures: int) -> None:  # they are left out, as in tf.data
        try:
            if self._writer.refused:  # else later passes would do without these elements, and without a word
                self._writer.discard()
            else:
                self._writer.finish(self._spec, {**self._about, "failures": failures})
        finally:
            self._lock.release()

    def discard(self) -> None:
        if self._writer.count:
            _log.warning(
                "%s: the pass was left after %d elements, so nothing of it is kept and the next pass makes them again; "
                "put take() before cache(), not behind it",
                self.directory.node.located(),
                self._writer.count,
            )
        self._writer.discard()
        self._lock.release()

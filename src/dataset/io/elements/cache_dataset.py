"""Node of cache(filename): stores the elements of the first full pass in a directory for later passes and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.stored_dataset import DirectoryStore
from dataset.ops.cache.caching import lower_keeping
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.fingerprints.step_digests import PYTHON, Digests, difference, stable_digests, step_digests
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class FileCache(UnaryNode, reads_files=True, seekable=True, keeps_pass=True):
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


class CacheDirectory(DirectoryStore):
    """Directory of a cache. It names the pipeline that filled it, so that the elements of another one are not read."""

    in_order: ClassVar[bool] = True
    node: FileCache

    def __init__(self, node: FileCache) -> None:
        super().__init__(node, node.filename)

    def accepts(self, metadata: Metadata) -> bool:
        mismatch = self._mismatch(metadata)
        if mismatch and self.node.on_mismatch != "rebuild":
            raise SpecError(
                f"{self.node}: the cache in {self.path!r} was filled by another pipeline, or the pipeline "
                f'was edited since: {mismatch}; delete the directory, or pass on_mismatch="rebuild", to rebuild it'
            )
        return not mismatch

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

    def about(self) -> Callable[[], dict[str, Any]]:
        written, digests, pipeline = self.node.written, self.node.digests, fingerprint(self.node.source)
        assert written is not None
        return lambda: {"pipeline": pipeline, "python": PYTHON, "steps": stable_digests(written, digests)}


@dataclass(frozen=True)
class CacheDirectories:
    """Makes the stores of cache(AUTOTUNE, directory=...)."""

    folder: str
    on_mismatch: str

    def __call__(self, source: Node, *, replaces: bool) -> CacheDirectory:
        node = FileCache(source, self.folder, on_mismatch="rebuild" if replaces else self.on_mismatch)
        return CacheDirectory(node)

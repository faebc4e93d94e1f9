"""Source nodes of TFRecordDataset: the records of files, as ``bytes``. tfrecord/reader.py reads a single file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from dataset.errors import DataLossError
from dataset.io.dataset_files import BlockFileSource
from dataset.io.indexed.source import FileRows, IndexedFiles
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.index import TFRecordIndex
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.spec import TensorSpec
from dataset.runtime.context import ExecutionContext
from dataset.runtime.metrics.dropped import DroppedCount


@dataclass(frozen=True, eq=False)
class TFRecord(BlockFileSource):
    """Source node: all records of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "TFRecordDataset"
    holds_blocks: ClassVar[bool] = True
    packs: ClassVar[bool] = True
    has_index: ClassVar[bool] = True
    on_error: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'TFRecordDataset(): on_error must be "raise" or "skip", got {self.on_error!r}')

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str, count: Callable[[int], object] | None = None) -> TFRecordFile:
        log = DamageLog(str(self), count) if self.on_error == "skip" else None
        return TFRecordFile(path, self.compression_type, self.buffer_size, log=log)

    def open_index(self, path: str) -> TFRecordIndex:
        return TFRecordIndex.open(path, on_error=self.on_error)

    def indexed(self, indexes: tuple[TFRecordIndex, ...], run_bytes: int) -> IndexedTFRecord:
        return IndexedTFRecord(indexes, run_bytes, self.on_error, name=self.name)

    def opener(self, context: ExecutionContext) -> Callable[[str], TFRecordFile]:
        def count(places: int) -> None:
            context.skipped.add(places)
            context.iteration.coordinator.check_usable()  # closing must not wait for the end of much damage

        return partial(self.open_file, count=count)


@dataclass(frozen=True, eq=False)
class IndexedTFRecord(IndexedFiles):
    """Source node whose element ``i`` is record ``i``, counted across all files."""

    op: ClassVar[str] = TFRecord.op
    on_error: str = "raise"

    @property
    def may_skip_rows(self) -> bool:
        return self.on_error == "skip"

    def open_rows(self, skipped: DroppedCount) -> TFRecordRows:
        return TFRecordRows(self, skipped)


class TFRecordRows(FileRows):
    """Random-access reader of the records of several files; ``skipped`` counts the skipped ones."""

    node: IndexedTFRecord

    def __init__(self, node: IndexedTFRecord, skipped: DroppedCount) -> None:
        super().__init__(node)
        self._log = DamageLog(str(node), skipped.add)

    def skips_error(self, error: Exception) -> bool:
        if self.node.on_error != "skip" or not isinstance(error, DataLossError):
            return False
        self._log.passed_over(error)
        return True

    def close(self) -> None:
        super().close()
        self._log.sum_up("these files")

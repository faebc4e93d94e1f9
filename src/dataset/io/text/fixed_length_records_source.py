"""Source nodes of FixedLengthRecordDataset: fixed-length records. fixed_length_records.py reads a single file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.io.dataset_files import FileSource
from dataset.io.files.compression import compression_name
from dataset.io.indexed.source import IndexedFiles
from dataset.io.text.fixed_length_index import FixedLengthIndex
from dataset.io.text.fixed_length_records import FixedLengthFile
from dataset.plan.checks import require_int
from dataset.plan.spec import TensorSpec


@dataclass(frozen=True, eq=False)
class FixedLengthRecord(FileSource):
    """Source node: all records of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "FixedLengthRecordDataset"
    holds_blocks: ClassVar[bool] = True
    has_index: ClassVar[bool] = True
    record_bytes: int
    header_bytes: int | None = None
    footer_bytes: int | None = None
    buffer_size: int | None = None

    def __post_init__(self) -> None:
        self._set("record_bytes", require_int(self.op, "record_bytes", self.record_bytes, minimum=1))
        for name in ("header_bytes", "footer_bytes"):
            value = getattr(self, name)
            self._set(name, 0 if value is None else require_int(self.op, name, value, minimum=0))
        if self.buffer_size is not None:
            require_int(self.op, "buffer_size", self.buffer_size, minimum=0)
        self._set("compression_type", compression_name(self.compression_type, reading=True))

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str) -> FixedLengthFile:
        header, footer = self.header_bytes or 0, self.footer_bytes or 0
        return FixedLengthFile(path, self.record_bytes, header, footer, self.compression_type, self.buffer_size)

    def open_index(self, path: str) -> FixedLengthIndex:
        return FixedLengthIndex.of_file(path, self.record_bytes, self.header_bytes or 0, self.footer_bytes or 0)

    def indexed(self, indexes: tuple[FixedLengthIndex, ...], run_bytes: int) -> IndexedFixedLengthRecord:
        return IndexedFixedLengthRecord(indexes, run_bytes, name=self.name)


@dataclass(frozen=True, eq=False)
class IndexedFixedLengthRecord(IndexedFiles):
    """Source node whose element ``i`` is record ``i``, counted across all files."""

    op: ClassVar[str] = FixedLengthRecord.op

    def fingerprint_fields(self) -> Any:
        return [super().fingerprint_fields(), [str(index.offsets) for index in self.indexes]]

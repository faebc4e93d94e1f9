"""Index of a file of fixed-length records, whose positions are computed, and the reader of records by number."""

from __future__ import annotations

from dataclasses import dataclass

from dataset.errors import DataLossError
from dataset.io.files.compression import DamagedStreamError
from dataset.io.files.opening import FileStamp
from dataset.io.indexed.records_at import RecordIndex, RecordsAt
from dataset.io.indexed.saved_index import unchanged_stamp
from dataset.io.text.fixed_length_records import check_size


@dataclass(frozen=True, eq=False)
class FixedLengthIndex(RecordIndex):
    """Index of the records of a file, as ``RecordIndex``. Nothing is saved."""

    path: str
    stamp: FileStamp
    offsets: range

    @classmethod
    def of_file(cls, path: str, record_bytes: int, header_bytes: int, footer_bytes: int) -> FixedLengthIndex:
        """Return the index of a file; DataLossError if its size does not match."""
        stamp = unchanged_stamp(path)
        try:
            check_size(stamp.size, record_bytes, header_bytes, footer_bytes)
        except DamagedStreamError as damage:
            raise DataLossError(str(damage), path=path, offset=header_bytes, record=0) from None
        return cls(path, stamp, range(header_bytes, stamp.size - footer_bytes + 1, record_bytes))

    def open_records(self) -> FixedLengthRecordsAt:
        return FixedLengthRecordsAt(self)


class FixedLengthRecordsAt(RecordsAt[bytes]):
    """Random-access reader of the records of one open file. Thread-safe."""

    def records(self, first: int, stop: int) -> tuple[list[bytes], DataLossError | None]:
        begin, end = self._index.span(first, stop)
        size = (end - begin) // (stop - first)
        block = self._read_unchanged(begin, end, first)
        return [block[start : start + size] for start in range(0, end - begin, size)], None

"""Reader that skips the damaged records of a TFRecord file, logs them and counts them.

reader.py detects damage and its extent. This module handles damage that is not reported as an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.redaction import redacted

if TYPE_CHECKING:
    import os

    from dataset.errors import DataLossError

__all__ = ["LenientTFRecordFile"]


class LenientTFRecordFile(TFRecordFile):
    """Sequential reader of the intact records of one TFRecord file.

    A record whose data has a wrong checksum is skipped. If a length is corrupt, or the file or its compressed stream is
    truncated or corrupt, nothing shows where the next record begins, so reading ends there. Each skipped place is
    counted once and logged as a warning of the logger ``dataset``, at most 10 per file and a summary. A file that is
    missing or can't be read raises an error.

    Positions include skipped records: each record keeps its number.

    Args:
        path: the file.
        compression_type: as for ``TFRecordFile``.
        buffer_size: as for ``TFRecordFile``.
        reader: the name of the reader, for messages.
        count: called with the number of skipped places.

    >>> import os, tempfile
    >>> from dataset.io import TFRecordWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with TFRecordWriter(path) as writer:
    ...         for record in (b"one", b"two", b"three"):
    ...             writer.write(record)
    ...     with open(path, "r+b") as file:
    ...         place = file.seek(12), file.write(b"x")
    ...     counted = []
    ...     with LenientTFRecordFile(path, count=counted.append) as file:
    ...         file.records(10), file.tell(), counted
    ([b'two', b'three'], (59, 3), [1])
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        *,
        reader: str = "TFRecordFile",
        count: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(path, compression_type, buffer_size)
        self._count = count
        self._log = DamageLog(reader)

    def _report(self, failure: DataLossError) -> None:
        if self._count is not None:
            self._count(1)
        if self._ended:
            self._log.gave_up(failure)
            return
        self._first += 1
        self._offset += self._damaged_bytes
        self._log.passed_over(failure)

    def close(self) -> None:
        """Release the file and the memory; the position is kept. Log a summary of damage that was not logged."""
        super().close()
        self._log.sum_up(redacted(self.path))

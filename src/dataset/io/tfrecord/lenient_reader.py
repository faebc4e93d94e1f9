"""A reader that loses of a damaged TFRecord file what is damaged, and nothing else; it says so, and counts it.

What a damaged place is, and how far it reaches, reader.py knows. Here is what becomes of it when that is not to be an
error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataset.io.tfrecord.damage_log import DamageLog
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.redaction import redacted

if TYPE_CHECKING:
    import os

    from dataset.errors import DataLossError

__all__ = ["LenientTFRecordFile"]


class LenientTFRecordFile(TFRecordFile):
    """Reads the sound records of one TFRecord file.

    A record with a wrong checksum of its data is passed over. Where a length is broken, or the file or its compressed
    stream is cut short or corrupt, nothing tells where the next record begins: there the file ends. Each such place is
    a warning of the logger ``dataset``, at most 10 of them and a sum for a file, and counts as one. A file
    that is missing or can't be read is no damage, and raises.

    Positions count what was passed over: a record keeps its number.

    Args:
        path: the file.
        compression_type: as for ``TFRecordFile``.
        buffer_size: as for ``TFRecordFile``.
        reader: who reads, for messages.
        count: is called with the number of places that were skipped.

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
        """Give back the file and the memory, and keep the place. Damage that was not logged by itself is summed up."""
        super().close()
        self._log.sum_up(redacted(self.path))

"""Reader of fixed-length records between a header and a footer, which are skipped.

If the size of a file is known, it is checked before reading, so that a wrong record length causes an error and not
garbage. Otherwise (compressed files and pipes), the last ``footer_bytes`` bytes are held back until the end is reached.
"""

from __future__ import annotations

import os
import sys

from dataset.amounts import PIECE_BYTES
from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import DamagedStreamError, InputStream, begins_after_end

FOOTER_BLOCK_BYTES_MAX = 1 << 26  # blocks are as large as the footer up to this size: each block copies the footer


class FixedLengthFile(BlockFile):
    """Sequential reader of the fixed-length records of one file. Methods as in ``BlockFile``.

    Args:
        path: the file.
        record_bytes: the size of each record, at least 1.
        header_bytes: the number of bytes before the first record.
        footer_bytes: the number of bytes after the last record.
        compression_type: as for ``BlockFile``.
        buffer_size: as for ``BlockFile``.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"Habcdef")
    ...     with FixedLengthFile(path, 2, header_bytes=1) as file:
    ...         file.columns(2), file.tell(), file.columns(2), file.columns(2)
    ([[b'ab', b'cd']], (5, 2), [[b'ef']], None)
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        record_bytes: int,
        header_bytes: int = 0,
        footer_bytes: int = 0,
        compression_type: str | None = None,
        buffer_size: int | None = None,
    ) -> None:
        if record_bytes < 1:
            raise ValueError(f"FixedLengthFile: record_bytes must be at least 1, got {record_bytes}")
        if min(header_bytes, footer_bytes) < 0:
            got = f"header_bytes={header_bytes} and footer_bytes={footer_bytes}"
            raise ValueError(f"FixedLengthFile: header_bytes and footer_bytes must be at least 0, got {got}")
        self._record_bytes = record_bytes
        self._header_bytes = header_bytes
        self._footer_bytes = footer_bytes
        super().__init__(path, compression_type, buffer_size)
        self._go_to(header_bytes, 0)
        size = max(self._block_bytes, min(footer_bytes, FOOTER_BLOCK_BYTES_MAX))
        # A multiple of the record size, so that no records have to be joined.
        self._read_bytes = max(size - size % record_bytes, min(size, record_bytes))

    def _forget(self) -> None:
        self._pieces: list[bytes] = []  # the bytes read from _offset
        self._held = 0  # their total size

    def _offset_of(self, index: int) -> int:
        return self._header_bytes + (self._first + index) * self._record_bytes

    def _start(self, stream: InputStream) -> None:
        size = sys.maxsize if self.compression_type else stream.remaining_max()
        if size == sys.maxsize:  # unknown
            self._pass_over(stream)
            return
        self._check_size(size)
        stream.seek(self._offset)

    def _pass_over(self, stream: InputStream) -> None:
        """Skip to the offset of the next record."""
        position = 0
        while position < self._offset:
            piece = stream.read(min(self._offset - position, PIECE_BYTES))
            if not piece:
                self._check_size(position)
                raise begins_after_end(position, self._offset)
            position += len(piece)

    def _read_elements(self, stream: InputStream) -> list[bytes]:
        piece = stream.read(self._read_bytes)
        if not piece:
            self._check_size(self._offset + self._held)
            self._end()
            return []
        self._pieces.append(piece)
        self._held += len(piece)
        count = (self._held - self._footer_bytes) // self._record_bytes
        return self._cut(count) if count > 0 else []

    def _cut(self, count: int) -> list[bytes]:
        """Slice the first ``count`` records from the held bytes."""
        content, size = b"".join(self._pieces), self._record_bytes
        end = count * size
        self._pieces = [content[end:]] if end < len(content) else []
        self._held -= end
        self._offset += end
        return [content[start : start + size] for start in range(0, end, size)]

    def _check_size(self, size: int) -> None:
        check_size(size, self._record_bytes, self._header_bytes, self._footer_bytes)


def check_size(size: int, record_bytes: int, header_bytes: int, footer_bytes: int) -> None:
    """Raise DamagedStreamError unless a file of ``size`` bytes has a header, complete records and a footer."""
    around = f"header_bytes={header_bytes} and footer_bytes={footer_bytes}"
    body = size - header_bytes - footer_bytes
    if body < 0:
        raise DamagedStreamError(f"the file has {size} bytes, fewer than the sum of {around}")
    count, rest = divmod(body, record_bytes)
    if rest:
        raise DamagedStreamError(
            f"the file has {body} bytes without {around}, which is not a multiple of "
            f"record_bytes={record_bytes}: {rest} are left after {count} records; the file may be "
            "truncated, or one of these sizes is wrong"
        )

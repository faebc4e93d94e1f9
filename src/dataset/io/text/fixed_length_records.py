"""Records of one length, end to end, between a header and a footer that are passed over.

A file whose size is known is checked before anything is read of it, so that a wrong length gives an error and not
garbage. Of any other, a compressed one or a pipe, as many bytes as a footer has are held back until the end is seen.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import DamagedStreamError

if TYPE_CHECKING:
    import os

    from dataset.io.files.compression import InputStream

__all__ = ["FixedLengthFile"]

PIECE_BYTES_MAX = 1 << 20  # what is passed over is read in pieces of this size, so that no header is believed
FOOTER_BLOCK_BYTES_MAX = 1 << 26  # as much is read at once beside a footer as that has, since it is copied each time


class FixedLengthFile(BlockFile):
    """Reads the records of one file. The other arguments, and the methods, are those of ``BlockFile``.

    Args:
        path: the file.
        record_bytes: of each record, at least 1.
        header_bytes: before the first record.
        footer_bytes: behind the last.
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
            raise ValueError(f"FixedLengthFile: a header and a footer have at least 0 bytes, got {got}")
        self._record_bytes = record_bytes
        self._header_bytes = header_bytes
        self._footer_bytes = footer_bytes
        super().__init__(path, compression_type, buffer_size)
        self._go_to(header_bytes, 0)
        size = max(self._block_bytes, min(footer_bytes, FOOTER_BLOCK_BYTES_MAX))
        self._read_bytes = max(size - size % record_bytes, min(size, record_bytes))  # whole records need no joining

    def _forget(self) -> None:
        self._pieces: list[bytes] = []  # read from _offset on
        self._held = 0  # bytes in them

    def _offset_of(self, index: int) -> int:
        return self._header_bytes + (self._first + index) * self._record_bytes

    def _start(self, stream: InputStream) -> None:
        size = sys.maxsize if self.compression_type else stream.remaining_max()
        if size == sys.maxsize:  # nobody knows
            self._pass_over(stream)
            return
        self._check_size(size)
        stream.seek(self._offset)

    def _pass_over(self, stream: InputStream) -> None:
        """Read up to the place where records are wanted."""
        position = 0
        while position < self._offset:
            piece = stream.read(min(self._offset - position, PIECE_BYTES_MAX))
            if not piece:
                self._check_size(position)
                raise DamagedStreamError(f"the file has {position} bytes only, and was to be read from there on")
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
        """The first ``count`` records of what is held."""
        content, size = b"".join(self._pieces), self._record_bytes
        end = count * size
        self._pieces = [content[end:]] if end < len(content) else []
        self._held -= end
        self._offset += end
        return [content[start : start + size] for start in range(0, end, size)]

    def _check_size(self, size: int) -> None:
        """Raise DamagedStreamError unless a file of ``size`` bytes holds whole records, a header and a footer."""
        around = f"header_bytes={self._header_bytes} and footer_bytes={self._footer_bytes}"
        body = size - self._header_bytes - self._footer_bytes
        if body < 0:
            raise DamagedStreamError(f"the file has {size} bytes, fewer than {around} together")
        count, rest = divmod(body, self._record_bytes)
        if rest:
            raise DamagedStreamError(
                f"the file has {body} bytes without {around}, which is no multiple of "
                f"record_bytes={self._record_bytes}: {rest} are left behind {count} records; the file may be cut "
                "short, or one of these sizes is wrong"
            )

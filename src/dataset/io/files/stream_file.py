"""Base class of file readers: opens the file on the first read, releases it, and closes it permanently.

Subclasses define the format and the position in the file: tfrecord/reader.py, csv/reader.py and block_file.py.
"""

from __future__ import annotations

import os
from abc import abstractmethod

from dataset.closing import Closing
from dataset.errors import ClosedError
from dataset.io.files.compression import InputStream, compression_name, open_decompressed
from dataset.io.files.opening import path_string
from dataset.redaction import redacted


class StreamFile(Closing):
    """Reader of one file; holds the stream of its uncompressed bytes while the file is open.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.

    Raises:
        ValueError: the compression type is unknown.
    """

    _stream: InputStream | None = None  # a class attribute, so that __del__ works if the constructor raised

    def __init__(
        self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], compression_type: str | None = None
    ) -> None:
        self.path = path_string(path)
        self.compression_type = compression_name(compression_type)
        self._closed = False

    @abstractmethod
    def close(self) -> None:
        """Release the file and the memory; the position is kept. May be called more than once."""

    def __del__(self) -> None:
        self._release()  # no ResourceWarning: abandoning an iterator half way is not a mistake

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{type(self).__name__}: {redacted(self.path)} was closed")

    def _open(self) -> InputStream:
        """Return a stream positioned at the beginning of the file."""
        return open_decompressed(self.path, self.compression_type)

    def _release(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

"""The life of a file that is read through a stream: opened by the first read, given back, closed for good.

What is in the file, and where one is in it, is said by those who derive: tfrecord/reader.py, csv/reader.py and
block_file.py.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from dataset.closing import Closing
from dataset.errors import ClosedError
from dataset.io.files.compression import InputStream, compression_name, open_stream
from dataset.io.files.opening import open_input, path_string
from dataset.redaction import redacted

if TYPE_CHECKING:
    import os

__all__ = ["StreamFile"]


class StreamFile(Closing):
    """One file, and the stream of its uncompressed bytes while that is open.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.

    Raises:
        ValueError: the compression type is unknown.
    """

    _stream: InputStream | None = None  # here too, for a __del__ after a constructor that raised

    def __init__(
        self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], compression_type: str | None = None
    ) -> None:
        self.path = path_string(path)
        self.compression_type = compression_name(compression_type)
        self._closed = False

    @abstractmethod
    def close(self) -> None:
        """Give back the file and the memory, and keep the place. A second time does nothing."""

    def __del__(self) -> None:
        self._release()  # an iterator that is abandoned half way is no mistake, so no ResourceWarning

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{type(self).__name__}: {redacted(self.path)} was closed")

    def _open(self) -> InputStream:
        """A stream at the beginning of the file."""
        return open_stream(open_input(self.path), self.compression_type)

    def _release(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

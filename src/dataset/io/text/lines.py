r"""The lines of text files, as bytes.

A line ends with ``\n``, and at the end of the file, unless nothing is behind the last ``\n``. Every ``\r`` is dropped,
wherever it stands, as tf.data does it. No other character means anything, and no encoding is assumed.

How the reader is fast: a block is cut by one ``split``, and ``\r`` dropped by one ``replace``. A line that no block
completes waits as the list of its pieces, which are joined once, however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import LARGE_BYTES, DamagedStreamError, bomb_words

if TYPE_CHECKING:
    from dataset.io.files.compression import InputStream

__all__ = ["TextLineFile"]


class TextLineFile(BlockFile):
    r"""Reads the lines of one text file, without their ends. Arguments and methods are those of ``BlockFile``.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"one\r\n\ntwo")
    ...     with TextLineFile(path) as file:
    ...         file.columns(2), file.tell(), file.columns(2), file.columns(2)
    ([[b'one', b'']], (6, 2), [[b'two']], None)
    """

    def _start(self, stream: InputStream) -> None:
        if self._offset:  # a pipe can be read, if nobody asks it to move
            stream.seek(self._offset)

    def _forget(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has begun, from _offset on
        self._begun = 0  # about how many bytes they have
        self._content: bytes | None = None  # what _ready was cut from, where that has carriage returns
        self._raw: list[bytes] | None = None  # the lines in it before those were dropped
        self._told = (0, self._offset)  # a line of _ready, and where it begins

    def _read_elements(self, stream: InputStream) -> list[bytes]:
        block = stream.read(self._block_bytes)
        if not block:
            return self._last_line()
        pieces = self._pieces
        if b"\n" not in block:
            pieces.append(block)
            self._begun += len(block)
            if self._begun > LARGE_BYTES and self._begun > (most := stream.whole_max()):
                raise DamagedStreamError(bomb_words("line", most))
            return []
        self._begun = 0
        if b"\r" in block or any(b"\r" in piece for piece in pieces):
            block, pieces = b"".join([*pieces, block]), []
        # Else nothing is joined to the block: with two copies of each, the heap would grow and shrink all the time.
        lines = block.split(b"\n")
        rest = lines.pop()
        self._pieces = [rest] if rest else []
        length = sum(map(len, pieces)) + len(block) - len(rest)
        if pieces:
            lines[0] = b"".join([*pieces, lines[0]])
        return self._cut(block, length, lines)

    def _last_line(self) -> list[bytes]:
        """What is behind the last line's end, if it is anything."""
        content = b"".join(self._pieces)
        self._pieces = []
        self._end()
        lines = self._cut(content, len(content), [content])
        return lines if lines[0] else []

    def _cut(self, content: bytes, length: int, lines: list[bytes]) -> list[bytes]:
        """The lines that the first ``length`` bytes of ``content`` are, with no carriage return in them."""
        self._told = (0, self._offset)
        self._offset += length
        self._content = self._raw = None
        if b"\r" in content:
            self._content = content
            lines = content.replace(b"\r", b"").split(b"\n")[: len(lines)]
        return lines

    def _offset_of(self, index: int) -> int:
        if index == len(self._ready):
            return self._offset
        if self._content is not None:
            self._raw, self._content = self._content.split(b"\n"), None
        raw = self._ready if self._raw is None else self._raw
        told, offset = self._told
        offset += sum(map(len, raw[told:index])) + index - told  # each with its end
        self._told = (index, offset)
        return offset

    def _described(self, damage: str) -> str:
        return f"{damage}; what is lost begins with line {self._first + 1} of the file"

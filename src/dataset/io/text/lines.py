r"""Reader of the lines of text files, as bytes.

A line ends with ``\n`` or at the end of the file, without an empty line after the last ``\n``. Every ``\r`` is
dropped, at any position, as in tf.data. No other character is special, and no encoding is assumed.

How the reader is fast: one ``split`` divides a block, and one ``replace`` drops ``\r``. A line that spans several
blocks is kept as a list of pieces, which are joined once.
"""

from __future__ import annotations

from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import LARGE_BYTES, DamagedStreamError, InputStream, bomb_words
from dataset.io.indexed.index_file import index_hint


class TextLineFile(BlockFile):
    r"""Sequential reader of the lines of one text file, without line ends. Arguments and methods as in ``BlockFile``.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"one\r\n\ntwo")
    ...     with TextLineFile(path) as file:
    ...         file.columns(2), file.tell(), file.columns(2), file.columns(2)
    ([[b'one', b'']], (6, 2), [[b'two']], None)
    """

    def _forget(self) -> None:
        self._pieces: list[bytes] = []  # pieces of the incomplete line, from _offset
        self._begun = 0  # their approximate size
        self._content: bytes | None = None  # the block of _ready, if it contains carriage returns
        self._raw: list[bytes] | None = None  # the lines of _content with carriage returns
        self._begin = self._offset  # of the first line of _ready
        self._told = (0, self._offset)  # the index of a line of _ready, and its offset

    def _read_elements(self, stream: InputStream) -> list[bytes]:
        block = stream.read(self._block_bytes)
        if not block:
            return self._last_line()
        if not self._offset and (hint := index_hint(block)):
            raise DamagedStreamError(f"these bytes are not text{hint}")
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
        # Otherwise the block is not joined: with two copies of each block, the heap would grow and shrink all the time.
        lines = block.split(b"\n")
        rest = lines.pop()
        self._pieces = [rest] if rest else []
        length = sum(map(len, pieces)) + len(block) - len(rest)
        if pieces:
            lines[0] = b"".join([*pieces, lines[0]])
        return self._cut(block, length, lines)

    def _last_line(self) -> list[bytes]:
        """Return the text after the last line end as a line, if there is any."""
        content = b"".join(self._pieces)
        self._pieces = []
        self._end()
        lines = self._cut(content, len(content), [content])
        return lines if lines[0] else []

    def _cut(self, content: bytes, length: int, lines: list[bytes]) -> list[bytes]:
        """Return the lines of the first ``length`` bytes of ``content`` without carriage returns."""
        self._begin = self._offset
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
        told, offset = self._told if index >= self._told[0] else (0, self._begin)
        offset += sum(map(len, raw[told:index])) + index - told  # including line ends
        self._told = (index, offset)
        return offset

    def _described(self, damage: str) -> str:
        return f"{damage}; the lines from line {self._first + 1} of the file are lost"

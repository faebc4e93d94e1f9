"""Members of a tar stream: headers, long names and sizes, without extraction to disk.

POSIX ustar and pax, and GNU headers. As in WebDataset, only regular files are members; directories, links and devices
are skipped. A sparse member is rejected, because a small file may declare any size. A block of zeros ends the archive.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from dataset.amounts import PIECE_BYTES
from dataset.io.files.compression import DamagedStreamError, DecompressedStream, InputStream, bomb_words
from dataset.io.files.content_hint import content_hint

BLOCK_BYTES = 512
EXTENDED_BYTES_MAX = 1 << 20  # of a header that holds a long name
END = bytes(BLOCK_BYTES)  # of an archive; writers add a second one
_NO_END = (
    "the archive ends without a block of zeros, so members may be missing: copying or writing the file may not have "
    "finished; if it is complete, append 1024 zeros, for example with head -c 1024 /dev/zero >> FILE"
)
_REGULAR = frozenset(b"0\x007")
_WITHOUT_DATA = frozenset(b"123456")  # links, devices, directories and pipes: their size is not followed by data
_KEY = re.compile(r"((?:.*/|)[^.]+)[.]([^/]*)", re.DOTALL)
_META = re.compile(r"__[^/]*__($|/)")
_PAX = re.compile(rb"([0-9]{1,7}) ([^=]+)=")


class Member(NamedTuple):
    """A regular file of an archive.

    Attributes:
        offset: where its headers begin in the stream.
        name: its path in the archive.
        size: of its data, which follows, in bytes.
    """

    offset: int
    name: str
    size: int


def key_and_field(name: str) -> tuple[str, str] | None:
    """Split the name of a member as WebDataset does: at the first dot of its last part. None if it is not data.

    >>> key_and_field("train/001.seg.png"), key_and_field("train/README"), key_and_field("__meta__/a.json")
    (('train/001', 'seg.png'), None, None)
    """
    found = None if _META.match(name) else _KEY.fullmatch(name)
    return None if found is None else (found[1], found[2].lower())


class MemberReader:
    """Forward reader of the members of a stream.

    Args:
        stream: the uncompressed bytes of the file.
        offset: the position of the stream.
        block_bytes: how many bytes to read at once.
    """

    def __init__(self, stream: InputStream, offset: int, block_bytes: int) -> None:
        self._stream = stream
        self._block_bytes = block_bytes
        self._block = b""
        self._at = 0  # the position in the block
        self._base = offset  # where the block begins
        self._padding = 0  # bytes to skip before the next header
        self.begin = offset  # where the next headers begin, or those that are damaged, or the end of the archive

    @property
    def offset(self) -> int:
        """The position in the stream."""
        return self._base + self._at

    @property
    def in_memory(self) -> int:
        """How many bytes of the block are left."""
        return len(self._block) - self._at

    def next_member(self) -> Member | None:
        """Read headers up to those of the next regular file; None at the end of the archive.

        Raises:
            DamagedStreamError: a header is damaged or truncated, or is that of a sparse file.
        """
        self.begin = self.offset
        padding, self._padding = self._padding, 0
        if 0 < (found := len(self._take(padding))) < padding:
            raise _truncated(padding, found)
        while True:
            self.begin = self.offset
            header = self._next_header()
            if header is None:
                return None
            kind, name, size = header
            if kind == ord("S"):
                raise DamagedStreamError(f"the member {name!r:.80} is a sparse file; store it as an ordinary one")
            if kind in _REGULAR and not (kind == 0 and name.endswith(b"/")):  # an old way to write a directory
                self._padding = -size % BLOCK_BYTES
                return Member(self.begin, name.decode(errors="surrogateescape"), size)
            if kind not in _WITHOUT_DATA:
                self.skip(size + -size % BLOCK_BYTES)

    def _next_header(self) -> tuple[int, bytes, int] | None:
        """Return the type, the name and the size of the next member, after headers that extend them."""
        name, size = None, None
        while True:
            header = self._take(BLOCK_BYTES)
            if header == END:
                while isinstance(self._stream, DecompressedStream) and self._stream.read(self._block_bytes):
                    pass  # the checksum of a compressed stream is at its end
                self._base, self._block, self._at = self.begin, END, 0  # for the next call
                return None
            if not header:
                raise DamagedStreamError(_NO_END)
            if len(header) < BLOCK_BYTES:
                raise _truncated(BLOCK_BYTES, len(header), "" if self.begin else content_hint(header))
            kind, declared, short_name = _parsed(header, self.begin)
            if kind == ord("L"):
                name = self._extended(declared).partition(b"\0")[0]
            elif kind == ord("x"):
                name, size = _pax(self._extended(declared), name, size)
            elif kind in b"gK":  # the default of all members, and the target of a link
                self.skip(declared + -declared % BLOCK_BYTES)
            else:
                return kind, short_name if name is None else name, declared if size is None else size

    def data(self, size: int) -> bytes:
        """Return the data of the member that ``next_member`` returned last.

        Raises:
            DamagedStreamError: the file is truncated, or the member is out of proportion to a compressed file.
        """
        if size > self.in_memory + PIECE_BYTES:  # otherwise reading is cheaper than checking
            left = self.in_memory + self._stream.remaining_max()
            if size > left:
                raise DamagedStreamError(f"a member is truncated: its header declares {size} bytes, {left} follow")
            if size > (most := self._stream.whole_max()):
                raise DamagedStreamError(f"a header declares {size:,} bytes; {bomb_words('member', most)}")
        return self._exactly(size)

    def skip(self, size: int) -> None:
        """Pass over bytes. In an uncompressed file, long runs are not read."""
        beyond = size - self.in_memory
        if beyond > self._block_bytes and self._stream.remaining_max() < sys.maxsize:  # not a pipe
            self._base, self._block, self._at = self.offset + size, b"", 0
            self._stream.seek(self._base)
            return
        while size > 0:
            size -= len(self._exactly(min(size, self._block_bytes)))

    def _extended(self, size: int) -> bytes:
        if size > EXTENDED_BYTES_MAX:
            raise DamagedStreamError(f"a header declares a long name of {size} bytes, more than {EXTENDED_BYTES_MAX}")
        content = self._exactly(size)
        self.skip(-size % BLOCK_BYTES)
        return content

    def _exactly(self, size: int) -> bytes:
        found = self._take(size)
        if len(found) < size:
            raise _truncated(size, len(found))
        return found

    def _take(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end."""
        if size <= self.in_memory:
            self._at += size
            return self._block[self._at - size : self._at]
        pieces = [self._block[self._at :]]
        missing = size - len(pieces[0])
        self._base, self._block, self._at = self._base + len(self._block), b"", 0
        while missing and (block := self._stream.read(max(min(missing, 1 << 24), self._block_bytes))):
            pieces.append(block[:missing])
            if len(block) > missing:
                self._block, self._at = block, missing
            else:
                self._base += len(block)
            missing -= len(pieces[-1])
        return b"".join(pieces)


def _truncated(size: int, left: int, hint: str = "") -> DamagedStreamError:
    return DamagedStreamError(
        f"the archive is truncated: {size} bytes expected, {left} left; copying or writing the file may not have "
        f"finished{hint}"
    )


def _parsed(header: bytes, offset: int) -> tuple[int, int, bytes]:
    """Return the type, the size and the name in a header. Its checksum is verified."""
    stored = _number(header[148:156])
    if stored != sum(header[:148]) + sum(header[156:]) + 8 * ord(" "):
        words = "a member's header is damaged: its checksum is wrong"
        if not offset:
            words += content_hint(header) or "; is this a tar file?"
        raise DamagedStreamError(words)
    size = _number(header[124:136])
    if size is None or size < 0:
        raise DamagedStreamError("a member's header is damaged: its size is not a number")
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return header[156], size, prefix + b"/" + name if prefix else name


def _number(field: bytes) -> int | None:
    """Return a number of a header: octal digits, or GNU's binary form for large ones; None if it is neither."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else None
    digits = field.partition(b"\0")[0].strip()
    try:
        return int(digits or b"0", 8) if digits.isdigit() or not digits else None
    except ValueError:
        return None


def _pax(content: bytes, name: bytes | None, size: int | None) -> tuple[bytes | None, int | None]:
    """Return the name and the size in a pax header, or those that were given.

    Raises:
        DamagedStreamError: the header is damaged, or describes a sparse file.
    """
    for keyword, value in _pax_records(content):
        if keyword == b"path":
            name = value
        elif keyword == b"size":
            if not re.fullmatch(rb"[0-9]{1,18}", value):
                raise DamagedStreamError(f"a pax header is damaged: its size is {value!r:.40}")
            size = int(value)
        elif keyword.startswith(b"GNU.sparse."):
            raise DamagedStreamError("a member is a sparse file; store it as an ordinary one")
    return name, size


def _pax_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(content) and content[at]:
        found = _PAX.match(content, at)
        end = at + int(found[1]) if found else 0
        if found is None or not found.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise DamagedStreamError("a pax header is damaged")
        yield found[2], content[found.end() : end - 1]
        at = end

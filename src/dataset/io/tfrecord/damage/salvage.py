"""Recovery of records after damage: finds the next intact record, and reads the records from there on.

The format has no markers for the start of a record, but its checksums identify it. If the checksum of a length and the
checksum of the data after it are both correct, the position is the start of a record, except with a probability of
2^-64.

Continuing after a bad frame: if its length is correct, and at its end there is another correct length or the end of the
stream, then only its data is damaged, and the whole frame is skipped. Otherwise there are missing or extra bytes, and
every following position is tried. The headers of all positions are tested at once (header_search.py).

Cost: every byte is searched once for headers, which is linear in the file size. But each header that looks correct is
followed by data whose checksum has to be computed. A malicious file could contain such a header every twelve bytes,
each declaring the whole rest of the file. So the total size of data with a wrong checksum is limited to
``WASTE_FACTOR`` times the bytes before it, plus ``WASTE_BYTES``. Accidental damage stays far below this limit. A header
beyond the limit, or one that declares more than ``RECORD_BYTES_MAX``, is treated as noise, and ``complete`` becomes
false: there may be more records than were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from dataset.amounts import BLOCK_BYTES, PEEK_BYTES, PIECE_BYTES
from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.tfrecord.damage.header_search import find_headers
from dataset.io.tfrecord.frame_finder import find_frames
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    HEADER_BYTES,
    VERIFY_ALL,
    data_damage,
    frame_bytes,
    length_damage,
)

WASTE_BYTES = 1 << 28
WASTE_FACTOR = 4
RECORD_BYTES_MAX = 1 << 30  # held in memory to compute its checksum


class Sound(NamedTuple):
    """Record with correct checksums, and the offset of its frame."""

    offset: int
    data: bytes


class Gap(NamedTuple):
    """Range of the stream that does not belong to an intact record."""

    offset: int
    size: int


class Salvage:
    """Iterator over the intact records after a damaged position, and the gaps between them, in order.

    Args:
        stream: the bytes of the file. Its position is moved; the caller closes it.
        offset: where a damaged frame begins.

    Attributes:
        position: everything before it has been yielded.
        complete: whether every position was tried. False if that would have taken too much work.
        stream_damage: the error if the compressed stream could not be read to its end; otherwise empty.

    >>> import io
    >>> from dataset.io.files.compression import open_stream
    >>> from dataset.io.tfrecord.frames import framed
    >>> content = b"noise" + b"".join(framed(b"abc"))
    >>> list(Salvage(open_stream(io.BytesIO(content), ""), 0))
    [Gap(offset=0, size=5), Sound(offset=5, data=b'abc')]
    """

    def __init__(self, stream: InputStream, offset: int) -> None:
        self.position = offset
        self.complete = True
        self._window = _Window(stream, offset)
        self._wasted = 0
        self._block_bytes = 0  # size of the next block of frames; 0 after damage
        self._found: list[int] = []  # correct headers in the range that was searched last, in reverse order
        self._searched = offset  # positions before it were searched for headers

    @property
    def stream_damage(self) -> str:
        """Return the error of the compressed stream; empty if there is none."""
        return self._window.damage

    def __iter__(self) -> Iterator[Sound | Gap]:
        gap = at = self.position
        while self._window.has(at, 1):
            starts = self._sound_frames(at)
            if not starts:
                at = self._next_place(at)
                continue
            if gap < at:
                yield Gap(gap, at - gap)
            for start, end in pairwise(starts):
                self.position = end
                yield Sound(start, self._window.bytes(start + HEADER_BYTES, end - FOOTER_BYTES))
            gap = at = starts[-1]
            self._window.forget(at)
        if gap < at:
            self.position = at
            yield Gap(gap, at - gap)

    def _sound_frames(self, at: int) -> list[int]:
        """Return where the consecutive intact frames from ``at`` begin, and the end of the last one; empty if none.

        The first frame is verified alone, the next ones in blocks of doubling size. So single records between damaged
        ones do not cost a large block each.
        """
        if self._block_bytes:
            starts = self._sound_in_block(at)
            if len(starts) > 1:
                return starts
        end = self._sound_end(at)
        self._block_bytes = max(self._block_bytes, PEEK_BYTES) if end else 0
        return [at, end] if end else []

    def _sound_in_block(self, at: int) -> list[int]:
        self._window.has(at, self._block_bytes)
        block = self._window.bytes(at, at + self._block_bytes)
        _, ends = find_frames(block, 0, VERIFY_ALL)
        self._block_bytes = min(2 * self._block_bytes, BLOCK_BYTES)
        return [at, *(at + end + FOOTER_BYTES for end in ends)]

    def _sound_end(self, at: int) -> int:
        """Return the end of the frame at ``at`` if it is intact, else 0."""
        end = self._frame_end(at)
        if not end:
            return 0
        if end - at > self._allowance(at):
            self.complete = False
            return 0
        if self._window.has(at, end - at) and not self._window.data_damage(at, end):
            return end
        self._wasted += min(end, self._window.end) - at
        return 0

    def _allowance(self, at: int) -> int:
        return min(WASTE_BYTES + WASTE_FACTOR * at - self._wasted, RECORD_BYTES_MAX)

    def _declared_end(self, at: int) -> int:
        """Return the end of the frame at ``at`` by its header if the checksum of its length is correct, else 0."""
        if not self._window.has(at, HEADER_BYTES):
            return 0
        header = self._window.bytes(at, at + HEADER_BYTES)
        return 0 if length_damage(header, 0) else at + frame_bytes(header, 0)

    def _frame_end(self, at: int) -> int:
        """Return the declared end of the frame at ``at`` if the stream may be that long, else 0."""
        end = self._declared_end(at)
        return end if end <= self._window.end or end <= self._window.end_max() else 0

    def _next_place(self, at: int) -> int:
        """Return the next possible start of a frame after a bad one; the end of the stream if there is none."""
        end = self._frame_end(at)
        if end and end - at <= self._allowance(at) and self._window.has(at, end - at):
            ends_here = not self._window.has(end, 1)
            if ends_here or self._declared_end(end):
                return end
        return self._next_header(at + 1)

    def _next_header(self, at: int) -> int:
        """Return the next position from ``at`` with a correct header."""
        while True:
            while self._found:
                if self._found[-1] >= at:
                    return self._found.pop()
                self._found.pop()
            start = max(at, self._searched)
            self._window.forget(start)
            self._window.has(start, BLOCK_BYTES)
            stretch = self._window.bytes(start, start + BLOCK_BYTES)
            if len(stretch) < HEADER_BYTES:
                return self._window.end
            places = find_headers(stretch, self._window.end_max() - start)
            self._found = [start + place for place in reversed(places)]
            self._searched = start + len(stretch) - HEADER_BYTES + 1


class _Window:
    """Sliding window over a stream, read on demand; its start only moves forward."""

    def __init__(self, stream: InputStream, start: int) -> None:
        self.damage = ""
        self._stream = stream
        self._start = start
        self._data = bytearray()
        self._ended = False
        try:
            stream.seek(start)
        except DamagedStreamError as damage:
            self._end(damage)

    @property
    def end(self) -> int:
        """Return the end of the bytes that have been read."""
        return self._start + len(self._data)

    def has(self, at: int, size: int) -> bool:
        """Read until these bytes are available; return whether the stream has them."""
        while self.end < at + size and not self._ended:
            try:
                piece = self._stream.read(max(BLOCK_BYTES, min(at + size - self.end, PIECE_BYTES)))
            except DamagedStreamError as damage:
                self._end(damage)
                break
            self._data += piece
            self._ended = not piece
        return self.end >= at + size

    def _end(self, damage: DamagedStreamError) -> None:
        self.damage = str(damage)
        self._ended = True

    def end_max(self) -> int:
        """Return an upper bound for the end of the stream."""
        return self.end if self._ended else self.end + self._stream.remaining_max()

    def bytes(self, start: int, end: int) -> bytes:
        """Return a copy of the available bytes in a range."""
        return bytes(self._data[start - self._start : end - self._start])

    def data_damage(self, at: int, end: int) -> bool:
        """Return whether the checksum of the data in this frame is wrong."""
        stored = int.from_bytes(self.bytes(end - FOOTER_BYTES, end), "little")
        with memoryview(self._data) as whole:
            first, last = at + HEADER_BYTES - self._start, end - FOOTER_BYTES - self._start
            with whole[first:last] as data:
                return bool(data_damage(data, stored))

    def forget(self, at: int) -> None:
        """Drop the bytes before ``at``, which are not needed any more."""
        del self._data[: max(at - self._start, 0)]
        self._start = max(at, self._start)

"""What can still be read behind damage: the next place where a sound record begins, and the records from there on.

The format has no marks that say where a record begins, but its checksums tell: a position where the checksum of a
length and the checksum of the data behind it are both right is the beginning of a record, but for odds of 1 to 2^64.

How it goes on behind a bad frame. If its length is right, and at its end another right length stands, or the stream
ends there, then only its data is damaged, and it is passed over whole. Otherwise bytes are missing or too many, and
every following position is tried. The headers of all positions are compared at once (headers.py).

What it costs. Every byte is searched once for headers, so that is linear in the file. But behind each header that looks
right lie data whose checksum has to be computed, and whoever wants to be a nuisance writes one such header every twelve
bytes, each declaring all the rest of the file. So there is an allowance for data that turn out wrong: what lies
before, ``WASTE_FACTOR`` times, and ``WASTE_BYTES``. No accident comes near it. A header beyond it, or one that declares
more than ``RECORD_BYTES_MAX``, is taken for noise, and ``complete`` becomes false: there may be more records than were
found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.tfrecord.checksums import BlockChecksums
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    HEADER_BYTES,
    data_damage,
    frame_bytes,
    frame_starts,
    length_damage,
)
from dataset.io.tfrecord.headers import find_headers

__all__ = ["Gap", "Salvage", "Sound"]

BLOCK_BYTES_MIN = 1 << 12
BLOCK_BYTES_MAX = 1 << 18
SCAN_BYTES = 1 << 18  # searched for headers at once
READ_BYTES = 1 << 18
WASTE_BYTES = 1 << 28
WASTE_FACTOR = 4
RECORD_BYTES_MAX = 1 << 30  # held in memory to compute its checksum


class Sound(NamedTuple):
    """A record with right checksums, and where its frame begins."""

    offset: int
    data: bytes


class Gap(NamedTuple):
    """A stretch of the stream that belongs to no sound record."""

    offset: int
    size: int


class Salvage:
    """The sound records from a damaged place on, and the gaps between them, in order.

    Args:
        stream: the bytes of the file; it is moved, and stays the caller's to close.
        offset: where a damaged frame begins.

    Attributes:
        position: what lies before it has been given out.
        complete: whether every position was looked at. False if the file made that too much work.
        stream_damage: what is wrong if the compressed stream could not be read to its end; empty if it could.

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
        self._checksums = BlockChecksums(BLOCK_BYTES_MAX)
        self._block_bytes = 0  # of the next block of frames; 0 behind damage
        self._found: list[int] = []  # right headers in the stretch that was searched last, the next one at the end
        self._searched = offset  # positions before it were searched for headers

    @property
    def stream_damage(self) -> str:
        """What is wrong with the compression of the stream; empty if nothing is."""
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
        """Where the sound frames begin that follow each other from ``at`` on, and the last one's end; empty if none do.

        One at first. While all goes well they are verified by blocks, each twice as large as the one before, so that
        records between much damage don't cost a large block each.
        """
        if self._block_bytes:
            starts = self._sound_in_block(at)
            if len(starts) > 1:
                return starts
        end = self._sound_end(at)
        self._block_bytes = max(self._block_bytes, BLOCK_BYTES_MIN) if end else 0
        return [at, end] if end else []

    def _sound_in_block(self, at: int) -> list[int]:
        self._window.has(at, self._block_bytes)
        block = self._window.bytes(at, at + self._block_bytes)
        starts = frame_starts(block)
        damage = next(self._checksums.damages(block, starts), None)
        if damage is None:
            self._block_bytes = min(2 * self._block_bytes, BLOCK_BYTES_MAX)
        else:
            del starts[damage[0] + 1 :]
            self._block_bytes = 0
        return [at + start for start in starts]

    def _sound_end(self, at: int) -> int:
        """Where the frame at ``at`` ends if it is sound, else 0."""
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
        """Where the frame at ``at`` ends by its header, if the checksum of its length is right; else 0."""
        if not self._window.has(at, HEADER_BYTES):
            return 0
        header = self._window.bytes(at, at + HEADER_BYTES)
        return 0 if length_damage(header, 0) else at + frame_bytes(header, 0)

    def _frame_end(self, at: int) -> int:
        """The same if the stream is that long, as far as one knows; else 0."""
        end = self._declared_end(at)
        return end if end <= self._window.end or end <= self._window.end_max() else 0

    def _next_place(self, at: int) -> int:
        """The next position behind a bad frame where one may begin; the end of the stream if there is none."""
        end = self._frame_end(at)
        if end and end - at <= self._allowance(at) and self._window.has(at, end - at):
            ends_here = not self._window.has(end, 1)
            if ends_here or self._declared_end(end):
                return end
        return self._next_header(at + 1)

    def _next_header(self, at: int) -> int:
        """The next position from ``at`` on where a right header stands."""
        while True:
            while self._found:
                if self._found[-1] >= at:
                    return self._found.pop()
                self._found.pop()
            start = max(at, self._searched)
            self._window.forget(start)
            self._window.has(start, SCAN_BYTES)
            stretch = self._window.bytes(start, start + SCAN_BYTES)
            if len(stretch) < HEADER_BYTES:
                return self._window.end
            places = find_headers(stretch, self._window.end_max() - start)
            self._found = [start + place for place in reversed(places)]
            self._searched = start + len(stretch) - HEADER_BYTES + 1


class _Window:
    """The bytes of a stream from a position on that only moves forward, read as they are asked for."""

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
        """Where the bytes that have been read end."""
        return self._start + len(self._data)

    def has(self, at: int, size: int) -> bool:
        """Read on until these bytes are here; whether the stream has them."""
        while self.end < at + size and not self._ended:
            try:
                piece = self._stream.read(max(READ_BYTES, min(at + size - self.end, 1 << 20)))
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
        """Where the stream ends at the latest."""
        return self.end if self._ended else self.end + self._stream.remaining_max()

    def bytes(self, start: int, end: int) -> bytes:
        """A copy of the bytes that are here."""
        return bytes(self._data[start - self._start : end - self._start])

    def data_damage(self, at: int, end: int) -> bool:
        """Whether the checksum of the data in this frame is wrong."""
        stored = int.from_bytes(self.bytes(end - FOOTER_BYTES, end), "little")
        with memoryview(self._data) as whole:
            first, last = at + HEADER_BYTES - self._start, end - FOOTER_BYTES - self._start
            with whole[first:last] as data:
                return bool(data_damage(data, stored))

    def forget(self, at: int) -> None:
        """Let go of what lies before ``at``, which is never asked for again."""
        del self._data[: max(at - self._start, 0)]
        self._start = max(at, self._start)

"""Ranges ahead: ranges of a file that will be read next, which are fetched beside one another.

They are those that follow if the file is read sequentially, or those that the reader has announced. No range is longer
than RANGE_BYTES.

A connection to an object storage has a small part of the bandwidth of the link, and each request waits for a round
trip. So several requests are in progress at a time. Their number is doubled as long as that raises the rate at which
ranges arrive and the consumer waits for them (ramp.py). What is found holds for all files of a folder. If the last one
was read to its end, as many bytes are requested ahead in the next one.

A range that fails is not retried here: the reader continues after the bytes that have arrived (reading.py), and fewer
requests are made at a time.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable

from dataset.io.files.remote.backoff import Backoff
from dataset.io.files.remote.objects import RemoteObject
from dataset.ramp import Ramp
from dataset.world import register_at_fork, threading, time

RANGE_BYTES = 1 << 21
"""Bytes per range. At 25 MB/s, they take four times as long as a round trip of 20 ms."""

RANGES_FIRST = 8
"""How many ranges are requested at a time at first."""

RANGES_MAX = 32
"""How many ranges of a file are requested at a time, at most."""

_PROCESS_RANGES_MAX = 64  # of all files: connections, and twice as many MiB
_FOLDERS_MAX = 1024

_requested: set[weakref.ref[RequestedRange]] = set()  # a range that is dropped leaves it, whatever was interrupted
register_at_fork(after_in_child=_requested.clear)  # they are the parent's


class RequestedRange:
    """A range of bytes that is being fetched.

    Attributes:
        start, stop: the offsets of its first byte and after its last one.
        data: the bytes that have arrived.
    """

    def __init__(self, remote: RemoteObject, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.data = bytearray()
        _requested.add(weakref.ref(self, _requested.discard))
        self.future = remote.begin(start, stop, self.data)

    def close(self) -> None:
        """End the request, if it is in progress."""
        _requested.discard(weakref.ref(self))
        if self.future is not None:
            self.future.cancel()


class Pace:
    """How the files of a folder are read, by any number of threads.

    Attributes:
        count: how many ranges are requested at a time for each file.
        in_a_row: how many bytes were read sequentially before the end of the last file that was read to its end.
    """

    def __init__(self) -> None:
        self.count = RANGES_FIRST
        self.in_a_row = 0
        self._lock = threading.Lock()  # held by one reader that counts; others do not wait, and are not counted
        self._begin(Ramp(RANGES_FIRST, RANGES_MAX))

    def arrived(self, nbytes: int, waited: float) -> None:
        """Note that a reader has waited for a range, whose bytes have all arrived."""
        if self._ramp is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._bytes += nbytes
            self._waited += waited
            self._taken += 1
            if self._taken >= 2 * self.count:  # half of them were requested before the count changed
                self._climb(self._ramp)
        finally:
            self._lock.release()

    def _climb(self, ramp: Ramp) -> None:
        seconds = time.perf_counter() - self._since
        goes_on = ramp.report(self._bytes / seconds, self._waited / seconds)
        self.count = ramp.value
        self._begin(ramp if goes_on else None)

    def _begin(self, ramp: Ramp | None) -> None:
        self._ramp = ramp
        self._since, self._bytes, self._taken, self._waited = time.perf_counter(), 0, 0, 0.0

    def slow_down(self) -> None:
        """Request fewer ranges at a time, since the server may be busy, and then more again as long as that helps."""
        self.count = max(1, self.count // 2)
        self._begin(Ramp(self.count, RANGES_MAX))


_paces: dict[str, Pace] = {}  # by folder


def pace_of(folder: str) -> Pace:
    """Return the pace of a folder in this process."""
    if len(_paces) >= _FOLDERS_MAX and folder not in _paces:
        _paces.clear()
    return _paces.setdefault(folder, Pace())


class RangesAhead:
    """The ranges of one file that are fetched ahead of its reader.

    Args:
        remote: the file.
        pace: that of its folder.
        host: the backoff of its host.
    """

    def __init__(self, remote: RemoteObject, pace: Pace, host: Backoff) -> None:
        self.pace = pace
        self._host = host
        self._remote = remote
        self._ranges: deque[RequestedRange] = deque()  # requested, in the order in which they are read
        self._wanted: deque[tuple[int, int]] = deque()  # to be requested
        self._are_announced = False

    def take(self, position: int) -> RequestedRange | None:
        """Return the first range that holds a position, and drop those before it; drop all if there is none."""
        if not any(found.start <= position < found.stop for found in self._ranges):
            self.close()
            return None
        while not (first := self._ranges.popleft()).start <= position < first.stop:
            first.close()
        self._request(RANGES_MAX)
        return first

    def extend(self, start: int, limit: int, size: int) -> None:
        """Request what follows sequentially, unless the reader has announced what it will read.

        Args:
            start: where the first range begins, if none was requested yet.
            limit: all ranges begin before this offset.
            size: the size of the file.
        """
        if self._are_announced:
            return
        start = self._ranges[-1].stop if self._ranges else start
        missing = range(start, min(limit, size), RANGE_BYTES)[: max(0, self.pace.count - len(self._ranges))]
        self._wanted = deque((start, min(start + RANGE_BYTES, size)) for start in missing)
        self._request(self.pace.count)

    def expect(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Request these ranges, given by their offsets, which will be read in this order."""
        self.close()
        self._are_announced = True
        for start, stop in ranges:
            self._wanted.extend((at, min(at + RANGE_BYTES, stop)) for at in range(start, stop, RANGE_BYTES))
        self._request(RANGES_MAX)

    def _request(self, count: int) -> None:
        """Request what is wanted next, until ``count`` ranges are kept."""
        if self._wanted and self._host.remaining():
            return  # the reader waits before its next request
        while self._wanted and len(self._ranges) < count and len(_requested) < _PROCESS_RANGES_MAX:
            found = RequestedRange(self._remote, *self._wanted.popleft())
            self._ranges.append(found)
            if found.future is None:
                self.close()  # the file system cannot fetch beside the reader

    def arrived(self, nbytes: int, waited: float) -> None:
        """Note that the reader has waited for a range, whose bytes have all arrived."""
        if not self._are_announced:  # their rate depends on their sizes
            self.pace.arrived(nbytes, waited)

    def failed(self) -> None:
        """Note that a range did not arrive. No other is waited for."""
        self.close()
        self.pace.slow_down()

    def close(self) -> None:
        """End all requests that are in progress. Does not block."""
        self._wanted.clear()
        self._are_announced = False
        while self._ranges:
            self._ranges.pop().close()

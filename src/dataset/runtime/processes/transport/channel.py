"""Channel: messages of bytes and file descriptors through a socket.

A channel is one end of a pair. Each message begins with its length. The two sides take turns, so at most one message is
in transit and a read cannot extend into the next message.
"""

from __future__ import annotations

import array
import contextlib
import math
import os
import struct
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from dataset.world import select, socket
from dataset.world.forking import at_fork, whole

_LENGTH = struct.Struct("<Q")
_READ_SIZE = 1 << 15
_ROOM_FOR_DESCRIPTORS = socket.CMSG_SPACE(4 * array.array("i").itemsize) if hasattr(socket, "CMSG_SPACE") else 0
_FLAGS = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # programs that this process starts must not inherit descriptors


class EndedError(Exception):
    """Internal: the process at the other end has ended, or this end has been shut down."""


_open: weakref.WeakSet[Channel] = weakref.WeakSet()


class Channel:
    """One end of a socket pair. Used by one thread at a time, except for ``shut_down``.

    A forked child closes its copies at once, so that each side can detect the end of the process at the other end.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._read = memoryview(bytearray(_READ_SIZE))  # reused for every message: new buffers would cost page faults
        _open.add(self)

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message; return when the system has accepted it.

        Raises:
            EndedError: if the other end is closed.
        """
        data = _LENGTH.pack(len(message)) + message
        try:
            sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else 0
            self._socket.sendall(memoryview(data)[sent:])
        except ConnectionError:
            raise EndedError from None

    def receive(self) -> tuple[bytes, list[int]]:
        """Wait for the next message; the caller must close its descriptors.

        Raises:
            EndedError: if the other end is closed.
        """
        descriptors: list[int] = []
        try:
            size, ancillary, _, _ = self._socket.recvmsg_into([self._read], _ROOM_FOR_DESCRIPTORS, _FLAGS)
            descriptors = _descriptors(ancillary)
            return self._complete(size), descriptors
        except BaseException as error:
            close_all(descriptors)
            if isinstance(error, ConnectionError):
                raise EndedError from None
            raise

    def has_more(self, within: float | None = None, alarm: Alarm | None = None) -> bool:
        """Return whether a message, or the end, arrives within this many seconds and before the alarm."""
        waiting = select.poll()  # unlike select, it accepts any descriptor
        waiting.register(self, select.POLLIN)
        if alarm is not None:
            waiting.register(alarm, select.POLLIN)
        ready = waiting.poll(None if within is None else math.ceil(within * 1000))
        return any(descriptor == self.fileno() for descriptor, _ in ready)

    @property
    def has_ended(self) -> bool:
        """Whether the other end is closed, even if a message is left to be received."""
        waiting = select.poll()
        waiting.register(self, 0)
        return bool(waiting.poll(0))  # the end is reported unasked

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._socket.fileno()

    def _complete(self, size: int) -> bytes:
        """Return the message whose first ``size`` bytes have been read."""
        if not size:
            raise EndedError
        while size < _LENGTH.size:
            size += self._more(self._read[size:])
        end = _LENGTH.size + _LENGTH.unpack_from(self._read)[0]
        if size == end:
            return bytes(self._read[_LENGTH.size : end])
        assert size < end  # at most one message is in transit
        message = bytearray(end)
        message[:size] = self._read[:size]
        while size < end:
            size += self._more(memoryview(message)[size:])
        return bytes(memoryview(message)[_LENGTH.size :])

    def _more(self, place: memoryview) -> int:
        size = self._socket.recv_into(place)
        if not size:
            raise EndedError
        return size

    def shut_down(self) -> None:
        """Shut down both sides, including forked copies, and wake threads that wait. May be called from any thread."""
        with contextlib.suppress(OSError):  # the other side did it first
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end; copies in other processes are not affected."""
        self._socket.close()


class Alarm:
    """Ends the waits of threads for messages. May be set from any thread, and by the garbage collector."""

    def __init__(self) -> None:
        with whole:
            self._ends = [Channel(end) for end in socket.socketpair()]
        self.is_set = False

    def set(self) -> None:
        """End all waits, now and later."""
        self.is_set = True
        self._ends[0].shut_down()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""
        return self._ends[0].fileno()

    def close(self) -> None:
        """Release the descriptors."""
        for end in self._ends:
            end.close()


@contextmanager
def new_pair() -> Iterator[tuple[Channel, int]]:
    """Create a pair; yield our end, and the descriptor of the other end, which is closed after the block."""
    with whole:
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        with theirs:
            try:
                yield channel, theirs.fileno()
            except BaseException:
                channel.close()
                raise


def _descriptors(ancillary: Iterable[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return found.tolist()


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _after_fork_in_child() -> None:
    for channel in list(_open):
        channel.close()


at_fork(in_child=_after_fork_in_child)

"""Connection: sends values through a channel, with their large parts in shared memory.

An envelope of a few hundred bytes goes through the socket. Arrays and pickles of 16 KiB or more are put into a segment
(segments.py), so that no message fills the socket's buffer and blocks.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dataset.runtime.processes.transport.channel import Alarm, Channel, close_all
from dataset.runtime.processes.transport.encoding import BESIDE_MIN, Encoded, decode, encode
from dataset.runtime.processes.transport.segments import Borrower, Lender, Loan, cut
from dataset.runtime.processes.transport.shared_memory import Bytes, Mapping, allocate


class UnsendableError(Exception):
    """Internal: a value cannot be pickled; the cause says why. Nothing was sent."""


class UnreadableError(Exception):
    """Internal: a message cannot be unpickled here; the cause says why. The connection stays usable."""


class _Envelope(NamedTuple):
    pickled: bytes | None  # None if it is the first buffer of the loan
    loan: Loan | None
    usable: tuple[int, ...]  # result of Borrower.done()
    unusable: tuple[int, ...]
    dropped: tuple[int, ...]  # result of Lender.dropped()


_BARE, _WRAPPED = b"\0", b"\1"  # the first byte: a bare value (most small messages), or an envelope


def _opened(message: bytes) -> _Envelope:
    if message[:1] == _BARE:
        return _Envelope(message[1:], None, (), (), ())
    return _Envelope(*pickle.loads(memoryview(message)[1:]))


class Connection:
    """One end of a connection. Used by one thread at a time, except for ``shut_down``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lender = Lender()
        self._borrower = Borrower()
        self._by_value = False  # remembered, because finding out costs a failed attempt

    def send(self, value: Any) -> None:
        """Send a value.

        Raises:
            UnsendableError: if it cannot be pickled.
            EndedError: if the other end is closed.
        """
        try:
            encoded = encode(value, by_value=self._by_value)
        except Exception as error:
            raise UnsendableError from error
        self._by_value = encoded.by_value
        pickled, beside = _split(encoded)
        loan, descriptor = self._lender.lend(beside) if beside else (None, None)
        descriptors = [] if descriptor is None else [descriptor]
        try:
            self._send(pickled, loan, descriptors)
        finally:
            close_all(descriptors)

    def send_shared(self, value: SharedValue) -> None:
        """Send a value that is also sent to other processes."""
        self._send(value.pickled, value.loan, value.descriptors)

    def _send(self, pickled: bytes | None, loan: Loan | None, descriptors: Sequence[int]) -> None:
        usable, unusable = self._borrower.done()
        dropped = self._lender.dropped()
        if pickled is not None and not (loan or usable or unusable or dropped):
            self._channel.send(_BARE + pickled)
            return
        envelope = _Envelope(pickled, loan, usable, unusable, dropped)
        self._channel.send(_WRAPPED + pickle.dumps(tuple(envelope)), descriptors)

    def has_more(self, within: float | None = None, alarm: Alarm | None = None) -> bool:
        """Return whether a value, or the end, arrives within this many seconds and before the alarm."""
        return self._channel.has_more(within, alarm)

    @property
    def has_ended(self) -> bool:
        """Whether the other end is closed, even if values are left to be received."""
        return self._channel.has_ended

    def receive(self) -> Any:
        """Wait for a value.

        Raises:
            UnreadableError: if it cannot be unpickled.
            EndedError: if the other end is closed.
        """
        message, descriptors = self._channel.receive()
        try:
            envelope = _opened(message)
            self._lender.take_back(envelope.usable)
            self._lender.give_up(envelope.unusable)
            self._borrower.forget(envelope.dropped)
            buffers = self._buffers(envelope.loan, descriptors)
        finally:
            close_all(descriptors)
        pickled = buffers.pop(0) if envelope.pickled is None else envelope.pickled
        try:
            return decode(pickled, buffers)
        except Exception as error:
            raise UnreadableError from error

    def _buffers(self, loan: Loan | None, descriptors: Sequence[int]) -> list[memoryview]:
        if loan is None:
            return []
        if loan.segment == SharedValue.SEGMENT:
            return SharedValue.views(loan, descriptors[0])
        return self._borrower.views(loan, descriptors[0] if descriptors else None)

    def reset(self) -> None:
        """Release all memory except that of arrays in use; the other side must do the same."""
        self._lender = Lender()
        self._borrower = Borrower()
        self._by_value = False

    def shut_down(self) -> None:
        """Shut down both sides and wake threads that wait. May be called from any thread."""
        self._channel.shut_down()

    def close(self) -> None:
        """Release the socket and the memory, except that of arrays in use."""
        self._channel.close()
        self.reset()


class SharedValue:
    """Value that is encoded once and sent to several processes, which share its memory until they write to it."""

    SEGMENT = 0  # a number that no lender uses

    def __init__(self, encoded: Encoded) -> None:
        self.pickled, beside = _split(encoded)
        self.loan: Loan | None = None
        self.descriptors: list[int] = []
        if beside:
            self._store(beside)

    def _store(self, buffers: Sequence[Bytes]) -> None:
        lengths = tuple(buffer.nbytes for buffer in buffers)
        size = sum(lengths) + 64 * len(lengths)  # enough room to align each
        self.descriptors = [allocate(size)]
        self.loan = Loan(self.SEGMENT, size, lengths)
        memory = np.asarray(Mapping(self.descriptors[0], size))
        for place, buffer in zip(cut(memory, lengths), buffers, strict=True):
            place[:] = buffer

    @staticmethod
    def views(loan: Loan, descriptor: int) -> list[memoryview]:
        """Return the buffers of a shared value, in a process that has received it."""
        memory = np.asarray(Mapping(descriptor, loan.size, private=True))
        return [part.data for part in cut(memory, loan.lengths)]

    def close(self) -> None:
        """Release the memory."""
        close_all(self.descriptors)
        self.descriptors = []


def _split(encoded: Encoded) -> tuple[bytes | None, list[Bytes]]:
    """Return what goes through the socket, and the buffers for shared memory."""
    if len(encoded.pickled) < BESIDE_MIN:
        return encoded.pickled, encoded.buffers
    return None, [np.frombuffer(encoded.pickled, np.uint8), *encoded.buffers]

"""Values through a channel, their large parts in shared memory.

What goes through the socket is an envelope of a few hundred bytes. From 16 KiB up, arrays and the pickled bytes
themselves lie in a segment (segments.py), so that no message fills the socket's buffer and waits there.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dataset.runtime.processes.channel import Channel, close_all
from dataset.runtime.processes.encoding import BESIDE_MIN, Encoded, decode, encode
from dataset.runtime.processes.memory import Bytes, Mapping, allocate
from dataset.runtime.processes.segments import Borrower, Lender, Loan, cut


class UnsendableError(Exception):
    """Internal: a value cannot be pickled; its cause says why. Nothing was sent."""


class UnreadableError(Exception):
    """Internal: what came cannot be unpickled here; its cause says why. The connection is as good as before."""


class _Envelope(NamedTuple):
    pickled: bytes | None  # None where it is the first buffer of the loan
    loan: Loan | None
    usable: tuple[int, ...]  # what Borrower.done() says
    unusable: tuple[int, ...]
    dropped: tuple[int, ...]  # what Lender.dropped() says


_BARE, _WRAPPED = b"\0", b"\1"  # the first byte: a value as it is, for most small messages, or an envelope


def _opened(message: bytes) -> _Envelope:
    if message[:1] == _BARE:
        return _Envelope(message[1:], None, (), (), ())
    return _Envelope(*pickle.loads(memoryview(message)[1:]))


class Connection:
    """One end. Used by one thread at a time, except for ``shut_down``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lender = Lender()
        self._borrower = Borrower()
        self._by_value = False  # remembered, because finding it out takes an attempt

    def send(self, value: Any) -> None:
        """Send a value.

        Raises:
            UnsendableError: if it cannot be pickled.
            EndedError: if nobody will read it.
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
        """Send a value that others are sent, too."""
        self._send(value.pickled, value.loan, value.descriptors)

    def _send(self, pickled: bytes | None, loan: Loan | None, descriptors: Sequence[int]) -> None:
        usable, unusable = self._borrower.done()
        dropped = self._lender.dropped()
        if pickled is not None and not (loan or usable or unusable or dropped):
            self._channel.send(_BARE + pickled)
            return
        envelope = _Envelope(pickled, loan, usable, unusable, dropped)
        self._channel.send(_WRAPPED + pickle.dumps(tuple(envelope)), descriptors)

    def receive(self) -> Any:
        """Wait for a value.

        Raises:
            UnreadableError: if it cannot be unpickled.
            EndedError: if none will come.
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
        """Let go of all memory, but for what arrays in somebody's hands lie in, as the other side does, too."""
        self._lender = Lender()
        self._borrower = Borrower()
        self._by_value = False

    def shut_down(self) -> None:
        """End it for both sides; whoever waits in it is woken. From any thread."""
        self._channel.shut_down()

    def close(self) -> None:
        """Let go of the socket and of the memory, but for what arrays in somebody's hands lie in."""
        self._channel.close()
        self.reset()


class SharedValue:
    """A value that is encoded once and sent to several processes, which see the same memory until they write to it."""

    SEGMENT = 0  # no lender uses the number

    def __init__(self, encoded: Encoded) -> None:
        self.pickled, beside = _split(encoded)
        self.loan: Loan | None = None
        self.descriptors: list[int] = []
        if beside:
            self._store(beside)

    def _store(self, buffers: Sequence[Bytes]) -> None:
        lengths = tuple(buffer.nbytes for buffer in buffers)
        size = sum(lengths) + 64 * len(lengths)  # room enough for aligning each
        self.descriptors = [allocate(size)]
        self.loan = Loan(self.SEGMENT, size, lengths)
        memory = np.asarray(Mapping(self.descriptors[0], size))
        for place, buffer in zip(cut(memory, lengths), buffers, strict=True):
            place[:] = buffer

    @staticmethod
    def views(loan: Loan, descriptor: int) -> list[memoryview]:
        """The buffers of a shared value, in the process that it was sent to."""
        memory = np.asarray(Mapping(descriptor, loan.size, private=True))
        return [part.data for part in cut(memory, loan.lengths)]

    def close(self) -> None:
        """Let go of it."""
        close_all(self.descriptors)
        self.descriptors = []


def _split(encoded: Encoded) -> tuple[bytes | None, list[Bytes]]:
    """What goes through the socket, and what is put beside it."""
    if len(encoded.pickled) < BESIDE_MIN:
        return encoded.pickled, encoded.buffers
    return None, [np.frombuffer(encoded.pickled, np.uint8), *encoded.buffers]

"""Which elements are in the buffer of a shuffle, found from how many it has given: arithmetic, and no history.

A shuffle of ``size`` slots fills them with elements 0 to ``size - 1`` of its input. Then it draws slot ``d[0]`` and
gives what is there; that slot is the hole. From then on each step puts the next element of the input into the hole,
draws a slot, and gives what is there, which makes that slot the hole. So behind ``given`` elements

    element size + i is put into slot d[i],  for i from 0 to given - 2;  the hole is slot d[given - 1].

The draws ``d`` are of a stream that has any of them at once (``Stream.seek``). So what is in a slot follows from the
last draw before ``given - 1`` that is of this slot: if it is ``d[i]``, element ``size + i``, and if there is none, the
element that the slot was filled with. These draws are found by looking at blocks of them, the latest first, until each
slot has been seen, or all draws have been looked at. That is the coupon collector's problem: about
``size * (ln(size) + 0.6)`` draws on the average, however many elements have been given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.runtime.random.streams import Stream

_STEP = 1 << 15  # draws at a time, which stay in the processor's cache
_FIRST = 3  # times as many draws as slots are looked at before slots are told apart; they reach 95% of them
_BLOCK_MIN = 4096


class Buffer(NamedTuple):
    """What the slots hold, and which of them is the hole.

    Attributes:
        elements: per slot the number of its element in the input. That of the hole has been given.
        hole: its slot.
    """

    elements: npt.NDArray[np.int64]
    hole: int

    def rest(self) -> npt.NDArray[np.int64]:
        """The numbers of those that have not been given, by slot."""
        return np.delete(self.elements, self.hole)


def draw(stream: Stream, count: int, size: int) -> npt.NDArray[np.int64]:
    """The next ``count`` slots of ``size``."""
    return (stream.random(count) * size).astype(np.int64)


def buffer_behind(stream: Stream, given: int, size: int) -> Buffer:
    """The buffer of ``size`` slots behind ``given`` elements, at least 1, all of them drawn from ``stream``.

    The stream is left behind the draws that were made for them.
    """
    elements = np.full(size, -1, np.int64)
    written = given - 1
    start = max(0, written - max(_BLOCK_MIN, _FIRST * size))
    _write(elements, stream, start, written)
    missing = np.flatnonzero(elements < 0)
    while len(missing) and start:
        stop, start = start, max(0, start - max(_BLOCK_MIN, size))
        _write_missing(elements, stream, start, stop)
        missing = missing[elements[missing] < 0]
    elements[missing] = missing
    stream.seek(written)
    return Buffer(elements, int(draw(stream, 1, size)[0]))


def _write(elements: npt.NDArray[np.int64], stream: Stream, start: int, stop: int) -> None:
    """Put the elements into their slots that draws ``start`` to ``stop`` tell; later ones over earlier ones."""
    size = len(elements)
    stream.seek(start)
    for first in range(start, stop, _STEP):
        last = min(first + _STEP, stop)
        # Of equal slots NumPy keeps the last.
        elements[draw(stream, last - first, size)] = np.arange(size + first, size + last)


def _write_missing(elements: npt.NDArray[np.int64], stream: Stream, start: int, stop: int) -> None:
    """The same, but only into slots that are empty now."""
    size = len(elements)
    is_empty = elements < 0
    stream.seek(start)
    for first in range(start, stop, _STEP):
        slots = draw(stream, min(_STEP, stop - first), size)
        fresh = np.flatnonzero(is_empty[slots])
        elements[slots[fresh]] = fresh + (size + first)

"""Reconstruction of a shuffle buffer from the number of returned elements alone, without replaying the shuffle.

A shuffle of ``size`` slots fills them with elements 0 to ``size - 1`` of its input. Then it draws slot ``d[0]`` and
returns its element; that slot becomes the hole. Each further step puts the next input element into the hole, draws a
slot and returns its element; that slot becomes the new hole. So after ``given`` elements

    element size + i was put into slot d[i], for i from 0 to given - 2; the hole is slot d[given - 1].

The draws ``d`` come from a stream with random access (``Stream.seek``). The last draw of a slot before ``given - 1``
determines its content: if it is ``d[i]``, the slot holds element ``size + i``. If there is none, the slot holds its
initial element. The last draws are found by scanning blocks of draws backwards until each slot has been seen or no
draws are left. This is the coupon collector's problem: it takes about ``size * (ln(size) + 0.6)`` draws on average,
regardless of the number of returned elements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.runtime.random.streams import Stream

_STEP = 1 << 15  # draws per block; fits in the CPU cache
_FIRST = 3  # the first scan covers this many draws per slot, which reach 95% of the slots
_BLOCK_MIN = 4096


class Buffer(NamedTuple):
    """Buffer contents: the elements of the slots, and the hole.

    Attributes:
        elements: for each slot, the input position of its element. The hole's element has been returned.
        hole: the slot of the hole.
    """

    elements: npt.NDArray[np.int64]
    hole: int

    def rest(self) -> npt.NDArray[np.int64]:
        """Return the positions of the elements that have not been returned, by slot."""
        return np.delete(self.elements, self.hole)


def draw(stream: Stream, count: int, size: int) -> npt.NDArray[np.int64]:
    """Draw the next ``count`` slots of ``size``."""
    return (stream.random(count) * size).astype(np.int64)


def buffer_behind(stream: Stream, given: int, size: int) -> Buffer:
    """Return the buffer of ``size`` slots after ``given`` elements, at least 1, drawn from ``stream``.

    The stream is left after the draws of these elements.
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
    """Write the elements of draws ``start`` to ``stop`` into their slots; later draws overwrite earlier ones."""
    size = len(elements)
    stream.seek(start)
    for first in range(start, stop, _STEP):
        last = min(first + _STEP, stop)
        # For repeated slots, NumPy keeps the last value.
        elements[draw(stream, last - first, size)] = np.arange(size + first, size + last)


def _write_missing(elements: npt.NDArray[np.int64], stream: Stream, start: int, stop: int) -> None:
    """Write the elements of draws ``start`` to ``stop`` into slots that are still empty."""
    size = len(elements)
    is_empty = elements < 0
    stream.seek(start)
    for first in range(start, stop, _STEP):
        slots = draw(stream, min(_STEP, stop - first), size)
        fresh = np.flatnonzero(is_empty[slots])
        elements[slots[fresh]] = fresh + (size + first)

"""Packed varints to int64, for all records of a batch at once.

A varint holds seven bits in each byte, the lowest first; the top bit of a byte says that another one follows. So a byte
below 128 ends a value, and the next value begins behind it. From there as many bytes as the longest value has, rounded
up to 2, 4 or 8, are loaded as one integer; what lies behind the value is cleared, and neighbouring groups of bits are
joined, first to 14 bits, then to 28 and 56. Of values of nine and ten bytes, as negative numbers are, the last two
bytes are added afterwards.

Two choices are for speed. Integers are loaded at every byte, also where no value begins, and those that are needed are
taken then: NumPy copies what lies side by side several times faster than it gathers integers that are not aligned. And
values are computed in blocks that stay in a core's cache.

Nobody's bytes are trusted: none of them says where to look or how much to allocate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.io.example.problem import Problem

__all__ = ["unpack_varints"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PADDING = bytes(8)  # how far one may look past the last byte
_BLOCK = 1 << 14  # values; a few arrays of them fit into 1 MiB
_NONE = np.zeros(0, np.int64)

# Each step joins the groups in the lower and the upper half of 2, 4 and 8 bytes. The lower ones are lifted to the upper
# ones, by adding them a few times more; that leaves 1, 3 and 7 empty bits below them.
_JOINS = ((0x00FF00FF00FF00FF, 1), (0x0000FFFF0000FFFF, 3), (0x00000000FFFFFFFF, 15))


def unpack_varints(pieces: Sequence[bytes]) -> tuple[Ints, Ints]:
    """How many values each piece holds, and the values of all. No value may cross from one piece into the next.

    Raises:
        Problem: for the first piece whose last value is cut off, else for the first that holds a value of more than
            ten bytes.

    >>> unpack_varints([bytes([5, 0x80, 1]), b"", bytes([7])])
    (array([2, 0, 1]), array([  5, 128,   7]))
    """
    data = b"".join([b"\0", *pieces, _PADDING])  # with an end in front, each value begins behind an end
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    last = sizes.cumsum()  # each piece's last byte; without one, that of the piece before
    octets = np.frombuffer(data, np.uint8)
    more = octets[: -len(_PADDING)] > 0x7F
    if not more.any():
        return sizes, octets[1 : len(more)].astype(np.int64)
    torn = more[last]
    if torn.any():
        raise Problem(int(torn.argmax()), "is damaged: its last int64 is cut off")
    ends = np.flatnonzero(~more)
    longest = _longest(more, ends)
    if longest > 10:
        end = ends[1:][np.diff(ends) > 10][0]
        raise Problem(int(last.searchsorted(end)), "is damaged: an int64 has more than 10 bytes")
    values = np.empty(len(ends) - 1, np.int64)
    for at in range(0, len(values), _BLOCK):
        values[at : at + _BLOCK] = _values(data, ends[at : at + _BLOCK + 1], longest)
    counts = ends.searchsorted(last, "right") - 1
    counts[1:] -= counts[:-1].copy()
    return counts, values


def _longest(more: Bools, ends: Ints) -> int:
    """How many bytes the longest value has; 2 also for one, and 4 also for three, which takes less work to find out."""
    two = more[1:] & more[:-1]
    if not two.any():
        return 2
    four = two[2:] & two[:-2]
    return int((ends[1:] - ends[:-1]).max()) if four.any() else 4


def _values(data: bytes, ends: Ints, longest: int) -> npt.NDArray[np.unsignedinteger]:
    """The values between the ends, of at most ``longest`` bytes."""
    width = 2 if longest <= 2 else 4 if longest <= 4 else 8
    unused = 64 - 8 * width  # bits of what is written below for eight bytes
    start = int(ends[0]) + 1
    before = ends[:-1] - ends[0] if start > 1 else ends[:-1]
    everywhere = np.ndarray(int(before[-1]) + 1, f"<u{width}", data, start, (1,))
    values = everywhere.copy().take(before, mode="wrap")  # the fastest mode; no position is out of bounds
    if width == 2:
        upper = values >> 8
        upper *= values & 0x80  # shifts it by seven, or clears what is the next value's
        values &= 0x7F
        values |= upper
        return values
    part = values | (0x7F7F7F7F7F7F7F7F >> unused)
    above = part + 1  # carries into the top bit of the last byte; is 0 where all eight bytes go on
    long = np.flatnonzero(above == 0) if longest > 8 else _NONE
    part ^= above
    values &= part
    values &= 0x7F7F7F7F7F7F7F7F >> unused
    for lower, factor in _JOINS[: width.bit_length() - 1]:
        np.bitwise_and(values, lower >> unused, out=part)
        part *= factor
        values += part
    values >>= width - 1
    if len(long):
        octets = np.frombuffer(data, np.uint8, offset=start + 8)
        ninth, tenth = octets[before[long]], octets[before[long] + 1]
        values[long] |= (ninth & (tenth << 7 | 0x7F)).astype(np.uint64) << 56
    return values

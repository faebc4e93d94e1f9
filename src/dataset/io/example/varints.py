"""Decoder of packed varints to int64, for all records of a batch at once.

A varint holds seven bits per byte, lowest first; the top bit of a byte says that another byte follows. So a byte below
128 ends a value, and the next value begins after it. At each start, the size of the longest value, rounded up to 2, 4
or 8 bytes, is loaded as one integer. The bits after the value are cleared, and adjacent groups of bits are joined,
first to 14 bits, then to 28 and 56. For values of nine and ten bytes, such as negative numbers, the last two bytes are
added afterwards.

Two choices are for speed. Integers are loaded at every byte, even if no value begins there, and the needed ones are
selected afterwards: NumPy copies contiguous data several times faster than it gathers unaligned integers. And values
are computed in blocks that stay in a core's cache.

The input is not trusted: no byte determines an address or the size of an allocation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.io.example.problem import Problem

__all__ = ["unpack_varints"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PADDING = bytes(8)  # loads may extend this far past the last byte
_BLOCK = 1 << 14  # values; a few arrays of this size fit into 1 MiB
_NONE = np.zeros(0, np.int64)

# Each step joins the groups in the lower and the upper half of 2, 4 and 8 bytes. The lower group is shifted up to the
# upper one by adding a multiple of it; this leaves 1, 3 and 7 empty bits below.
_JOINS = ((0x00FF00FF00FF00FF, 1), (0x0000FFFF0000FFFF, 3), (0x00000000FFFFFFFF, 15))


def unpack_varints(pieces: Sequence[bytes]) -> tuple[Ints, Ints]:
    """Return the number of values in each piece, and all values. A value must not extend into the next piece.

    Raises:
        Problem: for the first piece whose last value is truncated, else for the first with a value of more than ten
            bytes.

    >>> unpack_varints([bytes([5, 0x80, 1]), b"", bytes([7])])
    (array([2, 0, 1]), array([  5, 128,   7]))
    """
    data = b"".join([b"\0", *pieces, _PADDING])  # the byte in front is an end, so each value follows an end
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    last = sizes.cumsum()  # the last byte of each piece, or of the piece before if it is empty
    octets = np.frombuffer(data, np.uint8)
    more = octets[: -len(_PADDING)] > 0x7F
    if not more.any():
        return sizes, octets[1 : len(more)].astype(np.int64)
    torn = more[last]
    if torn.any():
        raise Problem(int(torn.argmax()), "is damaged: its last int64 is truncated")
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
    """Return the size of the longest value, or an upper bound: 2 for 1 or 2 bytes, 4 for 3 or 4, which is cheaper."""
    two = more[1:] & more[:-1]
    if not two.any():
        return 2
    four = two[2:] & two[:-2]
    return int((ends[1:] - ends[:-1]).max()) if four.any() else 4


def _values(data: bytes, ends: Ints, longest: int) -> npt.NDArray[np.unsignedinteger]:
    """Return the values between the ends, of at most ``longest`` bytes."""
    width = 2 if longest <= 2 else 4 if longest <= 4 else 8
    unused = 64 - 8 * width  # unused bits of the eight-byte constants below
    start = int(ends[0]) + 1
    before = ends[:-1] - ends[0] if start > 1 else ends[:-1]
    everywhere = np.ndarray(int(before[-1]) + 1, f"<u{width}", data, start, (1,))
    values = everywhere.copy().take(before, mode="wrap")  # the fastest mode; no position is out of bounds
    if width == 2:
        upper = values >> 8
        upper *= values & 0x80  # shifts by seven, or clears bits of the next value
        values &= 0x7F
        values |= upper
        return values
    part = values | (0x7F7F7F7F7F7F7F7F >> unused)
    above = part + 1  # carries into the top bit of the last byte; 0 if all eight bytes continue
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

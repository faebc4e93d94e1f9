"""Best-fit-decreasing bin packing: which row each sequence of a window goes to.

The sequences are placed from the longest to the shortest, each into the row with the least room that suffices (D. S.
Johnson, Near-Optimal Bin Packing Algorithms, MIT 1973). The rows that still have room are kept in one sorted list of
integers, room and row number, so that a sequence costs one binary search.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt


def best_fit_decreasing(
    lengths: npt.NDArray[np.int64], capacity: int, sequences_max: int | None
) -> npt.NDArray[np.int64]:
    """Return the row of each sequence. Rows are numbered in the order of their first sequences.

    Args:
        lengths: from 1 to ``capacity`` each.
        capacity: the length of a row.
        sequences_max: the maximum number of sequences in a row.
    """
    count = len(lengths)
    order = np.argsort(-lengths, kind="stable")
    bits = count.bit_length()
    row_mask = (1 << bits) - 1
    open_rows: list[int] = []  # room << bits | row, ascending
    left = [count if sequences_max is None else sequences_max] * count  # sequences that still may go into a row
    placed: list[int] = []
    rows = 0
    for length in lengths[order].tolist():
        found = bisect_left(open_rows, length << bits)
        if found < len(open_rows):
            entry = open_rows.pop(found)
            row, room = entry & row_mask, (entry >> bits) - length
        else:
            row, room = rows, capacity - length
            rows += 1
        placed.append(row)
        left[row] -= 1
        if room and left[row]:
            insort(open_rows, room << bits | row)
    found_rows = np.empty(count, np.int64)
    found_rows[order] = placed
    _, first = np.unique(found_rows, return_index=True)
    numbers = np.empty(rows, np.int64)
    numbers[np.argsort(first)] = np.arange(rows)
    return numbers[found_rows]

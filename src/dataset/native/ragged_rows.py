"""Copies of rows of different lengths: padding and gathering, by the native kernel (ragged.c) or NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.native.library import address_of, kernels

Array = npt.NDArray[Any]

_LONG = 64
"""From this row length on, NumPy copies row by row in less time than by the position of each value."""


def copy_rows(values: Array, splits: Array, out: Array, indices: npt.NDArray[np.intp] | None = None) -> None:
    """Copy rows to ``out``. Row i is ``values[splits[i]:splits[i + 1]]``.

    Args:
        values: the values of all rows.
        splits: where each row begins, and the end of the last.
        out: where to store the rows. It is C-contiguous.
        indices: the rows to copy one after another. Default: each row is copied to the beginning of ``out[i]``.

    Raises:
        ValueError: a row does not fit, as splits were overwritten after they had been checked.
    """
    native = kernels()
    if native is not None and values.dtype == out.dtype and values.flags.c_contiguous and not values.dtype.hasobject:
        splits = np.ascontiguousarray(splits, np.int64)
        size = values.dtype.itemsize * math.prod(values.shape[1:])
        count, width = (len(splits) - 1, out.shape[1]) if indices is None else (len(indices), -1)
        chosen = None if indices is None else address_of(indices := np.ascontiguousarray(indices, np.int64))
        places = address_of(values), len(values), address_of(splits), chosen, count, address_of(out), len(out)
        copied = native.copy_rows(*places, width, size)
        if copied < count:
            row = copied if indices is None else int(indices[copied])
            begin, end = splits[row : row + 2].tolist()
            raise ValueError(f"ragged row {row} is from {begin} to {end} of {len(values)} values, or exceeds its place")
    else:
        copy_by_numpy(values, splits, out, indices)


def copy_by_numpy(values: Array, splits: Array, out: Array, indices: npt.NDArray[np.intp] | None = None) -> None:
    """Do the same as ``copy_rows``, with NumPy. The rows must fit."""
    if indices is None:
        lengths, width = splits[1:] - splits[:-1], out.shape[1]
        if width < _LONG:
            out[np.arange(width) < lengths[:, None]] = values[splits[0] : splits[-1]]
            return
        for row, (a, b) in zip(out, itertools.pairwise(splits.tolist()), strict=True):
            row[: b - a] = values[a:b]
        return
    starts, stops = splits[indices], splits[1:][indices]
    if len(out) > _LONG * len(indices):
        np.concatenate([values[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)], out=out)
        return
    lengths = stops - starts
    places = np.repeat(starts - (lengths.cumsum() - lengths), lengths)
    out[...] = values[places + np.arange(len(out))]

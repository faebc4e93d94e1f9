"""Helpers for tests of CSV files."""

import numpy as np

from dataset.io.csv.layout import layout_of
from support.block_files import columns_of


def layout(*defaults, **keywords):
    return layout_of("test", list(defaults), **keywords)


def outcomes(file, n=1000):
    """Return the rows of a file as tuples, and the text of the error for each row that failed."""
    found = []
    for columns in columns_of(file, n):
        if isinstance(columns, Exception):
            found.append(f"{type(columns).__name__}: {columns}")
        else:
            found.extend(zip(*map(np.ndarray.tolist, columns), strict=True))
    return found


def same(a, b):
    """Return whether rows are equal, including NaN and the sign of zero."""
    return repr(a) == repr(b)


I32, I64, F32, F64 = map(np.dtype, (np.int32, np.int64, np.float32, np.float64))

"""Helpers for tests of CSV files."""

import numpy as np

from dataset.io.csv.layout import layout_of


def layout(*defaults, **keywords):
    return layout_of("test", list(defaults), **keywords)


def outcomes(file, n=1000):
    """Return the rows of a file as tuples, and the text of the error for each row that failed."""
    found = []
    while True:
        try:
            columns = file.columns(n)
        except (ValueError, OSError) as error:
            found.append(f"{type(error).__name__}: {error}")
            continue
        if columns is None:
            return found
        assert 1 <= len(columns[0]) <= n
        found += zip(*(column.tolist() for column in columns), strict=True)


def same(a, b):
    """Return whether rows are equal, including NaN and the sign of zero."""
    return repr(a) == repr(b)


I32, I64, F32, F64 = map(np.dtype, (np.int32, np.int64, np.float32, np.float64))

"""What the tests of CSV files share."""

import numpy as np

from dataset.io.csv.layout import layout_of


def layout(*defaults, **keywords):
    return layout_of("test", list(defaults), **keywords)


def outcomes(file, n=1000):
    """The rows of a file as tuples, with the text of an error in the place of a row that failed."""
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
    """Whether rows are equal, not-a-number and the sign of zero included."""
    return repr(a) == repr(b)


I32, I64, F32, F64 = map(np.dtype, (np.int32, np.int64, np.float32, np.float64))

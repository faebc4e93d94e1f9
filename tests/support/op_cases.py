"""Small things that the tests of many ops need."""

import numpy as np

from dataset import Dataset


def fail_at(*bad):
    """A function for map that returns its argument, but raises ValueError for these."""

    def check(x):
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return check


def ints(*values):
    """The elements of a dataset of int64 scalars."""
    return [np.int64(value) for value in values]


def rows(stop=4):
    """Vectors of 1, 2, 3 ... elements, as many as their values say."""
    return Dataset.range(1, stop).map(lambda n: np.full(n, n))

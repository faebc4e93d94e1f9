"""Combinations of parameters: a part of all of them, in which every value still occurs."""

import itertools


def diagonals(step, *dimensions):
    """Return every ``step``-th combination of the values, so that each value meets the others in turn.

    Combinations lie on diagonals by the sum of their indices. With three dimensions of at least ``step`` values, every
    pair of values occurs.

    >>> diagonals(2, "abc", [1, 2])
    [('a', 1), ('b', 2), ('c', 1)]
    """
    places = itertools.product(*(list(enumerate(values)) for values in dimensions))
    return [tuple(value for _, value in chosen) for chosen in places if sum(i for i, _ in chosen) % step == 0]

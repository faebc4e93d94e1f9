"""Tests of concatenate against tf.data's."""

import numpy as np
from compare import programs, refused, same

SOURCES = programs(
    empty="range(0)",
    three="range(3)",
    endless="range(2).repeat()",
    unknown="range(9).filter(lambda x: x % 2 == 0)",
    failing="failing(0, 3, size=4)",
)
test_one_after_the_other = same("first.concatenate(second)", first=SOURCES, second=SOURCES, limit=12, spec="compatible")


def rows(lib, *shape):
    return lib.from_tensor_slices(np.zeros(shape))


def cells(lib, place, size):
    return lib.from_tensors(lib.sparse([[place]], np.array([5.0]), [size]))


def named(lib, *keys):
    return lib.zip({key: lib.range(2) for key in keys})


test_specs_are_merged = same(
    {
        "equal shapes": "rows(2, 3).concatenate(rows(2, 3))",
        "another size": "rows(2, 3).concatenate(rows(2, 4))",
        "another first size": "rows(2, 3, 5).concatenate(rows(2, 4, 5))",
        "another rank": "rows(2, 3).concatenate(rows(2, 3, 4))",
        "a scalar and a vector": "rows(2).concatenate(rows(2, 3))",
        "unknown and known": "range(4).batch(2).concatenate(range(4).batch(2, True))",
        "dicts in another order": "named('a', 'b').concatenate(named('b', 'a'))",
        "tuples": "range(2).enumerate().concatenate(range(2).enumerate(5))",
        "ragged": "from_tensors(ragged([[1], [2, 3]])).concatenate(from_tensors(ragged([[4, 5], [6], []])))",
        "sparse": "cells(1, 3).concatenate(cells(0, 4))",
        "none": "from_tensors((int64(1), None)).concatenate(from_tensors((int64(2), None)))",
    }
)
REFUSED = {
    "dtypes": "range(2).concatenate(range(2, output_type=np.int32))",
    "numbers and text": "range(2).concatenate(from_tensors('a'))",
    "a tuple": "range(2).concatenate(range(2).enumerate())",
    "a tuple of one": "range(2).concatenate(zip((range(2),)))",
    "tuples of other sizes": "range(2).enumerate().concatenate(zip(*[range(2)] * 3))",
    "a dict": "range(2).concatenate(named('a'))",
    "other keys": "named('b').concatenate(named('a'))",
    "more keys": "named('a').concatenate(named('a', 'b'))",
    "a tuple and a dict": "range(2).enumerate().concatenate(named('a', 'b'))",
    "dense and sparse": "rows(2, 3).concatenate(cells(1, 3))",
    "a list": "range(2).concatenate([1, 2])",
    "a number": "range(2).concatenate(3)",
    "none": "range(2).concatenate(None)",
}
test_what_is_refused = refused({TypeError: REFUSED})

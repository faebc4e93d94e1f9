"""Tests of concatenate against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

SOURCES = {
    "empty": lambda lib: lib.range(0),
    "three": lambda lib: lib.range(3),
    "endless": lambda lib: lib.range(2).repeat(),
    "unknown": lambda lib: lib.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 0, 3, size=4),
}
test_one_after_the_other = same(
    lambda lib, first, second: first(lib).concatenate(second(lib)), SOURCES, SOURCES, limit=12, spec="compatible"
)


def rows(lib, *shape):
    return lib.from_tensor_slices(np.zeros(shape))


def sparse(lib, place, size):
    return lib.from_tensors(lib.sparse([[place]], np.array([5.0]), [size]))


def chained(lib, pair):
    first, second = pair(lib)
    return first.concatenate(second)


SPECS = {
    "equal shapes": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 3)),
    "another size": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 4)),
    "another first size": lambda lib: (rows(lib, 2, 3, 5), rows(lib, 2, 4, 5)),
    "another rank": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 3, 4)),
    "a scalar and a vector": lambda lib: (rows(lib, 2), rows(lib, 2, 3)),
    "unknown and known": lambda lib: (lib.range(4).batch(2), lib.range(4).batch(2, True)),
    "dicts in another order": lambda lib: (
        lib.from_tensors({"a": np.zeros(2), "b": "x"}),
        lib.from_tensors({"b": "y", "a": np.zeros(3)}),
    ),
    "tuples": lambda lib: (lib.range(2).enumerate(), lib.range(2).enumerate(5)),
    "ragged": lambda lib: [lib.from_tensors(lib.ragged(rows)) for rows in ([[1], [2, 3]], [[4, 5], [6], []])],
    "sparse": lambda lib: (sparse(lib, 1, 3), sparse(lib, 0, 4)),
    "none": lambda lib: [lib.from_tensors((np.int64(number), None)) for number in (1, 2)],
}
test_specs_are_merged = same(chained, SPECS)


def named(lib, *keys):
    return lib.zip({key: lib.range(2) for key in keys})


REFUSED = {
    "dtypes": lambda lib: (lib.range(2), lib.range(2, output_type=np.int32)),
    "numbers and text": lambda lib: (lib.range(2), lib.from_tensors("a")),
    "a tuple": lambda lib: (lib.range(2), lib.range(2).enumerate()),
    "a tuple of one": lambda lib: (lib.range(2), lib.zip((lib.range(2),))),
    "tuples of other sizes": lambda lib: (lib.range(2).enumerate(), lib.zip(*[lib.range(2)] * 3)),
    "a dict": lambda lib: (lib.range(2), named(lib, "a")),
    "other keys": lambda lib: (named(lib, "b"), named(lib, "a")),
    "more keys": lambda lib: (named(lib, "a"), named(lib, "a", "b")),
    "a tuple and a dict": lambda lib: (lib.range(2).enumerate(), named(lib, "a", "b")),
    "dense and sparse": lambda lib: (rows(lib, 2, 3), sparse(lib, 1, 3)),
    "a list": lambda lib: (lib.range(2), [1, 2]),
    "a number": lambda lib: (lib.range(2), 3),
    "none": lambda lib: (lib.range(2), None),
}
test_what_is_refused = refused({TypeError: REFUSED}, chained)

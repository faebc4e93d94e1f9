"""Tests of window against tf.data's."""

import itertools

import numpy as np
from cases import failing
from compare import in_both, refused, same

SHAPES = [{"size": size} for size in (1, 3, 9)]
SHAPES += [{"size": size, "shift": shift} for size, shift in ((3, 1), (3, 2), (2, 3), (2, 7), (2, 20))]
SHAPES += [{"size": 3, "stride": 2}, {"size": 3, "shift": 1, "stride": 2}, {"size": 2, "shift": 5, "stride": 3}]
SHAPES += [{"size": 2, "stride": 9}]

SOURCES = {
    "range": lambda lib: lib.range(7),
    "one element": lambda lib: lib.range(1),
    "empty": lambda lib: lib.range(0),
    "endless": lambda lib: lib.range(3).repeat(),
    "unknown": lambda lib: lib.range(13).filter(lambda x: x % 2 == 0),
    "arrays": lambda lib: lib.range(7).batch(2),
    "empty arrays": lambda lib: lib.from_tensor_slices(np.zeros((5, 0), np.int64)),
    "texts": lambda lib: lib.from_tensor_slices(np.array([b"a", b"b\0", b""], object)),
    "pairs": lambda lib: lib.zip(lib.range(5), lib.range(5, 9)),
    "dicts": lambda lib: lib.zip({"b": lib.range(4), "a": (lib.range(5).batch(2),)}),
}


test_windows = same(
    lambda lib, source, shape, drop: source(lib).window(**shape, drop_remainder=drop),
    SOURCES,
    SHAPES,
    [False, True],
    step=4,
    limit=8,
)


def test_cardinality_whatever_the_numbers():
    table = list(itertools.product(range(12), range(1, 5), range(1, 7), range(1, 4), [False, True]))
    ours, theirs = in_both(lambda lib: [int(lib.range(n).window(*shape).cardinality()) for n, *shape in table])
    assert dict(zip(table, ours, strict=True)) == dict(zip(table, theirs, strict=True))


test_elements_that_fail_take_each_of_their_windows_with_them = same(
    lambda lib, shape, bad, drop: failing(lib, *bad).window(**shape, drop_remainder=drop),
    SHAPES,
    [(0,), (1,), (3,), (6,), (1, 2), (0, 6), (0, 1, 2, 3, 4, 5, 6)],
    [False, True],
    step=4,
    spec=lambda shape, bad, drop: "any" if len(bad) == 7 else "equal",
)
NO_NUMBERS = [{"size": 2.0}, {"size": "2"}, {"size": None}, {"shift": 2.0}, {"drop_remainder": 1}]
test_what_is_refused = refused(
    {
        ValueError: [{"size": 0}, {"size": -1}, {"shift": 0}, {"shift": -2}, {"stride": 0}],
        (TypeError, ValueError): NO_NUMBERS,
    },
    lambda lib, arguments: lib.range(5).window(**{"size": 2, **arguments}),
)

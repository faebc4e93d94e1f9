"""Tests of window against tf.data's."""

import itertools

import numpy as np
from compare import in_both, programs, refused, same

SHAPES = [{"size": size} for size in (1, 3, 9)]
SHAPES += [{"size": size, "shift": shift} for size, shift in ((3, 1), (3, 2), (2, 3), (2, 7), (2, 20))]
SHAPES += [{"size": 3, "stride": 2}, {"size": 3, "shift": 1, "stride": 2}, {"size": 2, "shift": 5, "stride": 3}]
SHAPES += [{"size": 2, "stride": 9}]
TEXTS = np.array([b"a", b"b\0", b""], object)
SOURCES = programs(
    range="range(7)",
    one_element="range(1)",
    empty="range(0)",
    endless="range(3).repeat()",
    unknown="range(13).filter(lambda x: x % 2 == 0)",
    arrays="range(7).batch(2)",
    empty_arrays="from_tensor_slices(np.zeros((5, 0), np.int64))",
    texts="from_tensor_slices(TEXTS)",
    pairs="zip(range(5), range(5, 9))",
    dicts="zip({'b': range(4), 'a': (range(5).batch(2),)})",
)
test_windows = same(
    "source.window(**shape, drop_remainder=drop)",
    source=SOURCES,
    shape=SHAPES,
    drop=[False, True],
    step=4,
    limit=8,
)


def test_cardinality_whatever_the_numbers():
    table = list(itertools.product(range(12), range(1, 5), range(1, 7), range(1, 4), [False, True]))
    ours, theirs = in_both(lambda lib: [int(lib.range(n).window(*shape).cardinality()) for n, *shape in table])
    assert dict(zip(table, ours, strict=True)) == dict(zip(table, theirs, strict=True))


test_elements_that_fail_take_each_of_their_windows_with_them = same(
    "failing(*bad).window(**shape, drop_remainder=drop)",
    shape=SHAPES,
    bad=[(0,), (1,), (3,), (6,), (1, 2), (0, 6), (0, 1, 2, 3, 4, 5, 6)],
    drop=[False, True],
    step=4,
    spec=lambda shape, bad, drop: "any" if len(bad) == 7 else "equal",
)
NO_NUMBERS = [{"size": 2.0}, {"size": "2"}, {"size": None}, {"shift": 2.0}, {"drop_remainder": 1}]
WRONG_NUMBERS = [{"size": 0}, {"size": -1}, {"shift": 0}, {"shift": -2}, {"stride": 0}]
test_what_is_refused = refused(
    {ValueError: WRONG_NUMBERS, (TypeError, ValueError): NO_NUMBERS}, "range(5).window(**{'size': 2, **case})"
)

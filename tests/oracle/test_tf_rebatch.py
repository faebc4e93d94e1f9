"""Tests of rebatch against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

from support.libraries import arrays, counting

SIZES = [1, 2, 3, 4, 20, [2], [3, 3], [2, 3], [2, 0, 1], [0, 2], [0, 0, 3], [4, 0, 0], [0, 20], (1, 2)]
SIZES += [np.array([5, 1])]
SPLITS, TWICE = [0, 2, 3, 3], [[0, 2, 3, 3], [0, 1, 3, 3]]

SOURCES = {
    "10 by 4": lambda lib: lib.range(10).batch(4),
    "8 by 4": lambda lib: lib.range(8).batch(4, drop_remainder=True),
    "6 by 1": lambda lib: lib.range(6).batch(1),
    "5 at once": lambda lib: lib.from_tensors(np.arange(10).reshape(5, 2)),
    "nothing": lambda lib: lib.range(0).batch(3),
    "no rows": lambda lib: lib.from_tensors(np.zeros((0, 3))),
    "batches of different sizes": lambda lib: counting(lib, 5),
    "no rows here and there": lambda lib: arrays(lib, [[], [1, 2, 3], [], [], [4], []], (None,)),
    "text": lambda lib: lib.from_tensors([b"a\0", b"", b"b"]).repeat(2),
    "two components": lambda lib: lib.zip(
        {"b": lib.range(7).batch(3), "a": (lib.range(7).batch(3), lib.range(7).batch(3))}
    ),
    "batches of batches": lambda lib: lib.range(9).batch(3).batch(2),
    "beside None": lambda lib: lib.from_tensors((np.arange(5), None)).repeat(2),
    "ragged": lambda lib: lib.from_tensors(lib.from_splits([SPLITS], np.arange(3))).repeat(2),
    "ragged, int32": lambda lib: lib.from_tensors(lib.from_splits([SPLITS], np.arange(3), np.int32)).repeat(2),
    "ragged twice": lambda lib: lib.from_tensors(lib.from_splits(TWICE, np.arange(3.0))).repeat(2),
    "ragged batches": lambda lib: counting(lib, 7).ragged_batch(3),
    "padded batches": lambda lib: counting(lib, 7, shape=(None,)).padded_batch(3, [7]),
    "scalars known late": lambda lib: arrays(lib, [3, [1, 2, 3]], None),
}


test_sizes = same(
    lambda lib, source, size, drop: source(lib).rebatch(size, drop), SOURCES, SIZES, [False, True], step=5
)
# tf.data raises errors for empty batches of these.
INNER = np.arange(6.0).reshape(3, 2)
test_ragged_tensors_with_inner_dimensions = same(
    lambda lib, size: lib.from_tensors(lib.from_splits(TWICE, INNER)).repeat(2).rebatch(size), [1, 2, 4, 20]
)
# tf.data raises errors for empty sparse batches.
test_sparse = same(
    lambda lib, size, indices: (
        lib.from_tensors(lib.sparse(indices, np.arange(len(indices)) + 1.5, [3, 2])).repeat(3).rebatch(size)
    ),
    [1, 2, 3, 4, 20, [2, 1], [3, 3]],
    [[[0, 0], [1, 1]], [[2, 1]], [[0, 0], [0, 1], [2, 0]], []],
)
test_failures = same(
    lambda lib, size, bad: lib.unfused(failing(lib, *bad, size=10)).batch(2).rebatch(size),
    [1, 2, 3, 4, [3, 0], [3, 1]],
    [(0,), (4,), (9,), (2, 3), (2, 5)],
    fails=True,
)
LENGTHS = [list(map(np.arange, lengths)) for lengths in ((2, 3, 4, 1, 1), (2, 2, 4, 2, 1))]
test_components_of_different_lengths_fail_in_their_place = same(
    lambda lib, size: lib.zip(*(arrays(lib, rows, (None,)) for rows in LENGTHS)).rebatch(size),
    [1, 2, 3, [3, 1], [0, 4]],
    fails=True,
)
SHAPES = [(2, 2), (4, 3), (3, 3), (1, 1), (1, 2)]
test_rows_of_different_shapes_fail_in_their_batch = same(
    lambda lib, size: arrays(lib, map(np.ones, SHAPES), (None, None)).rebatch(size),
    [1, 2, 3, 5, [3, 1], [3, 0, 2]],
    fails=lambda size: size != 1,
)
test_behind_endless_data = same(lambda lib, size: lib.range(4).batch(4).repeat().rebatch(size), [3, [3, 0]], limit=5)
REFUSED = {
    "scalars": lambda lib: lib.range(4).rebatch(2),
    "a scalar component": lambda lib: lib.zip(lib.range(4), lib.range(4).batch(1)).rebatch(2),
    "rows known to differ": lambda lib: lib.from_tensors((np.zeros(2), np.zeros(3))).rebatch(2),
    "drop_remainder no bool": lambda lib: lib.range(4).batch(2).rebatch(2, 1),
}
test_what_is_refused = refused({(TypeError, ValueError): REFUSED})
test_what_is_no_size = refused(
    {(TypeError, ValueError): [[], 2.0, [2, 1.0], "2", None, [[2]]]},
    lambda lib, size: lib.range(4).batch(2).rebatch(size),
)

"""Tests of rebatch against tf.data's."""

import numpy as np
from compare import programs, refused, same

SIZES = [1, 2, 3, 4, 20, [2], [3, 3], [2, 3], [2, 0, 1], [0, 2], [0, 0, 3], [4, 0, 0], [0, 20], (1, 2)]
SIZES += [np.array([5, 1])]
SPLITS, TWICE = [0, 2, 3, 3], [[0, 2, 3, 3], [0, 1, 3, 3]]
SOURCES = programs(
    ten_by_4="range(10).batch(4)",
    eight_by_4="range(8).batch(4, drop_remainder=True)",
    six_by_1="range(6).batch(1)",
    five_at_once="from_tensors(np.arange(10).reshape(5, 2))",
    nothing="range(0).batch(3)",
    no_rows="from_tensors(np.zeros((0, 3)))",
    batches_of_different_sizes="counting(5)",
    no_rows_here_and_there="arrays([[], [1, 2, 3], [], [], [4], []], (None,))",
    text="from_tensors([b'a\\0', b'', b'b']).repeat(2)",
    components="zip({'b': range(7).batch(3), 'a': (range(7).batch(3), range(7).batch(3))})",
    batches_of_batches="range(9).batch(3).batch(2)",
    beside_none="from_tensors((np.arange(5), None)).repeat(2)",
    ragged="from_tensors(from_splits([SPLITS], np.arange(3))).repeat(2)",
    ragged_int32="from_tensors(from_splits([SPLITS], np.arange(3), np.int32)).repeat(2)",
    ragged_twice="from_tensors(from_splits(TWICE, np.arange(3.0))).repeat(2)",
    ragged_batches="counting(7).ragged_batch(3)",
    padded_batches="counting(7, shape=(None,)).padded_batch(3, [7])",
    scalars_known_late="arrays([3, [1, 2, 3]], None)",
)
test_sizes = same("source.rebatch(size, drop)", source=SOURCES, size=SIZES, drop=[False, True], step=5)
# tf.data raises errors for empty batches of these.
INNER = np.arange(6.0).reshape(3, 2)
test_ragged_tensors_with_inner_dimensions = same(
    "from_tensors(from_splits(TWICE, INNER)).repeat(2).rebatch(size)", size=[1, 2, 4, 20]
)
test_sparse = same(
    "from_tensors(sparse(indices, np.arange(len(indices)) + 1.5, [3, 2])).repeat(3).rebatch(size)",
    size=[1, 2, 3, 4, 20, [2, 1], [3, 3]],
    indices=[[[0, 0], [1, 1]], [[2, 1]], [[0, 0], [0, 1], [2, 0]], []],
)
test_failures = same(
    "unfused(failing(*bad, size=10)).batch(2).rebatch(size)",
    size=[1, 2, 3, 4, [3, 0], [3, 1]],
    bad=[(0,), (4,), (9,), (2, 3), (2, 5)],
    fails=True,
)
LENGTHS = [list(map(np.arange, lengths)) for lengths in ((2, 3, 4, 1, 1), (2, 2, 4, 2, 1))]
test_components_of_different_lengths_fail_in_their_place = same(
    "zip(*(arrays(rows, (None,)) for rows in LENGTHS)).rebatch(size)", size=[1, 2, 3, [3, 1], [0, 4]], fails=True
)
SHAPES = list(map(np.ones, [(2, 2), (4, 3), (3, 3), (1, 1), (1, 2)]))
test_rows_of_different_shapes_fail_in_their_batch = same(
    "arrays(SHAPES, (None, None)).rebatch(size)",
    size=[1, 2, 3, 5, [3, 1], [3, 0, 2]],
    fails=lambda size: size != 1,
)
test_behind_endless_data = same("range(4).batch(4).repeat().rebatch(size)", size=[3, [3, 0]], limit=5)
REFUSED = ["range(4)", "zip(range(4), range(4).batch(1))", "from_tensors((np.zeros(2), np.zeros(3)))"]
test_what_has_no_equal_rows = refused({(TypeError, ValueError): [f"{source}.rebatch(2)" for source in REFUSED]})
NO_SIZES = [([],), (2.0,), ([2, 1.0],), ("2",), (None,), ([[2]],), (2, 1)]
test_what_is_no_size = refused({(TypeError, ValueError): NO_SIZES}, "range(4).batch(2).rebatch(*case)")

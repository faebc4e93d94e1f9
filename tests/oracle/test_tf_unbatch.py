"""Tests of unbatch against tf.data's, which crashes for rows of size 0."""

import numpy as np
from cases import Pair
from compare import programs, refused, same

SPLITS, TWICE = [0, 2, 2, 3], [[0, 2, 2, 3], [0, 1, 1, 4]]
TEXTS = np.array([b"a\0", b"", b"b"], object)
ELEMENTS = {
    **{dtype: np.arange(3).astype(dtype) for dtype in ["?", "i1", "u8", "f2", "f8", "c8"]},
    "text": [b"a\0", b"", b"\0"],
    "tuple": (np.arange(3), (np.zeros((3, 2)), np.zeros(3))),
    "one in a tuple": (np.arange(3),),
    "dict": {"b": np.arange(3), "a": {"c": np.zeros(3)}},
    "named tuple": Pair(np.arange(3), (np.arange(3), np.zeros(3))),
    "beside None": (np.arange(3), None),
    **programs(
        ragged_int32="from_splits([SPLITS], np.arange(3), np.int32)",
        ragged_twice_int32="from_splits(TWICE, np.arange(4.0), np.int32)",
        ragged_text="from_splits([SPLITS], TEXTS)",
        ragged_of_nothing="from_splits([[0, 0, 0]], np.zeros(0))",
        sparse="sparse([[0, 1], [2, 0]], [1.5, 2], [3, 2])",
        sparse_of_nothing="sparse([], np.zeros(0), [3, 2])",
        sparse_cubes="sparse([[0, 1, 1], [2, 0, 0]], [1.5, 2], [3, 2, 2])",
        beside_ragged="(from_splits([SPLITS], np.arange(3)), np.arange(3))",
    ),
}
MATRICES = programs(
    matrix="np.arange(6).reshape(3, 2)",
    ragged="from_splits([SPLITS], np.arange(3))",
    ragged_twice="from_splits(TWICE, np.arange(4.0))",
    ragged_with_inner_dimensions="from_splits([SPLITS], np.arange(6.0).reshape(3, 2))",
)
CALLS = ["unbatch()", "repeat(3).unbatch().skip(2)", "repeat().unbatch()", "unbatch().batch(2)", "take(0).unbatch()"]
test_elements = same(
    [f"from_tensors(element).{call}" for call in (*CALLS, "batch(2).unbatch().unbatch()")],
    element=ELEMENTS | MATRICES,
    limit=12,
    # tf.data does not see the number of rows of sparse tensors.
    cardinality=lambda element, _: "sparse" not in element,
)
test_rows_of_rows = same("from_tensors(element).unbatch().unbatch()", element=MATRICES)
TWO_ROWS = list(map(np.ones, [(2, 2), 2]))
test_elements_of_different_sizes = same(
    {
        "rows of rows of rows": "from_tensors(from_splits(TWICE, np.arange(4.0))).unbatch().unbatch().unbatch()",
        "batches of rows": "from_tensors(from_splits(TWICE, np.arange(4.0))).unbatch().unbatch().batch(2)",
        "growing": "counting(5).skip(1).unbatch()",
        "sizes": "arrays([[1], [2, 3, 4], [5, 6]], (None,)).unbatch()",
        "ranks": "arrays(TWO_ROWS, None).unbatch()",
    }
)
LENGTHS = [([3, 2], [2, 2]), ([2, 2], [3, 2]), ([2, 2, 1], [2, 3, 1]), ([1], [2]), ([2], [1])]
test_components_of_different_lengths_fail_in_their_place = same(
    "zip(*(arrays([np.arange(n) for n in lengths], (None,)) for lengths in both)).unbatch()", both=LENGTHS, fails=True
)
test_scalars_that_only_running_shows_fail_in_their_place = same(
    "arrays(values, None).unbatch()", values=[[3, [1, 2]], [[1, 2], 3], [3]], fails=True
)
BAD = [(1,), (4,), (2, 3)]
test_failures_of_vectors = same("counting(5, bad=bad).skip(1).unbatch()", bad=BAD, spec="any", fails=True)
test_failures_in_batches = same("unfused(failing(*bad, size=6)).batch(2).unbatch()", bad=BAD, fails=True)
COUNTED = {
    "full batches of full batches": "range(9).batch(2, True).batch(2, True).unbatch()",
    "batches of full batches": "range(9).batch(2, True).batch(2).unbatch()",
    "full batches of batches": "range(9).batch(2).batch(2, True).unbatch()",
    "known and unknown": "zip(range(6).batch(2, True), range(6).batch(2)).unbatch()",
    "unknown and known": "zip(range(6).batch(2), range(6).batch(2, True)).unbatch()",
    "ragged": "counting(5).ragged_batch(2, drop_remainder=True).unbatch()",
    "sparse": "counting(5).sparse_batch(2, [5]).unbatch()",
    "rebatched": "range(8).batch(4, True).rebatch(2).unbatch()",
}
test_counts = same(COUNTED, limit=12, spec="compatible")
REFUSED = ["np.float64(1)", "b'a'", "(np.zeros(2), np.float64(1))", "(np.zeros(2), np.zeros(3))"]
REFUSED += ["(from_splits([[0, 1]], [1]), np.zeros(3))"]
test_what_is_refused = refused({(TypeError, ValueError): programs(REFUSED)}, "from_tensors(case).unbatch()")

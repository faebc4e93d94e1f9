"""Tests of padded_batch against tf.data's."""

import numpy as np
from compare import programs, refused, same

from support.combinations import diagonals

VALUES = {  # the elements, their shape, and shapes to pad them to
    "vectors": ([np.arange(i) for i in range(5)], (None,), [[None], [-1], [4], (9,), np.array([5]), 6, [np.int64(4)]]),
    "all empty": ([np.zeros(0)] * 3, (None,), [[None], [0], [2]]),
    "matrices": ([np.full((i, 4 - i), i) for i in range(4)], (None, None), [[None, None], [-1, 5], (4, None), [4, 4]]),
    "rows of two": ([np.full((i, 2), i) for i in range(4)], (None, 2), [[None, None], [None, 3], [4, 2], [-1, -1]]),
    "two rows": ([np.full((2, i), i) for i in range(4)], (2, None), [[None, None], [3, None], [2, 4]]),
    "fixed": ([np.full(2, i) for i in range(3)], (2,), [[None], [-1], [2], [4]]),
    "scalars": ([1, 2, 3], (), [[], ()]),
    "none": ([], (None,), [[None], [4]]),
}
SHAPES = [(*known, shape) for *known, shapes in VALUES.values() for shape in [None, *shapes]]
VECTORS, MATRICES, FIXED, ROWS = (
    programs(data=f"arrays(*VALUES[{name!r}][:2])")["data"] for name in ("vectors", "matrices", "fixed", "rows of two")
)
test_shapes = same(
    "arrays(*case[0][:2]).padded_batch(case[1], case[0][2], drop_remainder=case[2])",
    case=diagonals(3, SHAPES, [1, 2, 9], [False, True]),
)
LARGE = list(map(np.ones, [9, 1, 1, 2, 1, 1, 9]))
test_elements_larger_than_their_padded_shape_fail_in_their_batch = same(
    "arrays(LARGE, (None,)).padded_batch(size, [n])", size=[1, 2, 3], n=[2, 0, 3], fails=True
)
RANKS = list(map(np.ones, [(1,), (1, 1), (2,), (3,), ()]))
test_other_elements_fail_in_their_batch = same(
    [
        "arrays(RANKS, None).padded_batch(2, [None])",
        "arrays(RANKS, None).padded_batch(2, [4])",
        "zip((VECTORS, VECTORS)).padded_batch(2, ([None], [2]))",
    ],
    fails=True,
)
test_what_fills_up_every_dtype = same(
    [
        f"arrays([[1], [], [0, 1]], (None,), np.dtype(dtype)).padded_batch(2{arguments})"
        for arguments in ("", ", padding_values=np.ones((), dtype)[()]", ", [4], np.ones((), dtype)")
    ],
    dtype=["?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8"],
)
TEXT = programs(text="arrays([[b'a\\0'], [], [b'', b'b']], (None,), bytes)")["text"]
test_what_fills_up_text = same(
    ["TEXT.padded_batch(2, padding_values=value)", "TEXT.padded_batch(3, [4], value)"],
    value=[None, "x", b"z\0", b"", ""],
)
test_what_fills_up_floats = same(
    "arrays([[1], []], (None,), np.float32).padded_batch(2, padding_values=value)",
    value=[np.nan, np.inf, -0.0, 1e9, np.float32(2)],
)
NESTED = programs(nested="zip({'b': (VECTORS, TEXTS), 'a': VECTORS, 'c': range(5)})")["nested"]
TEXTS = programs(texts="arrays([[b'a'] * i for i in np.arange(5)], (None,), bytes)")["texts"]
ARGUMENTS = {
    "none": {},
    "shapes": {"padded_shapes": {"a": [5], "b": ([None], [-1]), "c": []}},
    "shapes as tuples": {"padded_shapes": {"c": (), "b": ((6,), (None,)), "a": (None,)}},
    "shapes as numbers": {"padded_shapes": {"a": 5, "b": (6, 7), "c": []}},
    "values": {"padding_values": {"a": np.int64(1), "b": (np.int64(2), "x"), "c": np.int64(3)}},
    "some values": {"padding_values": {"a": None, "b": (np.int64(2), None), "c": None}},
}
test_nested_arguments = same("NESTED.padded_batch(2, **arguments)", arguments=ARGUMENTS)
BAD = [(0,), (1,), (2,), (1, 2), (4,)]
test_failures = same("counting(5, bad=bad).padded_batch(2)", bad=BAD, spec="any", fails=True)
test_chains_and_counts = same(
    [
        "range(5).batch(2).padded_batch(2).padded_batch(2, [3, 3])",
        "zip(VECTORS, (MATRICES,)).padded_batch(2, padding_values=int64(-1))",  # a scalar for every component
    ]
)
REFUSED = [(0,), (-1,), (2.0,), (None,), (2, []), (2, [4, 4]), (2, [-2]), (2, [2.5]), (2, "4"), (2, ([4],))]
REFUSED += [(2, {"a": [4]}), (2, None, 1.0), (2, None, 1.5), (2, None, "a"), (2, None, True), (2, None, np.int32(1))]
REFUSED += [(2, None, value) for value in (np.array([1]), [1], (np.int64(1),), {"a": np.int64(1)})]
REFUSED += [(2, None, None, 1)]
test_what_is_refused_for_vectors = refused({(TypeError, ValueError): REFUSED}, "VECTORS.padded_batch(*case)")
OF_DTYPES = [(np.float32, np.float64(1)), (bytes, 0), (np.bool_, 1), (np.uint8, -1), (np.uint8, 300), (np.float16, 1e9)]
test_values_that_are_refused_for_a_dtype = refused(
    {(TypeError, ValueError): OF_DTYPES}, "arrays([[1]], (None,), case[0]).padded_batch(2, None, case[1])"
)
test_other_elements_that_are_refused = refused(
    {
        (TypeError, ValueError): {
            "too small for what is known": "FIXED.padded_batch(2, [1])",
            "too small for a known dimension": "ROWS.padded_batch(2, [None, 1])",
            "a dimension for scalars": "arrays([1, 2, 3], ()).padded_batch(2, [2])",
            "unknown rank": "arrays([[1]], None).padded_batch(2)",
        },
        TypeError: {
            "a scalar for ints and text": "NESTED.padded_batch(2, padding_values=int64(-1))",
            "rows": "from_tensor_slices(ragged([[[1]], [[2]]])).padded_batch(2)",
            "ragged": "from_tensors(ragged([[[1]], [[2]]])).padded_batch(2)",
            "sparse": "from_tensor_slices(sparse([[0, 0]], [1], [2, 2])).padded_batch(2)",
        },
    }
)
SHAPES_OF_OTHERS = [{"a": [5]}, {"a": [5], "b": [5], "c": []}, ([5], ([5], [5]), []), [None]]
VALUES_OF_OTHERS = [{"a": np.int64(1)}, dict.fromkeys("abc", np.int64(1)), (np.int64(1),)]
OTHERS = [(shapes, None) for shapes in SHAPES_OF_OTHERS] + [(None, values) for values in VALUES_OF_OTHERS]
test_other_structures_than_that_of_the_elements = refused(
    {(TypeError, ValueError): OTHERS}, "NESTED.padded_batch(2, *case)"
)

"""Tests of padded_batch against tf.data's."""

import numpy as np
from compare import refused, same

from support.combinations import diagonals
from support.libraries import arrays, counting

VALUES = {
    "vectors": ([np.arange(i) for i in range(5)], (None,)),
    "all empty": ([np.zeros(0)] * 3, (None,)),
    "matrices": ([np.full((i, 4 - i), i) for i in range(4)], (None, None)),
    "rows of two": ([np.full((i, 2), i) for i in range(4)], (None, 2)),
    "two rows": ([np.full((2, i), i) for i in range(4)], (2, None)),
    "fixed": ([np.full(2, i) for i in range(3)], (2,)),
    "scalars": ([1, 2, 3], ()),
    "none": ([], (None,)),
}
SHAPES = [
    *[("vectors", shape) for shape in (None, [None], [-1], [4], (9,), np.array([5]), 6, [np.int64(4)], (None,))],
    *[("all empty", shape) for shape in (None, [None], [0], [2])],
    *[("matrices", shape) for shape in (None, [None, None], [-1, 5], (4, None), [4, 4], np.array([-1, 4]))],
    *[("rows of two", shape) for shape in (None, [None, None], [None, 3], [4, 2], [-1, -1])],
    *[("two rows", shape) for shape in (None, [None, None], [3, None], [2, 4])],
    *[("fixed", shape) for shape in (None, [None], [-1], [2], [4])],
    *[("scalars", shape) for shape in (None, [], ())],
    *[("none", shape) for shape in (None, [None], [4])],
]


def padded(lib, values, *arguments, **named):
    return arrays(lib, *VALUES[values]).padded_batch(*arguments, **named)


test_shapes = same(
    lambda lib, case: padded(lib, case[0][0], case[1], case[0][1], drop_remainder=case[2]),
    diagonals(3, SHAPES, [1, 2, 9], [False, True]),
)
test_elements_larger_than_their_padded_shape_fail_in_their_batch = same(
    lambda lib, size, n: arrays(lib, map(np.ones, [9, 1, 1, 2, 1, 1, 9]), (None,)).padded_batch(size, [n]),
    [1, 2, 3],
    [2, 0, 3],
    fails=True,
)
RANKS = [(1,), (1, 1), (2,), (3,), ()]
test_elements_of_another_rank_fail_in_their_batch = same(
    lambda lib, n: arrays(lib, map(np.ones, RANKS), None).padded_batch(2, [n]), [None, 4], fails=True
)
test_one_component_larger_than_its_padded_shape_is_enough = same(
    lambda lib: lib.zip((vectors(lib), vectors(lib))).padded_batch(2, ([None], [2])), fails=True
)


def vectors(lib):
    return arrays(lib, *VALUES["vectors"])


def bits(lib, dtype):
    return arrays(lib, [[1], [], [0, 1]], (None,), np.dtype(dtype))


def text(lib):
    return arrays(lib, [[b"a\0"], [], [b"", b"b"]], (None,), bytes)


test_what_fills_up_every_dtype = same(
    {
        "the default": lambda lib, dtype: bits(lib, dtype).padded_batch(2),
        "a scalar": lambda lib, dtype: bits(lib, dtype).padded_batch(2, padding_values=np.ones((), dtype)[()]),
        "an array": lambda lib, dtype: bits(lib, dtype).padded_batch(2, [4], np.ones((), dtype)),
    },
    ["?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8"],
)
test_what_fills_up_text = same(
    {
        "the longest": lambda lib, value: text(lib).padded_batch(2, padding_values=value),
        "a size": lambda lib, value: text(lib).padded_batch(3, [4], value),
    },
    [None, "x", b"z\0", b"", ""],
)
test_what_fills_up_floats = same(
    lambda lib, value: arrays(lib, [[1], []], (None,), np.float32).padded_batch(2, padding_values=value),
    [np.nan, np.inf, -0.0, 1e9, np.float32(2)],
)


def nested(lib):
    text = arrays(lib, [[b"a"] * i for i in range(5)], (None,), bytes)
    return lib.zip({"b": (vectors(lib), text), "a": vectors(lib), "c": lib.range(5)})


ARGUMENTS = {
    "none": {},
    "shapes": {"padded_shapes": {"a": [5], "b": ([None], [-1]), "c": []}},
    "shapes as tuples": {"padded_shapes": {"c": (), "b": ((6,), (None,)), "a": (None,)}},
    "shapes as numbers": {"padded_shapes": {"a": 5, "b": (6, 7), "c": []}},
    "values": {"padding_values": {"a": np.int64(1), "b": (np.int64(2), "x"), "c": np.int64(3)}},
    "some values": {"padding_values": {"a": None, "b": (np.int64(2), None), "c": None}},
    "both": {
        "padded_shapes": {"a": [5], "b": ([None], [5]), "c": []},
        "padding_values": {"a": None, "b": (None, b"\0"), "c": None},
    },
}


test_nested_arguments = same(lambda lib, arguments: nested(lib).padded_batch(2, **arguments), ARGUMENTS)
test_failures = same(
    lambda lib, bad: counting(lib, 5, bad=bad).padded_batch(2), [(0,), (1,), (2,), (1, 2), (4,)], spec="any", fails=True
)
CHAINS = {
    "of batches": lambda lib: lib.range(5).batch(2).padded_batch(2),
    "twice": lambda lib: lib.range(5).batch(2).padded_batch(2).padded_batch(2, [3, 3]),
    "a scalar for every component": lambda lib: lib.zip(vectors(lib), (arrays(lib, *VALUES["matrices"]),)).padded_batch(
        2, padding_values=np.int64(-1)
    ),
}
test_chains_and_counts = same(CHAINS)
REFUSED = [(0,), (-1,), (2.0,), (None,), (2, []), (2, [4, 4]), (2, [-2]), (2, [2.5]), (2, "4"), (2, ([4],))]
REFUSED += [(2, {"a": [4]}), (2, None, 1.0), (2, None, 1.5), (2, None, "a"), (2, None, True), (2, None, np.int32(1))]
REFUSED += [(2, None, value) for value in (np.array([1]), [1], (np.int64(1),), {"a": np.int64(1)})]
REFUSED += [(2, None, None, 1)]
test_what_is_refused_for_vectors = refused(
    {(TypeError, ValueError): REFUSED}, lambda lib, arguments: padded(lib, "vectors", *arguments)
)
REFUSED_FOR_DTYPES = [(np.float32, np.float64(1)), (bytes, 0), (np.bool_, 1), (np.uint8, -1), (np.uint8, 300)]
test_values_that_are_refused_for_a_dtype = refused(
    {(TypeError, ValueError): [*REFUSED_FOR_DTYPES, (np.float16, 1e9)]},
    lambda lib, case: arrays(lib, [[1]], (None,), case[0]).padded_batch(2, None, case[1]),
)
RAGGED = [[0, 1, 2], [0, 1, 2]], [1, 2]
test_other_elements_that_are_refused = refused(
    {
        (TypeError, ValueError): {
            "too small for what is known": lambda lib: padded(lib, "fixed", 2, [1]),
            "too small for a known dimension": lambda lib: padded(lib, "rows of two", 2, [None, 1]),
            "a dimension for scalars": lambda lib: padded(lib, "scalars", 2, [2]),
            "unknown rank": lambda lib: arrays(lib, [[1]], None).padded_batch(2),
        },
        TypeError: {
            "a scalar for ints and text": lambda lib: nested(lib).padded_batch(2, padding_values=np.int64(-1)),
            "rows": lambda lib: lib.from_tensor_slices(lib.from_splits(*RAGGED)).padded_batch(2),
            "ragged": lambda lib: lib.from_tensors(lib.from_splits(*RAGGED)).padded_batch(2),
            "sparse": lambda lib: lib.from_tensor_slices(lib.sparse([[0, 0]], [1], [2, 2])).padded_batch(2),
        },
    }
)
SHAPES_OF_OTHERS = [{"a": [5]}, {"a": [5], "b": [5], "c": []}, ([5], ([5], [5]), []), [None]]
VALUES_OF_OTHERS = [{"a": np.int64(1)}, dict.fromkeys("abc", np.int64(1)), (np.int64(1),)]
test_other_structures_than_that_of_the_elements = refused(
    {
        (TypeError, ValueError): [
            *({"padded_shapes": shapes} for shapes in SHAPES_OF_OTHERS),
            *({"padding_values": values} for values in VALUES_OF_OTHERS),
        ]
    },
    lambda lib, arguments: nested(lib).padded_batch(2, **arguments),
)

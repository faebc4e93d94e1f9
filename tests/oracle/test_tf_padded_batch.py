"""Tests of padded_batch against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

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


@pytest.mark.parametrize(("shapes", "size", "drop"), diagonals(3, SHAPES, [1, 2, 9], [False, True]), ids=repr)
def test_shapes(shapes, size, drop):
    values, shape = shapes
    assert_same(lambda lib: arrays(lib, *VALUES[values]).padded_batch(size, shape, drop_remainder=drop))


@pytest.mark.parametrize("shape", [[2], [0], [3]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_elements_larger_than_their_padded_shape_fail_in_their_batch(size, shape):
    lengths = [9, 1, 1, 2, 1, 1, 9]
    found = assert_same(lambda lib: arrays(lib, [np.ones(n) for n in lengths], (None,)).padded_batch(size, shape))
    assert has_failed(found)


def test_one_component_larger_than_its_padded_shape_is_enough():
    def build(lib):
        both = arrays(lib, *VALUES["vectors"]), arrays(lib, *VALUES["vectors"])
        return lib.Dataset.zip(both).padded_batch(2, ([None], [2]))

    assert has_failed(assert_same(build))


def test_elements_of_another_rank_fail_in_their_batch():
    values = [np.ones(1), np.ones((1, 1)), np.ones(2), np.ones(3), np.ones(())]
    assert has_failed(assert_same(lambda lib: arrays(lib, values, None).padded_batch(2, [None])))
    assert has_failed(assert_same(lambda lib: arrays(lib, values, None).padded_batch(2, [4])))


DTYPES = ["?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_fills_up_every_dtype(dtype):
    content = [[1], [], [0, 1]]
    assert_same(lambda lib: arrays(lib, content, (None,), np.dtype(dtype)).padded_batch(2))
    value = np.ones((), dtype)[()]
    assert_same(lambda lib: arrays(lib, content, (None,), np.dtype(dtype)).padded_batch(2, padding_values=value))
    assert_same(lambda lib: arrays(lib, content, (None,), np.dtype(dtype)).padded_batch(2, [4], np.array(value)))


@pytest.mark.parametrize("value", [None, "x", b"z\0", b"", ""])
def test_what_fills_up_text(value):
    content = [[b"a\0"], [], [b"", b"b"]]
    assert_same(lambda lib: arrays(lib, content, (None,), bytes).padded_batch(2, padding_values=value))
    assert_same(lambda lib: arrays(lib, content, (None,), bytes).padded_batch(3, [4], value))


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0, 1e9, np.float32(2)])
def test_what_fills_up_floats(value):
    assert_same(lambda lib: arrays(lib, [[1], []], (None,), np.float32).padded_batch(2, padding_values=value))


def nested(lib):
    vectors = [arrays(lib, *VALUES["vectors"]) for _ in range(2)]
    text = arrays(lib, [[b"a"] * i for i in range(5)], (None,), bytes)
    return lib.Dataset.zip({"b": (vectors[0], text), "a": vectors[1], "c": lib.Dataset.range(5)})


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


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_nested_arguments(arguments):
    assert_same(lambda lib: nested(lib).padded_batch(2, **ARGUMENTS[arguments]))


def test_a_scalar_goes_for_every_component():
    def pairs(lib):
        return lib.Dataset.zip(arrays(lib, *VALUES["vectors"]), (arrays(lib, *VALUES["matrices"]),))

    assert_same(lambda lib: pairs(lib).padded_batch(2, padding_values=np.int64(-1)))
    assert_both_refuse(lambda lib: nested(lib).padded_batch(2, padding_values=np.int64(-1)), TypeError)


@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (1, 2), (4,)])
def test_failures(bad):
    assert has_failed(assert_same(lambda lib: counting(lib, 5, bad=bad).padded_batch(2), spec="any"))


def test_chains_and_counts():
    assert_same(lambda lib: counting(lib, 5).padded_batch(2))
    assert_same(lambda lib: counting(lib, 5).padded_batch(2, [5], drop_remainder=True).batch(2))
    assert_same(lambda lib: counting(lib, 5).padded_batch(2, [5]).unbatch().padded_batch(3, [6]), spec="compatible")
    assert_same(lambda lib: counting(lib, 3).repeat().padded_batch(2), limit=4)
    assert_same(lambda lib: lib.Dataset.range(5).batch(2).padded_batch(2))
    assert_same(lambda lib: lib.Dataset.range(5).batch(2).padded_batch(2).padded_batch(2, [3, 3]))


def refused(name, *arguments, source=VALUES["vectors"], dtype=np.int64, **named):
    return pytest.param(lambda lib: arrays(lib, *source, dtype).padded_batch(*arguments, **named), id=name)


@pytest.mark.parametrize(
    "build",
    [
        refused("size 0", 0),
        refused("size -1", -1),
        refused("size 2.0", 2.0),
        refused("size None", None),
        refused("too few dimensions", 2, []),
        refused("too many dimensions", 2, [4, 4]),
        refused("a negative dimension", 2, [-2]),
        refused("a fraction", 2, [2.5]),
        refused("text for a shape", 2, "4"),
        refused("too small for what is known", 2, [1], source=VALUES["fixed"]),
        refused("too small for a known dimension", 2, [None, 1], source=VALUES["rows of two"]),
        refused("a dimension for scalars", 2, [2], source=VALUES["scalars"]),
        refused("shapes in a tuple", 2, ([4],)),
        refused("shapes in a dict", 2, {"a": [4]}),
        refused("unknown rank", 2, source=([[1]], None)),
        refused("a float for ints", 2, None, 1.0),
        refused("a fraction for ints", 2, None, 1.5),
        refused("text for ints", 2, None, "a"),
        refused("a bool for ints", 2, None, True),
        refused("narrow ints for ints", 2, None, np.int32(1)),
        refused("a float64 for float32", 2, None, np.float64(1), dtype=np.float32),
        refused("a vector", 2, None, np.array([1])),
        refused("a list", 2, None, [1]),
        refused("a tuple", 2, None, (np.int64(1),)),
        refused("a dict", 2, None, {"a": np.int64(1)}),
        refused("a number for text", 2, None, 0, source=([[b"a"]], (None,)), dtype=bytes),
        refused("a number for bools", 2, None, 1, dtype=np.bool_),
        refused("-1 for uint8", 2, None, -1, dtype=np.uint8),
        refused("300 for uint8", 2, None, 300, dtype=np.uint8),
        refused("1e9 for float16", 2, None, 1e9, dtype=np.float16),
        refused("drop_remainder no bool", 2, None, None, 1),
    ],
)
def test_what_both_refuse(build):
    assert_both_refuse(build, (TypeError, ValueError))


@pytest.mark.parametrize(
    "arguments",
    [
        {"padded_shapes": {"a": [5]}},
        {"padded_shapes": {"a": [5], "b": [5], "c": []}},
        {"padded_shapes": ([5], ([5], [5]), [])},
        {"padded_shapes": [None]},
        {"padding_values": {"a": np.int64(1)}},
        {"padding_values": {"a": np.int64(1), "b": np.int64(1), "c": np.int64(1)}},
        {"padding_values": (np.int64(1),)},
    ],
    ids=repr,
)
def test_other_structures_than_that_of_the_elements(arguments):
    assert_both_refuse(lambda lib: nested(lib).padded_batch(2, **arguments), (TypeError, ValueError))


def test_ragged_and_sparse():
    ragged, sparse = ([[0, 1, 2], [0, 1, 2]], [1, 2]), ([[0, 0]], [1], [2, 2])
    for build in (
        lambda lib: lib.Dataset.from_tensor_slices(lib.from_splits(*ragged)).padded_batch(2),
        lambda lib: lib.Dataset.from_tensors(lib.from_splits(*ragged)).padded_batch(2),
        lambda lib: lib.Dataset.from_tensor_slices(lib.sparse(*sparse)).padded_batch(2),
    ):
        assert_both_refuse(build, TypeError)

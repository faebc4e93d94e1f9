"""Tests of batch against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

from dataset import TensorSpec
from support.combinations import diagonals
from support.libraries import arrays, counting, fail_at
from support.pipelines import Pair

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]

COMPONENTS = {
    **{dtype: lambda lib, dtype=dtype: np.arange(5).astype(dtype) for dtype in DTYPES},
    "text": lambda lib: [b"a\0", b"", b"b", b"\0\0", b"c"],
    "lists of text": lambda lib: [[b"a\0", b"b"]] * 5,
    "vectors": lambda lib: np.arange(15).reshape(5, 3),
    "arrays of no size": lambda lib: np.zeros((5, 0, 2)),
    "ragged": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5]], np.arange(5)),
    "ragged, int32": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5]], np.arange(5), np.int32),
    "ragged twice": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5], [0, 1, 1, 4, 5, 6]], np.arange(6.0)),
    "ragged thrice": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5], [0, 1, 1, 4, 5, 6], [0] * 6 + [3]], np.arange(3)),
    "ragged, with inner dimensions": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5]], np.arange(10.0).reshape(5, 2)),
    "ragged text": lambda lib: lib.from_splits([[0, 2, 2, 3, 3, 5]], np.array([b"a\0", b"", b"b", b"c", b"d"], object)),
    "ragged of nothing": lambda lib: lib.from_splits([[0] * 6], np.zeros(0)),
    "sparse": lambda lib: lib.sparse([[0, 1], [0, 2], [3, 0]], [1.5, 2, 3], [5, 3]),
    "sparse of nothing": lambda lib: lib.sparse([], np.zeros(0), [5, 3]),
    "sparse cubes": lambda lib: lib.sparse([[0, 1, 1], [4, 0, 0]], [1.5, 2], [5, 2, 2]),
    "tuple": lambda lib: (np.arange(5), (np.zeros(5), np.zeros((5, 2)))),
    "one in a tuple": lambda lib: (np.arange(5),),
    "dict": lambda lib: {"b": np.arange(5), "a": {"c": np.zeros(5)}},
    "named tuple": lambda lib: Pair(np.arange(5), (np.arange(5), np.zeros(5))),
    "beside ragged": lambda lib: (lib.from_splits([[0, 2, 2, 3, 3, 5]], np.arange(5)), np.arange(5)),
}


def slices(lib, component):
    return lib.Dataset.from_tensor_slices(COMPONENTS[component](lib))


@pytest.mark.parametrize(("component", "size", "drop"), diagonals(4, COMPONENTS, [1, 2, 3, 5, 9], [False, True]))
def test_components(component, size, drop):
    assert_same(lambda lib: slices(lib, component).batch(size, drop))


@pytest.mark.parametrize(
    "component", sorted(COMPONENTS.keys() - {"arrays of no size"})
)  # unbatch() of these crashes tf.data
def test_chains(component):
    counted = "sparse" not in component  # tf.data does not see the number of rows of sparse batches
    assert_same(lambda lib: slices(lib, component).batch(2).batch(2))
    assert_same(lambda lib: slices(lib, component).batch(2, True).batch(2, True).unbatch(), cardinality=counted)
    assert_same(lambda lib: slices(lib, component).batch(2).unbatch())
    assert_same(lambda lib: slices(lib, component).batch(2, True).unbatch().batch(3), cardinality=counted)
    assert_same(lambda lib: slices(lib, component).skip(1).repeat(2).batch(3))
    assert_same(lambda lib: slices(lib, component).take(0).batch(3))
    assert_same(lambda lib: slices(lib, component).enumerate().batch(3))
    assert_same(lambda lib: slices(lib, component).cache().prefetch(1).shard(2, 1).batch(3))


def test_rows_of_a_ragged_tensor_are_ragged_until_a_function_has_seen_them():
    assert_same(lambda lib: slices(lib, "ragged").filter(lambda row: True).batch(3))
    assert_same(lambda lib: slices(lib, "ragged").concatenate(slices(lib, "ragged")).batch(3))
    assert has_failed(assert_same(lambda lib: slices(lib, "ragged").map(lambda row: row).batch(5), spec="any"))
    zipped = assert_same(lambda lib: lib.Dataset.zip(slices(lib, "ragged"), lib.Dataset.range(5)).batch(2))
    assert not has_failed(zipped)


def test_rows_of_a_ragged_tensor_and_arrays_do_not_follow_each_other():
    for build in (
        lambda lib: slices(lib, "ragged").concatenate(slices(lib, "vectors")),
        lambda lib: slices(lib, "vectors").concatenate(slices(lib, "ragged")),
        lambda lib: slices(lib, "ragged").concatenate(slices(lib, "ragged, int32")),
    ):
        assert_both_refuse(build, TypeError)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("lengths", [[9, 1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2], [1, 1, 1, 2], [0, 1], [2, 2]])
def test_elements_of_different_shapes_fail_in_their_batch(lengths, size):
    values = [np.ones(length) for length in lengths]
    assert_same(lambda lib: arrays(lib, values, (None,)).batch(size))
    assert_same(lambda lib: arrays(lib, values, None).batch(size, drop_remainder=True))


def test_elements_of_different_ranks_fail_in_their_batch():
    values = [np.ones(2), np.ones((2, 1)), np.ones(2), np.ones(2), np.ones(())]
    assert_same(lambda lib: arrays(lib, values, None).batch(2))


def test_sparse_elements_of_different_shapes_have_room_in_their_batch():
    def build(lib, shapes):
        parts = [lib.Dataset.from_tensors(lib.sparse([[0]], [1.5], [size])) for size in shapes]
        first, *others = parts
        for other in others:
            first = first.concatenate(other)
        return first

    for shapes in ([2, 3, 3], [3, 2, 9], [1, 1, 1]):
        assert_same(lambda lib, shapes=shapes: build(lib, shapes).batch(2))


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 9])
@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (1, 2), (4,), (0, 4), (0, 1, 2)])
def test_failures(bad, size, drop):
    def build(lib):
        check = lib.call(fail_at(*bad), TensorSpec((), np.int64))
        return lib.unfused(lib.Dataset.range(5).map(check)).batch(size, drop)

    assert has_failed(assert_same(build))


def test_endless_data():
    assert_same(lambda lib: lib.Dataset.range(3).repeat().batch(2), limit=4)
    assert_same(lambda lib: lib.Dataset.range(3).repeat().batch(2, True).unbatch(), limit=4)


def test_counts():
    assert_same(lambda lib: lib.Dataset.range(5).filter(lambda x: x > 0).batch(2))
    assert_same(lambda lib: lib.Dataset.range(5).batch(2, True).map(lambda x: x + 1).batch(2))
    assert_same(lambda lib: counting(lib, 3).batch(1), spec="any")


@pytest.mark.parametrize("parallel", [{"num_parallel_calls": 2}, {"num_parallel_calls": 1, "deterministic": True}])
def test_parallel_batches(parallel):
    assert_same(lambda lib: lib.Dataset.range(50).batch(4, **parallel))
    assert_same(lambda lib: lib.Dataset.range(50).batch(4, num_parallel_calls=lib.AUTOTUNE, drop_remainder=True))
    values = [[1], [2, 3], [4], [5], [6]]
    assert has_failed(assert_same(lambda lib: arrays(lib, values, (None,)).batch(2, **parallel)))


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", None, [2], [[2]]])
def test_what_is_no_batch_size(size):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).batch(size), (TypeError, ValueError))


@pytest.mark.parametrize("drop", [1, 0, None, "yes"])
def test_what_is_no_bool(drop):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).batch(2, drop), (TypeError, ValueError))


@pytest.mark.parametrize("size", [np.int32(2), np.array(2), np.uint8(2)])
def test_what_is_a_batch_size(size):
    assert_same(lambda lib: lib.Dataset.range(3).batch(size, np.bool_(True)))

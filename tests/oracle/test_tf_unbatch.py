"""Tests of unbatch against tf.data's, which crashes for rows of size 0."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

from dataset import TensorSpec
from support.libraries import arrays, counting, fail_at
from support.pipelines import Pair

ELEMENTS = {
    **{dtype: lambda lib, dtype=dtype: np.arange(3).astype(dtype) for dtype in ["?", "i1", "u8", "f2", "f8", "c8"]},
    "text": lambda lib: [b"a\0", b"", b"\0"],
    "matrix": lambda lib: np.arange(6).reshape(3, 2),
    "ragged": lambda lib: lib.from_splits([[0, 2, 2, 3]], np.arange(3)),
    "ragged, int32": lambda lib: lib.from_splits([[0, 2, 2, 3]], np.arange(3), np.int32),
    "ragged twice": lambda lib: lib.from_splits([[0, 2, 2, 3], [0, 1, 1, 4]], np.arange(4.0)),
    "ragged twice, int32": lambda lib: lib.from_splits([[0, 2, 2, 3], [0, 1, 1, 4]], np.arange(4.0), np.int32),
    "ragged text": lambda lib: lib.from_splits([[0, 2, 2, 3]], np.array([b"a\0", b"", b"b"], object)),
    "ragged, with inner dimensions": lambda lib: lib.from_splits([[0, 2, 2, 3]], np.arange(6.0).reshape(3, 2)),
    "ragged of nothing": lambda lib: lib.from_splits([[0, 0, 0]], np.zeros(0)),
    "sparse": lambda lib: lib.sparse([[0, 1], [2, 0]], [1.5, 2], [3, 2]),
    "sparse of nothing": lambda lib: lib.sparse([], np.zeros(0), [3, 2]),
    "sparse cubes": lambda lib: lib.sparse([[0, 1, 1], [2, 0, 0]], [1.5, 2], [3, 2, 2]),
    "tuple": lambda lib: (np.arange(3), (np.zeros((3, 2)), np.zeros(3))),
    "one in a tuple": lambda lib: (np.arange(3),),
    "dict": lambda lib: {"b": np.arange(3), "a": {"c": np.zeros(3)}},
    "named tuple": lambda lib: Pair(np.arange(3), (np.arange(3), np.zeros(3))),
    "beside None": lambda lib: (np.arange(3), None),
    "beside ragged": lambda lib: (lib.from_splits([[0, 2, 2, 3]], np.arange(3)), np.arange(3)),
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element):
    def whole(lib):
        return lib.Dataset.from_tensors(ELEMENTS[element](lib))

    counted = "sparse" not in element  # tf.data does not see the number of rows of sparse tensors
    assert_same(lambda lib: whole(lib).unbatch(), cardinality=counted)
    assert_same(lambda lib: whole(lib).repeat(3).unbatch().skip(2), cardinality=counted)
    assert_same(lambda lib: whole(lib).repeat().unbatch(), limit=7, cardinality=counted)
    assert_same(lambda lib: whole(lib).unbatch().batch(2), cardinality=counted)
    assert_same(lambda lib: whole(lib).batch(2).unbatch().unbatch(), cardinality=counted)
    assert_same(lambda lib: whole(lib).take(0).unbatch(), cardinality=counted)


def test_rows_of_rows():
    for element in ("ragged", "ragged twice", "ragged, with inner dimensions", "matrix"):
        assert_same(lambda lib, e=element: lib.Dataset.from_tensors(ELEMENTS[e](lib)).unbatch().unbatch())
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS["ragged twice"](lib)).unbatch().unbatch().unbatch())
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS["ragged twice"](lib)).unbatch().unbatch().batch(2))


def test_elements_of_different_sizes():
    assert_same(lambda lib: counting(lib, 5).skip(1).unbatch())
    assert_same(lambda lib: arrays(lib, [[1], [2, 3, 4], [5, 6]], (None,)).unbatch())
    assert_same(lambda lib: arrays(lib, [np.ones((2, 2)), np.ones(2)], None).unbatch())


@pytest.mark.parametrize("lengths", [[(3, 2), (2, 2)], [(2, 3), (2, 2)], [(2, 2), (2, 3), (1, 1)], [(1, 2)], [(2, 1)]])
def test_components_of_different_lengths_fail_in_their_place(lengths):
    def build(lib):
        first, second = ([np.arange(pair[part]) for pair in lengths] for part in (0, 1))
        return lib.Dataset.zip(arrays(lib, first, (None,)), arrays(lib, second, (None,))).unbatch()

    assert has_failed(assert_same(build))


@pytest.mark.parametrize("values", [[3, [1, 2]], [[1, 2], 3], [3]])
def test_scalars_that_only_running_shows_fail_in_their_place(values):
    assert has_failed(assert_same(lambda lib: arrays(lib, values, None).unbatch()))


@pytest.mark.parametrize("bad", [(1,), (4,), (2, 3)])
def test_failures(bad):
    assert has_failed(assert_same(lambda lib: counting(lib, 5, bad=bad).skip(1).unbatch(), spec="any"))

    def build(lib):
        check = lib.call(fail_at(*bad), TensorSpec((), np.int64))
        return lib.unfused(lib.Dataset.range(6).map(check)).batch(2).unbatch()

    assert has_failed(assert_same(build))


COUNTED = {
    "full batches": lambda lib: lib.Dataset.range(5).batch(2, True).unbatch(),
    "batches": lambda lib: lib.Dataset.range(5).batch(2).unbatch(),
    "full batches of full batches": lambda lib: lib.Dataset.range(9).batch(2, True).batch(2, True).unbatch(),
    "twice": lambda lib: lib.Dataset.range(9).batch(2, True).batch(2, True).unbatch().unbatch(),
    "batches of full batches": lambda lib: lib.Dataset.range(9).batch(2, True).batch(2).unbatch(),
    "batches of full batches, twice": lambda lib: lib.Dataset.range(9).batch(2, True).batch(2).unbatch().unbatch(),
    "full batches of batches": lambda lib: lib.Dataset.range(9).batch(2).batch(2, True).unbatch(),
    "known and unknown": lambda lib: lib.Dataset.zip(
        lib.Dataset.range(6).batch(2, True), lib.Dataset.range(6).batch(2)
    ).unbatch(),
    "unknown and known": lambda lib: lib.Dataset.zip(
        lib.Dataset.range(6).batch(2), lib.Dataset.range(6).batch(2, True)
    ).unbatch(),
    "filtered": lambda lib: lib.Dataset.range(5).batch(2, True).filter(lambda x: x[0] > 0).unbatch(),
    "endless": lambda lib: lib.Dataset.range(2).batch(2, True).repeat().unbatch(),
    "padded": lambda lib: counting(lib, 5).padded_batch(2, [5], drop_remainder=True).unbatch(),
    "ragged": lambda lib: counting(lib, 5).ragged_batch(2, drop_remainder=True).unbatch(),
    "sparse": lambda lib: counting(lib, 5).sparse_batch(2, [5]).unbatch(),
    "rebatched": lambda lib: lib.Dataset.range(8).batch(4, True).rebatch(2).unbatch(),
    "skipped": lambda lib: lib.Dataset.range(8).batch(2, True).skip(1).take(2).unbatch(),
}


@pytest.mark.parametrize("build", COUNTED)
def test_counts(build):
    assert_same(COUNTED[build], limit=12, spec="compatible")


REFUSED = {
    "scalars": lambda lib: lib.Dataset.range(3).unbatch(),
    "text": lambda lib: lib.Dataset.from_tensors(b"a").unbatch(),
    "a scalar component": lambda lib: lib.Dataset.from_tensors((np.zeros(2), np.float64(1))).unbatch(),
    "rows known to differ": lambda lib: lib.Dataset.from_tensors((np.zeros(2), np.zeros(3))).unbatch(),
    "ragged rows known to differ": lambda lib: lib.Dataset.from_tensors(
        (lib.from_splits([[0, 1]], [1]), np.zeros(3))
    ).unbatch(),
}


@pytest.mark.parametrize("build", REFUSED)
def test_what_both_refuse(build):
    assert_both_refuse(REFUSED[build], (TypeError, ValueError))

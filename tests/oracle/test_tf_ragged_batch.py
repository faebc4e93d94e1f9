"""Tests of ragged_batch against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

from support.combinations import diagonals
from support.libraries import arrays, counting

UNEVEN = {
    "vectors": ([np.arange(i) for i in range(5)], (None,)),
    "all empty": ([np.zeros(0)] * 3, (None,)),
    "matrices": ([np.ones((i, 3 - i)) for i in range(4)], (None, None)),
    "rows of two": ([np.full((i, 2), i) for i in range(3)], (None, 2)),
    "two rows": ([np.full((2, i), i) for i in range(3)], (2, None)),
    "a fixed axis between": ([np.full((i, 2, 3 - i), i) for i in range(3)], (None, 2, None)),
    "a fixed axis behind": ([np.full((i, 3 - i, 2), i) for i in range(3)], (None, None, 2)),
    "fixed axes around": ([np.full((2, i, 3), i) for i in range(3)], (2, None, 3)),
    "fixed axes before": ([np.full((1, 2, i), i) for i in range(3)], (1, 2, None)),
    "fixed": ([np.full((2, 2), i) for i in range(3)], (2, 2)),
    "scalars": ([1, 2, 3], ()),
    "fixed but zero": ([np.zeros((0, 2))] * 3, (0, 2)),
    "none": ([], (None, 2)),
}


@pytest.mark.parametrize(("values", "size", "drop"), diagonals(2, UNEVEN, [1, 2, 3, 9], [False, True]))
def test_shapes(values, size, drop):
    assert_same(lambda lib: arrays(lib, *UNEVEN[values]).ragged_batch(size, drop))


@pytest.mark.parametrize("splits", [np.int32, np.int64, "int32", np.dtype("int64")])
@pytest.mark.parametrize("values", ["vectors", "all empty", "rows of two", "fixed", "scalars", "none"])
def test_the_dtype_of_row_splits(values, splits):
    # With more than one ragged dimension, tf.data fails to make int32 row splits.
    assert_same(lambda lib: arrays(lib, *UNEVEN[values]).ragged_batch(2, row_splits_dtype=splits))


@pytest.mark.parametrize("splits", [np.int16, np.float32, np.uint32])
def test_other_dtypes_of_row_splits(splits):
    assert_both_refuse(
        lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2, row_splits_dtype=splits), (TypeError, ValueError)
    )


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64])
def test_dtypes(dtype):
    assert_same(lambda lib: arrays(lib, [[1], [], [0, 1]], (None,), dtype).ragged_batch(2))


def test_text():
    assert_same(lambda lib: arrays(lib, [[b"a\0"], [b"", b"b"], []], (None,), bytes).ragged_batch(2))


RAGGED = {
    "rank 1": ([[0, 2, 3, 3]], np.int64),
    "rank 2": ([[0, 2, 3, 3], [0, 1, 3, 3]], np.int64),
    "rank 1, int32": ([[0, 2, 3, 3]], np.int32),
    "rank 2, int32": ([[0, 2, 3, 3], [0, 1, 3, 3]], np.int32),
}


@pytest.mark.parametrize("splits", [np.int32, np.int64])
@pytest.mark.parametrize("ragged", RAGGED)
def test_ragged_components_keep_their_row_splits(ragged, splits):
    levels, dtype = RAGGED[ragged]
    flat = np.arange(3)

    def rows(lib):
        return lib.Dataset.from_tensor_slices(lib.from_splits(levels, flat, dtype))

    assert_same(lambda lib: rows(lib).ragged_batch(2, row_splits_dtype=splits))
    assert_same(lambda lib: rows(lib).ragged_batch(2).ragged_batch(2))
    assert_same(lambda lib: rows(lib).ragged_batch(2).unbatch(), cardinality=False)


def test_sparse_components_are_batched_as_by_batch():
    assert_same(
        lambda lib: lib.Dataset.from_tensor_slices(lib.sparse([[0, 0], [1, 1]], [1.5, 2], [3, 2])).ragged_batch(2)
    )


def test_structures():
    def pair(lib):
        return {"b": arrays(lib, *UNEVEN["vectors"]), "a": (lib.Dataset.range(5), arrays(lib, *UNEVEN["vectors"]))}

    assert_same(lambda lib: lib.Dataset.zip(pair(lib)).ragged_batch(2))
    assert_same(lambda lib: lib.Dataset.from_tensors((np.int64(1), None)).repeat(3).ragged_batch(2))


def test_chains():
    assert_same(lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2).ragged_batch(2))
    assert_same(lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2).batch(2))
    assert_same(lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2).unbatch())
    assert_same(lambda lib: arrays(lib, *UNEVEN["matrices"]).ragged_batch(2).unbatch())
    assert_same(lambda lib: arrays(lib, *UNEVEN["matrices"]).ragged_batch(2).unbatch().unbatch())
    assert_same(lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2, True).unbatch())
    assert_same(lambda lib: arrays(lib, *UNEVEN["vectors"]).ragged_batch(2).unbatch().batch(3))
    assert_same(lambda lib: lib.Dataset.range(7).ragged_batch(2, True).ragged_batch(2, True).unbatch())


@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (1, 2), (4,)])
def test_failures(bad):
    found = assert_same(lambda lib: counting(lib, 5, bad=bad).ragged_batch(2), spec="any")
    assert has_failed(found)


def test_behind_map_and_repeat():
    assert_same(lambda lib: counting(lib, 5).ragged_batch(2))
    assert_same(lambda lib: counting(lib, 5).repeat(2).ragged_batch(3, drop_remainder=True))
    assert_same(lambda lib: counting(lib, 3).repeat().ragged_batch(2), limit=5)
    assert_same(lambda lib: lib.Dataset.range(5).map(lambda x: x * 2).ragged_batch(2))


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", None, [2]])
def test_what_is_no_batch_size(size):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).ragged_batch(size), (TypeError, ValueError))


@pytest.mark.parametrize("drop", [1, None, "yes"])
def test_what_is_no_bool(drop):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).ragged_batch(2, drop), (TypeError, ValueError))

"""Tests of rebatch against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

from dataset import TensorSpec
from support.combinations import diagonals
from support.libraries import arrays, counting, fail_at

SIZES = [
    1,
    2,
    3,
    4,
    20,
    [2],
    [3, 3],
    [2, 3],
    [2, 0, 1],
    [0, 2],
    [0, 0, 3],
    [4, 0, 0],
    [0, 20],
    (1, 2),
    np.array([5, 1]),
]

SOURCES = {
    "10 by 4": lambda lib: lib.Dataset.range(10).batch(4),
    "8 by 4": lambda lib: lib.Dataset.range(8).batch(4, drop_remainder=True),
    "6 by 1": lambda lib: lib.Dataset.range(6).batch(1),
    "5 at once": lambda lib: lib.Dataset.from_tensors(np.arange(10).reshape(5, 2)),
    "nothing": lambda lib: lib.Dataset.range(0).batch(3),
    "no rows": lambda lib: lib.Dataset.from_tensors(np.zeros((0, 3))),
    "batches of different sizes": lambda lib: counting(lib, 5),
    "no rows here and there": lambda lib: arrays(lib, [[], [1, 2, 3], [], [], [4], []], (None,)),
    "text": lambda lib: lib.Dataset.from_tensors([b"a\0", b"", b"b"]).repeat(2),
    "two components": lambda lib: lib.Dataset.zip(
        {"b": lib.Dataset.range(7).batch(3), "a": (lib.Dataset.range(7).batch(3), lib.Dataset.range(7).batch(3))}
    ),
    "batches of batches": lambda lib: lib.Dataset.range(9).batch(3).batch(2),
    "beside None": lambda lib: lib.Dataset.from_tensors((np.arange(5), None)).repeat(2),
    "ragged": lambda lib: lib.Dataset.from_tensors(lib.from_splits([[0, 2, 3, 3]], np.arange(3))).repeat(2),
    "ragged, int32": lambda lib: lib.Dataset.from_tensors(
        lib.from_splits([[0, 2, 3, 3]], np.arange(3), np.int32)
    ).repeat(2),
    "ragged twice": lambda lib: lib.Dataset.from_tensors(
        lib.from_splits([[0, 2, 3, 3], [0, 1, 3, 3]], np.arange(3.0))
    ).repeat(2),
    "ragged batches": lambda lib: counting(lib, 7).ragged_batch(3),
    "padded batches": lambda lib: counting(lib, 7, shape=(None,)).padded_batch(3, [7]),
    "scalars known late": lambda lib: arrays(lib, [3, [1, 2, 3]], None),
}


@pytest.mark.parametrize(("source", "size", "drop"), diagonals(5, SOURCES, SIZES, [False, True]), ids=repr)
def test_sizes(source, size, drop):
    assert_same(lambda lib: SOURCES[source](lib).rebatch(size, drop))


@pytest.mark.parametrize("size", [1, 2, 4, 20], ids=repr)
def test_ragged_tensors_with_inner_dimensions(size):
    # tf.data raises errors for empty batches of these.
    splits, values = [[0, 2, 3, 3], [0, 1, 3, 3]], np.arange(6.0).reshape(3, 2)
    assert_same(lambda lib: lib.Dataset.from_tensors(lib.from_splits(splits, values)).repeat(2).rebatch(size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 20, [2, 1], [3, 3]], ids=repr)
@pytest.mark.parametrize("indices", [[[0, 0], [1, 1]], [[2, 1]], [[0, 0], [0, 1], [2, 0]], []], ids=repr)
def test_sparse(size, indices):
    # tf.data raises errors for empty sparse batches.
    values = np.arange(len(indices)) + 1.5
    assert_same(lambda lib: lib.Dataset.from_tensors(lib.sparse(indices, values, [3, 2])).repeat(3).rebatch(size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, [3, 0], [3, 1]], ids=repr)
@pytest.mark.parametrize("bad", [(0,), (4,), (9,), (2, 3), (2, 5)])
def test_failures(bad, size):
    def build(lib):
        check = lib.call(fail_at(*bad), TensorSpec((), np.int64))
        return lib.unfused(lib.Dataset.range(10).map(check)).batch(2).rebatch(size)

    assert has_failed(assert_same(build))


@pytest.mark.parametrize("size", [1, 2, 3, [3, 1], [0, 4]], ids=repr)
def test_components_of_different_lengths_fail_in_their_place(size):
    def build(lib):
        pairs = [(2, 2), (3, 2), (4, 4), (1, 2), (1, 1)]
        first, second = ([np.arange(pair[part]) for pair in pairs] for part in (0, 1))
        return lib.Dataset.zip(arrays(lib, first, (None,)), arrays(lib, second, (None,))).rebatch(size)

    assert has_failed(assert_same(build))


@pytest.mark.parametrize("size", [1, 2, 3, 5, [3, 1], [3, 0, 2]], ids=repr)
def test_rows_of_different_shapes_fail_in_their_batch(size):
    shapes = [(2, 2), (4, 3), (3, 3), (1, 1), (1, 2)]
    found = assert_same(lambda lib: arrays(lib, [np.ones(shape) for shape in shapes], (None, None)).rebatch(size))
    assert size == 1 or has_failed(found)


def test_behind_endless_data():
    assert_same(lambda lib: lib.Dataset.range(4).batch(4).repeat().rebatch(3), limit=5)
    assert_same(lambda lib: lib.Dataset.range(4).batch(4).repeat().rebatch([3, 0]), limit=5)


def test_chains():
    batches = SOURCES["8 by 4"]
    assert_same(lambda lib: batches(lib).rebatch(2).unbatch())
    assert_same(lambda lib: batches(lib).rebatch(3).rebatch(4))
    assert_same(lambda lib: batches(lib).rebatch(2).rebatch([2, 2]))
    assert_same(lambda lib: batches(lib).rebatch(2).batch(2, drop_remainder=True).unbatch())
    assert_same(lambda lib: counting(lib, 7).ragged_batch(3).rebatch(2).unbatch())


REFUSED = {
    "no sizes": lambda lib: lib.Dataset.range(4).batch(2).rebatch([]),
    "fractions": lambda lib: lib.Dataset.range(4).batch(2).rebatch(2.0),
    "fractions in a list": lambda lib: lib.Dataset.range(4).batch(2).rebatch([2, 1.0]),
    "text": lambda lib: lib.Dataset.range(4).batch(2).rebatch("2"),
    "None": lambda lib: lib.Dataset.range(4).batch(2).rebatch(None),
    "a matrix": lambda lib: lib.Dataset.range(4).batch(2).rebatch([[2]]),
    "scalars": lambda lib: lib.Dataset.range(4).rebatch(2),
    "a scalar component": lambda lib: lib.Dataset.zip(lib.Dataset.range(4), lib.Dataset.range(4).batch(1)).rebatch(2),
    "rows known to differ": lambda lib: lib.Dataset.from_tensors((np.zeros(2), np.zeros(3))).rebatch(2),
    "drop_remainder no bool": lambda lib: lib.Dataset.range(4).batch(2).rebatch(2, 1),
}


@pytest.mark.parametrize("build", REFUSED)
def test_what_both_refuse(build):
    assert_both_refuse(REFUSED[build], (TypeError, ValueError))

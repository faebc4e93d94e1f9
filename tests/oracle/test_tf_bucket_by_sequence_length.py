"""Tests of bucket_by_sequence_length against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

LENGTHS = [1, 2, 3, 4, 5, 0, 7, 2, 3, 2]


def rows(lib, lengths=LENGTHS, dtype=np.int64):
    """Return a dataset of vectors of the given lengths; the length is unknown in the spec."""
    arrays = [np.full(length, length).astype(dtype) for length in lengths]
    return lib.Dataset.from_generator(lambda: iter(arrays), output_signature=lib.TensorSpec((None,), dtype))


def length(lib):
    return lambda row: lib.cast(lib.length(row), np.int32)


def bucket(lib, dataset, *arguments, **options):
    return dataset.bucket_by_sequence_length(length(lib), *arguments, **options)


CASES = {
    "plain": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1]),
    "drop_remainder": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1], drop_remainder=True),
    "equal sizes, drop_remainder": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 2, 2], drop_remainder=True),
    "no boundaries": lambda lib: bucket(lib, rows(lib), [], [3]),
    "a boundary of zero": lambda lib: bucket(lib, rows(lib), [0, 3], [2, 3, 1]),
    "tuples of numbers": lambda lib: bucket(lib, rows(lib), (3, 5), (2, 3, 1)),
    "arrays of numbers": lambda lib: bucket(lib, rows(lib), np.array([3, 5]), np.array([2, 3, 1])),
    "to the boundary": lambda lib: bucket(lib, rows(lib), [3, 8], [2, 3, 1], pad_to_bucket_boundary=True),
    "to the boundary, as given": lambda lib: bucket(
        lib, rows(lib), [3, 8], [2, 3, 1], padded_shapes=[None], pad_to_bucket_boundary=True
    ),
    "padded_shapes": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1], padded_shapes=[9]),
    "padded_shapes and boundary": lambda lib: bucket(
        lib, rows(lib), [3, 8], [2, 3, 1], padded_shapes=[9], pad_to_bucket_boundary=True
    ),
    "padded_shapes too small": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1], padded_shapes=[3]),
    "padding_values": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1], padding_values=lib.const(-1, np.int64)),
    "floats": lambda lib: bucket(lib, rows(lib, dtype=np.float32), [3, 5], [2, 3, 1]),
    "no_padding": lambda lib: bucket(lib, rows(lib), [3, 5], [2, 3, 1], no_padding=True),
    "no_padding of equals": lambda lib: bucket(
        lib, rows(lib, [2, 4, 2, 4, 2]), [3], [2, 2], no_padding=True, padded_shapes=[9]
    ),
    "no_padding and boundary": lambda lib: bucket(
        lib, rows(lib, [2, 4, 2, 4, 2]), [3], [2, 2], no_padding=True, pad_to_bucket_boundary=True
    ),
    "one shape": lambda lib: bucket(lib, lib.Dataset.range(9).batch(2, drop_remainder=True), [3, 5], [2, 3, 1]),
    "one shape, boundary": lambda lib: bucket(
        lib, lib.Dataset.range(9).batch(2, drop_remainder=True), [4, 5], [2, 3, 1], pad_to_bucket_boundary=True
    ),
    "empty": lambda lib: bucket(lib, rows(lib, []), [3, 5], [2, 3, 1]),
    "endless": lambda lib: bucket(lib, rows(lib).repeat(), [3, 5], [2, 3, 1]),
    "beside numbers": lambda lib: lib.Dataset.zip(rows(lib), lib.Dataset.range(20)).bucket_by_sequence_length(
        lambda row, x: length(lib)(row), [3, 8], [2, 3, 1], pad_to_bucket_boundary=True
    ),
    "in dicts": lambda lib: lib.Dataset.zip({"b": rows(lib), "a": lib.Dataset.range(20)}).bucket_by_sequence_length(
        lambda parts: length(lib)(parts["b"]), [3, 5], [2, 3, 1]
    ),
    "with shapes in dicts": lambda lib: lib.Dataset.zip(
        {"b": rows(lib), "a": lib.Dataset.range(20)}
    ).bucket_by_sequence_length(
        lambda parts: length(lib)(parts["b"]), [3, 5], [2, 3, 1], padded_shapes={"a": [], "b": [None]}
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_buckets(case):
    assert_same(CASES[case], limit=12)


@pytest.mark.parametrize("no_padding", [False, True])
def test_texts(no_padding):
    texts = [[b"a"], [b"b", b"c"], [b"d"], [b"e", b"f\0"]]

    def build(lib):
        signature = lib.TensorSpec((None,), bytes)
        dataset = lib.Dataset.from_generator(lambda: (np.array(t, object) for t in texts), output_signature=signature)
        return bucket(lib, dataset, [2], [2, 2], no_padding=no_padding)

    assert_same(build)


def test_sparse_without_padding():
    def build(lib):
        dataset = lib.Dataset.from_tensors(lib.sparse([[0], [2]], np.array([5, 6]), [3])).repeat(3)
        return dataset.bucket_by_sequence_length(lambda x: lib.const(3, np.int32), [2], [2, 2], no_padding=True)

    assert_same(build, spec="compatible")


def test_ragged_without_padding():
    def build(lib):
        dataset = lib.Dataset.from_tensors(lib.ragged([[1, 2], [], [3]])).repeat(3)
        return dataset.bucket_by_sequence_length(lambda x: lib.const(3, np.int32), [2], [2, 2], no_padding=True)

    assert_same(build, spec="compatible")


@pytest.mark.parametrize("bad", [(0,), (2,), (5,), (1, 2, 3)], ids=str)
def test_failures(bad):
    def build(lib):
        check = lib.call(fail_at(*bad), TensorSpec((), np.int64))
        dataset = lib.Dataset.range(6).map(check).map(lambda x: lib.fill([x], x))
        return bucket(lib, dataset, [2, 4], [2, 2, 1])

    assert_same(build, spec="compatible")


@pytest.mark.parametrize(
    ("boundaries", "sizes", "options", "error"),
    [
        ([3, 5], [2, 3], {}, ValueError),
        ([3], [2, 3, 1], {}, ValueError),
        ([3, 5], [2, 3.0, 1], {}, TypeError),
        ([3.0, 5.0], [2, 3, 1], {}, TypeError),
        ([3, 5], [0, 0, 0], {}, ValueError),
        (3, [2, 3], {}, TypeError),
        ([3, 5], [2, 3, 1], {"padded_shapes": [3, 3]}, ValueError),
        ([3, 5], [2, 3, 1], {"padding_values": b"x"}, TypeError),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit(boundaries, sizes, options, error):
    assert_both_refuse(lambda lib: bucket(lib, rows(lib), boundaries, sizes, **options), error)


def test_what_cannot_be_padded():
    for make in (lambda lib: lib.sparse([[0]], [1], [2]), lambda lib: lib.ragged([[1], []])):
        assert_both_refuse(
            lambda lib, make=make: lib.Dataset.from_tensors(make(lib)).bucket_by_sequence_length(
                lambda x: lib.const(1, np.int32), [2], [1, 1]
            ),
            TypeError,
        )

"""Tests of counter against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

NUMBERS = [(0, 1), (5, 2), (5, -2), (0, 0), (-3, 3), (100, 100), (254, 1), (126, 50), (300, 1)]


INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.uint64]
# A negative number for uint64 crashes tf.data.
CASES = [(*pair, dtype) for pair in NUMBERS for dtype in INTEGERS if min(pair) >= 0 or dtype is not np.uint64]


@pytest.mark.parametrize(("start", "step", "dtype"), CASES)
def test_integers(start, step, dtype):
    assert_same(lambda lib: lib.Dataset.counter(start, step, dtype), limit=12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(
    ("start", "step"), [(0, 1), (0.5, 0.25), (0, 0.1), (3, -0.7), (65472, 16), (2.0**24 - 2, 1), (2**53 - 2, 1)]
)
def test_floats_round_at_each_step(start, step, dtype):
    assert_same(lambda lib: lib.Dataset.counter(start, step, dtype), limit=40)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("start", "step"), [(np.inf, 1), (np.inf, -np.inf), (np.nan, 1), (2**70, 1), (1e300, 1e300)])
def test_floats_without_bound(start, step, dtype):
    assert_same(lambda lib: lib.Dataset.counter(start, step, dtype), limit=5)


@pytest.mark.parametrize(
    ("start", "step", "dtype"),
    [(2**63 - 2, 1, np.int64), (-(2**63), -1, np.int64), (2**64 - 1, 1, np.uint64)],
)
def test_the_ends_of_64_bits(start, step, dtype):
    assert_same(lambda lib: lib.Dataset.counter(start, step, dtype), limit=5)


def test_the_defaults_and_scalars_of_numpy():
    assert_same(lambda lib: lib.Dataset.counter(), limit=3)
    assert_same(lambda lib: lib.Dataset.counter(np.int32(3), np.int64(2)), limit=3)
    assert_same(lambda lib: lib.Dataset.counter(dtype="int32").take(3))


@pytest.mark.parametrize(
    "arguments",
    [
        (0.5,),
        (2.0,),
        (0, 0.5),
        ("a",),
        (None,),
        (2**63,),
        (0, 1, bool),
        (0, 1, str),
        (0, [1, 2]),
    ],
    ids=str,
)
def test_what_is_refused(arguments):
    def build(lib):
        start, step, dtype = (*arguments, *(0, 1, np.int64)[len(arguments) :])
        return lib.Dataset.counter(start, step, lib._dtype(dtype) if hasattr(lib, "_dtype") else dtype).batch(2)

    assert_both_refuse(build, (TypeError, ValueError))

"""Tests of counter against tf.data's."""

import numpy as np
from compare import refused, same


def count(lib, case, *dtype):
    return lib.counter(*case, *dtype)


NUMBERS = [(0, 1), (5, 2), (5, -2), (0, 0), (-3, 3), (100, 100), (254, 1), (126, 50), (300, 1)]
INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32]
test_integers = same(count, NUMBERS, INTEGERS, limit=12)
# A negative number for uint64 crashes tf.data.
test_unsigned_integers = same(count, [pair for pair in NUMBERS if min(pair) >= 0], [np.uint64], limit=12)
test_floats_round_at_each_step = same(
    count,
    [(0, 1), (0.5, 0.25), (0, 0.1), (3, -0.7), (65472, 16), (2.0**24 - 2, 1), (2**53 - 2, 1)],
    [np.float16, np.float32, np.float64, np.complex64],
    limit=40,
)
test_floats_without_bound = same(
    count, [(np.inf, 1), (np.inf, -np.inf), (np.nan, 1), (2**70, 1), (1e300, 1e300)], [np.float32, np.float64], limit=5
)
test_the_ends_of_64_bits = same(
    count, [(2**63 - 2, 1, np.int64), (-(2**63), -1, np.int64), (2**64 - 1, 1, np.uint64)], limit=5
)
test_the_defaults_and_scalars_of_numpy = same(
    [
        lambda lib: lib.counter(),
        lambda lib: lib.counter(np.int32(3), np.int64(2)),
        lambda lib: lib.counter(dtype="int32"),
    ],
    limit=3,
)


def refused_count(lib, arguments):
    start, step, dtype = (*arguments, *(0, 1, np.int64)[len(arguments) :])
    return lib.counter(start, step, lib._dtype(dtype) if lib.name == "tf.data" else dtype).batch(2)


test_what_is_refused = refused(
    {
        (TypeError, ValueError): [
            *((0.5,), (2.0,), (0, 0.5), ("a",), (None,), (2**63,)),
            *((0, 1, bool), (0, 1, str), (0, [1, 2])),
        ]
    },
    refused_count,
)

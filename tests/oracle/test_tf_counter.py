"""Tests of counter against tf.data's."""

import numpy as np
from compare import refused, same

NUMBERS = [(0, 1), (5, 2), (5, -2), (0, 0), (-3, 3), (100, 100), (254, 1), (126, 50), (300, 1)]
INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32]
test_integers = same("counter(*numbers, dtype)", numbers=NUMBERS, dtype=INTEGERS, limit=12)
# A negative number for uint64 crashes tf.data.
UNSIGNED = [numbers for numbers in NUMBERS if min(numbers) >= 0]
test_unsigned_integers = same("counter(*numbers, np.uint64)", numbers=UNSIGNED, limit=12)
FLOATS = [(0, 1), (0.5, 0.25), (0, 0.1), (3, -0.7), (65472, 16), (2.0**24 - 2, 1), (2**53 - 2, 1)]
test_floats_round_at_each_step = same(
    "counter(*numbers, dtype)", numbers=FLOATS, dtype=[np.float16, np.float32, np.float64, np.complex64], limit=40
)
LARGE = [(np.inf, 1), (np.inf, -np.inf), (np.nan, 1), (2**70, 1), (1e300, 1e300)]
test_floats_without_bound = same("counter(*numbers, dtype)", numbers=LARGE, dtype=[np.float32, np.float64], limit=5)
ENDS = [(2**63 - 2, 1, np.int64), (-(2**63), -1, np.int64), (2**64 - 1, 1, np.uint64)]
OTHERS = [(), (np.int32(3), np.int64(2)), (0, 1, "int32")]
test_the_ends_of_64_bits_and_other_arguments = same("counter(*arguments)", arguments=ENDS + OTHERS, limit=5)
REFUSED = [(0.5,), (2.0,), (0, 0.5), ("a",), (None,), (2**63,), (0, [1, 2]), (0, 1, bool), (0, 1, str)]


def counted(lib, start, step=1, dtype=np.int64):
    return lib.counter(start, step, lib._dtype(dtype) if lib.name == "tf.data" else dtype).batch(2)


test_what_is_refused = refused({(TypeError, ValueError): REFUSED}, "counted(*case)")

"""Tests of range against tf.data's."""

import numpy as np
from compare import refused, same

BOUNDS = [(5,), (0,), (1,), (-3,), (2, 7), (7, 2), (3, 3), (-4, 2), (0, 10, 3), (0, 9, 3), (10, 0, -3), (0, 10, -1)]
BOUNDS += [(5, 0, -5), (-1, -8, -2), (2, 3, 100), (3, 2, -100), (2**40, 2**40 + 3), (2**62,), (-(2**62), 0, 2**60)]
BOUNDS += [(number,) for number in (np.int64(3), np.int32(3), np.uint8(3), np.array(3))]
test_bounds = same("range(*bounds)", bounds=BOUNDS, limit=20)
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
test_output_types = same(
    "range(*bounds, output_type=np.dtype(dtype).type)", bounds=[(5,), (0, 10, 4), (3, 0, -1)], dtype=DTYPES
)
test_numbers_that_the_output_type_cannot_hold = same(
    "range(*bounds, output_type=dtype)",
    bounds=[(250, 260), (-2, 2), (65_530, 65_540)],
    dtype=[np.int8, np.uint8, np.int16],
)
NUMBERS = [(), (1, 2, 3, 4), (0, 5, 0), (2**63, 2**63 + 2), (2**64,), (-(2**63) - 1, 0), (2**70, 0, -(2**69))]
NO_NUMBERS = [(2.5,), ("3",), (None,), ([1],), (0, 5, 1.5)]
test_what_is_no_range = refused({ValueError: NUMBERS, TypeError: NO_NUMBERS}, "range(*case)")
test_what_is_no_output_type = refused({TypeError: [bytes, bool, complex, None]}, "range(3, output_type=case)")

"""Tests of enumerate against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

TUPLES = {
    "tuples": lambda lib: lib.zip(lib.range(3), lib.range(3)),
    "tuples of one": lambda lib: lib.zip((lib.range(3),)),
    "dicts": lambda lib: lib.from_tensor_slices({"a": ["x", "y"], "b": np.zeros((2, 3))}),
    "enumerated": lambda lib: lib.range(3).enumerate(7),
    "ragged": lambda lib: lib.from_tensors(ELEMENTS["ragged"](lib)),
}
STARTS = [0, 1, -3, 2**40, np.int32(5)]
test_starts = same(
    lambda lib, source, start: source(lib).enumerate(start), SOURCES | TUPLES, STARTS, limit=12, spec="compatible"
)
test_the_least_number_of_64_bits = same(lambda lib: lib.range(3).enumerate(-(2**63)))
test_the_largest_number_of_64_bits = same(
    lambda lib, start: lib.range(5).enumerate(start), [2**63 - 1, 2**63 - 3], cardinality=False
)
test_what_is_refused = refused(
    {(TypeError, ValueError): [1.0, "0", None, [1], 2**63, -(2**63) - 1]},
    lambda lib, start: lib.range(3).enumerate(start),
)

"""Tests of enumerate against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

STARTS = [0, 1, -3, 2**40, -(2**63), np.int32(5)]
test_starts = same("source.enumerate(start)", source=SOURCES, start=STARTS, limit=12, spec="compatible")
test_structures = same("from_tensors(element).repeat(2).enumerate(7)", element=ELEMENTS)
test_the_largest_number_of_64_bits = same("range(5).enumerate(start)", start=[2**63 - 1, 2**63 - 3], cardinality=False)
test_what_is_refused = refused(
    {(TypeError, ValueError): [1.0, "0", None, [1], 2**63, -(2**63) - 1]}, "range(3).enumerate(case)"
)

"""Tests of take against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

COUNTS = [0, 1, 3, 6, 7, 8, 100, -1, np.int64(2), np.int32(3), np.array(2)]
test_counts = same(lambda lib, source, count: source(lib).take(count), SOURCES, COUNTS, step=2, limit=12)
# tf.data returns the count -5 as the cardinality, which is invalid; here it is that of take(-1).
test_any_negative_count_means_everything = same(
    lambda lib, source: source(lib).take(-5), SOURCES, limit=12, cardinality=False
)
test_structures = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(3).take(2), ELEMENTS)
NO_COUNTS = [2.0, "2", None, [2], np.array([2])]
test_what_is_no_count = refused({TypeError: NO_COUNTS}, lambda lib, count: lib.range(5).take(count))

"""Tests of take against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

COUNTS = [0, 1, 3, 6, 7, 8, 100, -1, np.int64(2), np.int32(3), np.array(2)]
test_counts = same("source.take(count)", source=SOURCES, count=COUNTS, step=2, limit=12)
# tf.data returns the count -5 as the cardinality, which is invalid; here it is that of take(-1).
test_any_negative_count_means_everything = same("source.take(-5)", source=SOURCES, limit=12, cardinality=False)
test_structures = same("from_tensors(element).repeat(3).take(2)", element=ELEMENTS)
NO_COUNTS = [2.0, "2", None, [2], np.array([2])]
test_what_is_no_count = refused({TypeError: NO_COUNTS}, "range(5).take(case)")

"""Tests of skip against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

COUNTS = [0, 1, 3, 6, 7, 8, 100, np.int64(2), np.int32(3), np.array(2)]
ENDS = {name: make for name, make in SOURCES.items() if not name.startswith("fails")}
test_counts = same("source.skip(count)", source=ENDS, count=COUNTS, step=2, limit=12)
test_a_negative_count_means_everything = same("source.skip(count)", source=SOURCES, count=[-1, -5], limit=12)
BAD = [(0,), (3,), (6,), (0, 6), (4, 5), (2, 3)]
# If an exception is raised while tf.data skips, it restarts the count after it; see tests/ops/test_skip.py.
test_failures = same(
    "failing(*case[1]).skip(case[0])",
    case=[(count, bad) for count in (0, 1, 2, 3) for bad in BAD if bad[0] >= count or count <= 1],
)
test_structures = same("from_tensors(element).repeat(3).skip(2)", element=ELEMENTS)
NO_COUNTS = [2.0, "2", None, [2], np.array([2])]
test_what_is_no_count = refused({TypeError: NO_COUNTS}, "range(5).skip(case)")

"""Tests of repeat against tf.data's."""

import numpy as np
from cases import SOURCES
from compare import programs, refused, same

OTHERS = programs(
    structure="from_tensors({'a': np.arange(2), 's': 'x'})",
    failing="failing(0, 2, size=3)",
    batches="range(5).batch(2)",
    repeated="range(2).repeat(2)",
    never="range(2).repeat(0)",
)
COUNTS = [None, 0, 1, 2, 3, -1, -5, np.int64(2)]
test_counts = same("source.repeat(count)", source=SOURCES | OTHERS, count=COUNTS, step=2, limit=14, spec="compatible")
test_failures_alone_without_end = same("failing(0, 1, size=2).repeat()", limit=7, spec="any")
test_what_is_refused = refused({(TypeError, ValueError): [2.0, "2", [2], [1, 2]]}, "range(3).repeat(case)")

"""Tests of repeat against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

SOURCES = {
    "three": lambda lib: lib.range(3),
    "one": lambda lib: lib.from_tensors({"a": np.arange(2), "s": "x"}),
    "empty": lambda lib: lib.range(0),
    "endless": lambda lib: lib.range(2).repeat(),
    "unknown": lambda lib: lib.range(9).filter(lambda x: x % 4 == 0),
    "unknown and empty": lambda lib: lib.range(9).filter(lambda x: x < 0),
    "failing": lambda lib: failing(lib, 0, 2, size=3),
    "batches": lambda lib: lib.range(5).batch(2),
    "repeated": lambda lib: lib.range(2).repeat(2),
    "never": lambda lib: lib.range(2).repeat(0),
}
COUNTS = [None, 0, 1, 2, 3, -1, -5, np.int64(2)]
test_counts = same(
    lambda lib, source, count: source(lib).repeat(count), SOURCES, COUNTS, step=2, limit=14, spec="compatible"
)
test_failures_alone_without_end = same(lambda lib: failing(lib, 0, 1, size=2).repeat(), limit=7, spec="any")
test_what_is_refused = refused(
    {(TypeError, ValueError): [2.0, "2", [2], [1, 2]]}, lambda lib, count: lib.range(3).repeat(count)
)

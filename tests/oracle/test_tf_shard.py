"""Tests of shard against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

SHARDS = [(1, 0), (2, 0), (2, 1), (3, 2), (7, 6), (8, 7), (100, 0), (100, 99), (np.int64(3), np.int32(1))]
test_shards = same("source.shard(*shard)", source=SOURCES, shard=SHARDS, step=2, limit=12)
# If an exception is raised in the middle of a range that it skips, tf.data restarts the count of skipped elements.
BAD = [(0,), (1,), (2,), (6,), (1, 2), (0, 1, 2, 3, 5, 6)]
test_failures = same("failing(*bad).shard(*shard)", bad=BAD, shard=[(1, 0), (2, 0), (2, 1)])
test_structures = same("from_tensors(element).repeat(3).shard(2, 1)", element=ELEMENTS)
OUT_OF_RANGE = [(2, 2), (2, 5), (2, -1), (0, 0), (-1, 0), (-2, -1)]
NO_NUMBERS = [(2.0, 1), (2, 1.0), ("2", 1), (None, 0), (2, None), ([2], 0)]
test_what_is_refused = refused({ValueError: OUT_OF_RANGE, TypeError: NO_NUMBERS}, "range(5).shard(*case)")

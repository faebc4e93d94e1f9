"""take, beside tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from libraries import fail_at

COUNTS = [0, 1, 3, 5, 9, -1, -5]

SOURCES = {
    "range": lambda lib: lib.Dataset.range(5),
    "empty": lambda lib: lib.Dataset.range(0),
    "endless": lambda lib: lib.Dataset.range(5).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: lib.Dataset.range(5).map(lib.call(fail_at(1, 4), TensorSpec((), np.int64))),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("source", SOURCES)
def test_counts(source, count):
    assert_same(lambda lib: SOURCES[source](lib).take(count), limit=12)


@pytest.mark.parametrize("count", [2.0, "2", None, [2]])
def test_what_is_no_count(count):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).take(count), TypeError)

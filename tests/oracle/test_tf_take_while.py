"""Tests of take_while against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

from dataset import TensorSpec
from support.libraries import fail_at

SOURCES = {
    "range": lambda lib: lib.range(6),
    "empty": lambda lib: lib.range(0),
    "endless": lambda lib: lib.range(6).repeat(),
    "unknown": lambda lib: lib.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 1, 4, size=6),
    "falls again": lambda lib: lib.from_tensor_slices(np.array([1, 9, 1, 1])),
}


test_ends = same(
    lambda lib, source, end: source(lib).take_while(lambda x: x < end), SOURCES, [0, 1, 3, 4, 99], limit=12
)


def small(lib, bad):
    return lib.call(lambda x: fail_at(*bad)(x) < 4, TensorSpec((), np.bool_))


BAD = [(0,), (2,), (3,), (0, 1, 2, 3), (5,)]
test_a_predicate_that_fails = same(lambda lib, bad: lib.range(6).take_while(small(lib, bad)), BAD)
NAMED = {"a": np.arange(5), "b": np.arange(5.0)}
test_structures = same(
    {
        "pairs": lambda lib: lib.range(5).enumerate(3).take_while(lambda i, x: i + x < 8),
        "dict": lambda lib: lib.from_tensor_slices(NAMED).take_while(lambda e: e["a"] < 3),
        "one": lambda lib: lib.from_tensor_slices((np.arange(5),)).take_while(lambda x: x < 3),
    }
)
test_constants = same(lambda lib, result: lib.range(3).take_while(lambda x: result), [True, False, np.True_])
test_what_is_no_function = refused({TypeError: [None, 3]}, lambda lib, predicate: lib.range(3).take_while(predicate))

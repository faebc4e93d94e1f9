"""Tests of take_while against tf.data's."""

import numpy as np
from cases import SOURCES
from compare import programs, refused, same

from dataset import TensorSpec
from support.libraries import fail_at

FALLS_AGAIN = programs(falls_again="from_tensor_slices(np.array([1, 9, 1, 1]))")
test_ends = same("source.take_while(lambda x: x < end)", source=SOURCES | FALLS_AGAIN, end=[0, 1, 3, 4, 99], limit=12)


def small(lib, bad):
    return lib.call(lambda x: fail_at(*bad)(x) < 4, TensorSpec((), np.bool_))


BAD = [(0,), (2,), (3,), (0, 1, 2, 3), (5,)]
test_a_predicate_that_fails = same("range(6).take_while(small(bad))", bad=BAD)
NAMED = {"a": np.arange(5), "b": np.arange(5.0)}
test_structures_and_constants = same(
    [
        "range(5).enumerate(3).take_while(lambda i, x: i + x < 8)",
        "from_tensor_slices(NAMED).take_while(lambda e: e['a'] < 3)",
        "from_tensor_slices((np.arange(5),)).take_while(lambda x: x < 3)",
        "range(3).take_while(lambda x: np.True_)",
        "range(3).take_while(lambda x: False)",
    ]
)
test_what_is_no_function = refused({TypeError: [None, 3]}, "range(3).take_while(case)")

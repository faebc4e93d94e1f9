"""Tests of scan against tf.data's."""

import numpy as np
from compare import programs, refused, same

from dataset import TensorSpec

VECTORS = TensorSpec((None,), np.int64), TensorSpec((None,), np.int64)
ZERO = programs(zero="const(0, np.int64)")["zero"]
SUM = lambda total, x: (total + x, total)


def push(state, x):
    return np.append(state, x), state


SOURCES = programs(
    range="range(5)",
    one="range(1)",
    endless="range(5).repeat()",
    unknown="range(9).filter(lambda x: x % 2 == 0)",
    failing="failing(1, 4, size=5)",
    failing_first="failing(0, 1, size=5)",
)
test_sources = same("source.scan(ZERO, SUM).batch(size)", source=SOURCES, size=[1, 2], limit=12)
test_an_empty_source = same("range(0).scan(ZERO, SUM)", spec="any")
test_failures_leave_the_state = same(
    "failing(*bad_inputs, size=5).scan(ZERO, lambda s, x: (s + check(*bad)(x), s * 10 + x))",
    bad=[(0,), (2,), (4,), (0, 1), (1, 2, 3)],
    bad_inputs=[(), (1,), (2, 3)],
)
STARTS = programs(
    tuple="(ZERO, ZERO), lambda s, x: ((s[0] + x, s[1] + 1), s)",
    dict="{'b': ZERO, 'a': ZERO}, lambda s, x: ({'a': s['b'] + x, 'b': s['a'] + 1}, s)",
    one_tuple="(ZERO,), lambda s, x: ((s[0] + x,), s)",
    nested="((ZERO,), {'k': ZERO}), lambda s, x: (((s[1]['k'],), {'k': s[0][0] + x}), s)",
    text="const('a'), lambda s, x: (s + b'b\\0', s)",
    float="const(0.5, np.float32), lambda s, x: (s * s, s)",
    vector="const([1, 2], np.int64), lambda s, x: (s + x, (s, x))",
    numpy="np.arange(3), lambda s, x: (s + x, s)",
    outputs_tuple="ZERO, lambda s, x: (s, (s, x))",
    outputs_dict="ZERO, lambda s, x: (s + x, {'k': x, 'l': (x, x)})",
    outputs_none_inside="ZERO, lambda s, x: (s + 1, (x, None))",
    outputs_list="ZERO, lambda s, x: (s + 1, [s, x])",
    outputs_list_inside="ZERO, lambda s, x: (s + 1, (x, [s, x]))",
    pair_as_a_list="ZERO, lambda s, x: [s + 1, x]",
    element="ZERO, lambda s, x: (x, x)",
)
test_states_and_outputs = same("range(4).scan(*start)", start=STARTS)
test_datasets_as_outputs = same("range(3).scan(ZERO, lambda s, x: (s + x, range(s)))", spec="any")
NAMED = {"a": np.arange(3), "b": np.arange(3.0)}
test_a_tuple_is_one_argument = same(
    [
        "range(4).enumerate(start=5).scan(ZERO, lambda s, e: (s + e[0] * e[1], s))",
        "from_tensor_slices((np.arange(3),)).scan(ZERO, lambda s, e: (s + e[0], e))",
        "from_tensor_slices(NAMED).scan(ZERO, lambda s, e: (s + e['a'], e))",
    ]
)
test_the_state_may_change_its_shape = same("range(4).scan(int64([]), call(push, VECTORS))", spec="compatible")
test_what_is_no_function = refused({TypeError: [None, 3]}, "range(3).scan(ZERO, case)")

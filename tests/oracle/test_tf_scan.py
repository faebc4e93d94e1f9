"""Tests of scan against tf.data's."""

import numpy as np
from cases import check, failing
from compare import refused, same

from dataset import TensorSpec

VECTOR = TensorSpec((None,), np.int64)


def zero(lib):
    return lib.const(0, np.int64)


def running_sum(total, x):
    return total + x, total


SOURCES = {
    "range": lambda lib: lib.range(5),
    "one": lambda lib: lib.range(1),
    "endless": lambda lib: lib.range(5).repeat(),
    "unknown": lambda lib: lib.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 1, 4, size=5),
    "failing first": lambda lib: failing(lib, 0, 1, size=5),
}
test_sources = same(
    lambda lib, source, size: source(lib).scan(zero(lib), running_sum).batch(size), SOURCES, [1, 2], limit=12
)
test_an_empty_source = same(lambda lib: lib.range(0).scan(zero(lib), running_sum), spec="any")


def step_that_fails(lib, *bad):
    return lambda s, x: (s + check(lib, *bad)(x), s * 10 + x)


test_failures_leave_the_state = same(
    lambda lib, bad, bad_inputs: failing(lib, *bad_inputs, size=5).scan(zero(lib), step_that_fails(lib, *bad)),
    [(0,), (2,), (4,), (0, 1), (1, 2, 3)],
    [(), (1,), (2, 3)],
)


STATES = {
    "tuple": (lambda lib: (zero(lib), zero(lib)), lambda s, x: ((s[0] + x, s[1] + 1), s)),
    "dict": (lambda lib: {"b": zero(lib), "a": zero(lib)}, lambda s, x: ({"a": s["b"] + x, "b": s["a"] + 1}, s)),
    "one-tuple": (lambda lib: (zero(lib),), lambda s, x: ((s[0] + x,), s)),
    "nested": (lambda lib: ((zero(lib),), {"k": zero(lib)}), lambda s, x: (((s[1]["k"],), {"k": s[0][0] + x}), s)),
    "text": (lambda lib: lib.const("a"), lambda s, x: (s + b"b\x00", s)),
    "float": (lambda lib: lib.const(0.5, np.float32), lambda s, x: (s * s, s)),
    "vector": (lambda lib: lib.const([1, 2], np.int64), lambda s, x: (s + x, (s, x))),
    "numpy": (lambda lib: np.arange(3), lambda s, x: (s + x, s)),
}


test_states = same(lambda lib, case: lib.range(4).scan(case[0](lib), case[1]), STATES)

OUTPUTS = {
    "tuple": lambda s, x: (s, (s, x)),
    "dict": lambda s, x: (s + x, {"k": x, "l": (x, x)}),
    "none inside": lambda s, x: (s + 1, (x, None)),
    "list": lambda s, x: (s + 1, [s, x]),
    "list inside": lambda s, x: (s + 1, (x, [s, x])),
    "pair as a list": lambda s, x: [s + 1, x],
    "element": lambda s, x: (x, x),
    "previous": lambda s, x: (x, s),
}


test_outputs = same(lambda lib, step: lib.range(4).scan(zero(lib), step), OUTPUTS)
test_datasets_as_outputs = same(
    lambda lib: lib.range(3).scan(zero(lib), lambda s, x: (s + x, lib.range(s))), spec="any"
)
NAMED = {"a": np.arange(3), "b": np.arange(3.0)}
test_a_tuple_is_one_argument = same(
    {
        "pairs": lambda lib: lib.range(4).enumerate(start=5).scan(zero(lib), lambda s, e: (s + e[0] * e[1], s)),
        "one": lambda lib: lib.from_tensor_slices((np.arange(3),)).scan(zero(lib), lambda s, e: (s + e[0], e)),
        "dict": lambda lib: lib.from_tensor_slices(NAMED).scan(zero(lib), lambda s, e: (s + e["a"], e)),
    }
)
test_the_state_may_change_its_shape = same(
    lambda lib: lib.range(4).scan(np.zeros(0, np.int64), lib.call(lambda s, x: (np.append(s, x), s), (VECTOR, VECTOR))),
    spec="compatible",
)
test_what_is_no_function = refused({TypeError: [None, 3]}, lambda lib, function: lib.range(3).scan(zero(lib), function))

"""Tests of scan against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

INT = TensorSpec((), np.int64)
VECTOR = TensorSpec((None,), np.int64)


def zero(lib):
    return lib.const(0, np.int64)


def running_sum(total, x):
    return total + x, total


SOURCES = {
    "range": lambda lib: lib.Dataset.range(5),
    "one": lambda lib: lib.Dataset.range(1),
    "endless": lambda lib: lib.Dataset.range(5).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: lib.Dataset.range(5).map(lib.call(fail_at(1, 4), INT)),
    "failing first": lambda lib: lib.Dataset.range(5).map(lib.call(fail_at(0, 1), INT)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    assert_same(lambda lib: SOURCES[source](lib).scan(zero(lib), running_sum), limit=12)
    assert_same(lambda lib: SOURCES[source](lib).scan(zero(lib), running_sum).batch(2), limit=12)
    assert_same(lambda lib: SOURCES[source](lib).scan(zero(lib), running_sum).take(2).repeat(2), limit=12)


def test_an_empty_source():
    assert_same(lambda lib: lib.Dataset.range(0).scan(zero(lib), running_sum), spec="any")


@pytest.mark.parametrize("bad", [(0,), (2,), (4,), (0, 1), (1, 2, 3)])
@pytest.mark.parametrize("bad_inputs", [(), (1,), (2, 3)])
def test_failures_leave_the_state(bad, bad_inputs):
    def build(lib):
        step = lib.call(lambda s, x: (s + fail_at(*bad)(x), s * 10 + x), (INT, INT))
        return lib.Dataset.range(5).map(lib.call(fail_at(*bad_inputs), INT)).scan(zero(lib), step)

    assert_same(build)


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


@pytest.mark.parametrize("state", STATES)
def test_states(state):
    initial, step = STATES[state]
    assert_same(lambda lib: lib.Dataset.range(4).scan(initial(lib), step))


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


@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs(output):
    assert_same(lambda lib: lib.Dataset.range(4).scan(zero(lib), OUTPUTS[output]))


def test_datasets_as_outputs():
    assert_same(
        lambda lib: lib.Dataset.range(3).scan(zero(lib), lambda s, x: (s + x, lib.Dataset.range(s))), spec="any"
    )


def test_a_tuple_is_one_argument():
    def pairs(lib):
        return lib.Dataset.range(4).enumerate(start=5)

    assert_same(lambda lib: pairs(lib).scan(zero(lib), lambda s, e: (s + e[0] * e[1], s)))
    assert_same(lambda lib: lib.Dataset.from_tensor_slices((np.arange(3),)).scan(zero(lib), lambda s, e: (s + e[0], e)))
    named = {"a": np.arange(3), "b": np.arange(3.0)}
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(named).scan(zero(lib), lambda s, e: (s + e["a"], e)))


def test_the_state_may_change_its_shape():
    def build(lib):
        step = lib.call(lambda s, x: (np.append(s, x), s), (VECTOR, VECTOR))
        return lib.Dataset.range(4).scan(np.zeros(0, np.int64), step)

    assert_same(build, spec="compatible")


@pytest.mark.parametrize("function", [None, 3])
def test_what_is_no_function(function):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).scan(zero(lib), function), TypeError)

"""Tests of group_by_reducer against tf.data.experimental.group_by_reducer."""

import numpy as np
from compare import FAILED, assert_same, refused, same

import dataset
from support.libraries import fail_at


def grouped(lib, source, key_func, init, reduce, finalize):
    if lib.name == "dataset":
        return source.group_by_reducer(key_func, dataset.Reducer(init, reduce, finalize))
    experimental = lib.tf.data.experimental
    return source.apply(experimental.group_by_reducer(key_func, experimental.Reducer(init, reduce, finalize)))


def zero(key):
    return np.int64(0)


def add(state, x):
    return state + x


def same_value(state):
    return state


REDUCERS = {
    "sums": (zero, add, same_value),
    "a state with the key": (
        lambda key: (key, np.int64(1)),
        lambda s, x: (s[0], s[1] * (x + 1)),
        lambda key, n: key + n,
    ),
    "dicts": (
        lambda key: {"n": np.int64(0)},
        lambda s, x: {"n": s["n"] + 1},
        lambda s: {"count": s["n"], "pair": (s["n"],)},
    ),
}
KEYS = {"few": lambda x: x % 3, "negative": lambda x: (x * 7) % 5 - 2, "each": lambda x: 0 - x, "one": lambda x: x * 0}

test_groups = same(
    lambda lib, size, key, reducer: grouped(lib, lib.range(size), key, *reducer), [0, 1, 10], KEYS, REDUCERS, spec="any"
)


def test_tuples_are_arguments_of_the_key_and_one_argument_of_the_reduction():
    def build(lib):
        pairs = lib.Dataset.zip((lib.range(9), lib.range(9, 18)))
        return grouped(lib, pairs, lambda a, b: a % 2, zero, lambda state, e: state + e[0] * e[1], same_value)

    assert len(assert_same(build, spec="compatible")) == 2


def test_a_state_may_grow():
    def build(lib):
        empty = lambda key: lib.cast(lib.fill([0], 0), np.int64)
        push = lambda state, x: state * 2 + x
        return grouped(lib, lib.range(9), lambda x: x % 2, empty, push, same_value)

    assert len(assert_same(build, spec="any")) == 2


def test_an_element_that_fails_is_left_out():
    def build(lib):
        check = lib.call(fail_at(3), dataset.TensorSpec((), np.int64))
        return grouped(lib, lib.range(9), lambda x: x % 2, zero, lambda s, x: s + check(x), same_value)

    found = assert_same(build, spec="any")
    assert found == [FAILED, 20, 13]


test_refused = refused(
    {
        TypeError: {
            "reducer": lambda lib: (
                lib.range(3).group_by_reducer(lambda x: x, 5)
                if lib.name == "dataset"
                else lib.range(3).apply(lib.tf.data.experimental.group_by_reducer(lambda x: x, 5))
            ),
            "functions": lambda lib: grouped(lib, lib.range(3), 1, 2, 3, 4),
        }
    }
)

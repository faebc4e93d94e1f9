"""Tests of group_by_reducer against tf.data.experimental.group_by_reducer."""

from compare import FAILED, assert_same, programs, refused, same

import dataset


def grouped(lib, source, key_func, *functions):
    if lib.name == "dataset":
        return source.group_by_reducer(key_func, dataset.Reducer(*functions))
    experimental = lib.tf.data.experimental
    return source.apply(experimental.group_by_reducer(key_func, experimental.Reducer(*functions)))


def returned(state):
    return state


def not_reduced(lib):
    if lib.name == "dataset":
        return lib.range(3).group_by_reducer(lambda x: x, 5)
    return lib.range(3).apply(lib.tf.data.experimental.group_by_reducer(lambda x: x, 5))


REDUCERS = programs(
    sums="(lambda key: int64(0)), (lambda s, x: s + x), returned",
    a_state_with_the_key="(lambda key: (key, int64(1))), (lambda s, x: (s[0], s[1] * (x + 1))), (lambda k, n: k + n)",
    dicts="(lambda key: {'n': int64(0)}), (lambda s, x: {'n': s['n'] + 1}), (lambda s: {'n': s['n'], 'p': (s['n'],)})",
    states_that_grow="(lambda key: cast(fill([0], 0), np.int64)), (lambda s, x: s * 2 + x), returned",
)
KEYS = {"few": lambda x: x % 3, "negative": lambda x: (x * 7) % 5 - 2, "each": lambda x: 0 - x, "one": lambda x: x * 0}
test_groups = same("grouped(range(size), key, *reducer)", size=[0, 1, 10], key=KEYS, reducer=REDUCERS, spec="any")
test_tuples_are_arguments_of_the_key_and_one_argument_of_the_reduction = same(
    "grouped(range(9).enumerate(9), lambda a, b: a % 2, lambda key: int64(0), lambda s, e: s + e[0] * e[1], returned)",
    spec="compatible",
)


def test_an_element_that_fails_is_left_out():
    def build(lib):
        check = lib.check(3)
        zero = lambda key: lib.const(0, "int64")
        return grouped(lib, lib.range(9), lambda x: x % 2, zero, lambda s, x: s + check(x), returned)

    assert assert_same(build, spec="any") == [FAILED, 20, 13]


test_refused = refused({TypeError: ["not_reduced()", "grouped(range(3), 1, 2, 3, 4)"]})

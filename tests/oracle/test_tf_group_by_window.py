"""Tests of group_by_window against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

INT = TensorSpec((), np.int64)

CASES = {
    "batches": lambda lib: lib.Dataset.range(10).group_by_window(lambda x: x % 3, lambda key, w: w.batch(2), 2),
    "smaller batches": lambda lib: lib.Dataset.range(20).group_by_window(lambda x: x % 3, lambda key, w: w.batch(2), 5),
    "windows of one": lambda lib: lib.Dataset.range(5).group_by_window(lambda x: x % 2, lambda key, w: w.batch(3), 1),
    "larger than the data": lambda lib: lib.Dataset.range(5).group_by_window(
        lambda x: x % 2, lambda key, w: w.batch(9), 100
    ),
    "one key": lambda lib: lib.Dataset.range(7).group_by_window(lambda x: x * 0 + 7, lambda key, w: w.batch(9), 3),
    "left in the order of keys": lambda lib: lib.Dataset.range(6).group_by_window(
        lambda x: 2 - x, lambda key, w: w.batch(9), 2
    ),
    "large keys": lambda lib: lib.Dataset.range(3).group_by_window(
        lambda x: (x % 2 * 2 - 1) * (2**62), lambda key, w: w.batch(9), 2
    ),
    "keys that come again": lambda lib: (
        lib.Dataset.range(6).repeat(2).group_by_window(lambda x: x // 2, lambda key, w: w.batch(9), 2)
    ),
    "the key": lambda lib: lib.Dataset.range(7).group_by_window(
        lambda x: x % 2, lambda key, w: w.map(lambda x: (key, x)), 2
    ),
    "nothing": lambda lib: lib.Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.skip(9), 2),
    "more than there was": lambda lib: lib.Dataset.range(7).group_by_window(
        lambda x: x % 2, lambda key, w: w.repeat(3), 2
    ),
    "twice the window": lambda lib: lib.Dataset.range(7).group_by_window(
        lambda x: x % 2, lambda key, w: w.concatenate(w.skip(1)), 3
    ),
    "neighbours": lambda lib: lib.Dataset.range(7).group_by_window(
        lambda x: x % 2, lambda key, w: lib.Dataset.zip(w, w.skip(1)), 3
    ),
    "endless inside": lambda lib: lib.Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.repeat(), 3),
    "endless": lambda lib: lib.Dataset.range(3).repeat().group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), 2),
    "empty": lambda lib: lib.Dataset.range(0).group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), 2),
    "tuples": lambda lib: lib.Dataset.zip(lib.Dataset.range(5), {"a": lib.Dataset.range(5, 10)}).group_by_window(
        lambda x, rest: (x + rest["a"]) % 3, lambda key, w: w.batch(2), 2
    ),
    "arrays": lambda lib: (
        lib.Dataset.range(9).batch(2).group_by_window(lambda row: row[0] % 3, lambda key, w: w.padded_batch(2), 2)
    ),
    "windows": lambda lib: (
        lib.Dataset.range(9)
        .window(2)
        .group_by_window(lambda window: window.cardinality(), lambda key, w: w.flat_map(lambda one: one).batch(4), 2)
    ),
    "a size for each key": lambda lib: lib.Dataset.range(20).group_by_window(
        lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=lambda key: key + 1
    ),
    "a size that is too small": lambda lib: lib.Dataset.range(12).group_by_window(
        lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=lambda key: key
    ),
    "a number for a size function": lambda lib: lib.Dataset.range(12).group_by_window(
        lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=lambda key: 2
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_groups(case):
    assert_same(CASES[case], limit=20, spec="any" if case in {"empty", "nothing"} else "compatible")


BAD = [(0,), (3,), (8,), (3, 4, 5), (0, 8)]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_failures(size, bad):
    def check(lib):
        return lib.call(fail_at(*bad), INT)

    def in_the_input(lib):
        return lib.Dataset.range(9).map(check(lib)).group_by_window(lambda x: x % 2, lambda key, w: w.batch(9), size)

    def in_key_func(lib):
        return lib.Dataset.range(9).group_by_window(lambda x: check(lib)(x) % 2, lambda key, w: w.batch(9), size)

    def in_what_comes_out(lib):
        return lib.Dataset.range(9).group_by_window(lambda x: x % 4, lambda key, w: w.map(check(lib)), size)

    def in_window_size_func(lib):
        return lib.Dataset.range(9).group_by_window(
            lambda x: x, lambda key, w: w.batch(9), window_size_func=lambda key: check(lib)(key) * 0 + size
        )

    for build in (in_the_input, in_key_func, in_what_comes_out, in_window_size_func):
        assert_same(build, spec="compatible")


def test_a_size_that_fails_is_asked_for_again():
    def build(lib):
        check = lib.call(fail_at(1), INT)
        return lib.Dataset.range(9).group_by_window(
            lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=lambda key: check(key) * 0 + 2
        )

    assert_same(build, spec="compatible")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"window_size": 2, "window_size_func": abs}, ValueError),
        ({"window_size": 0}, ValueError),
        ({"window_size": -1}, ValueError),
        ({"window_size": 2.0}, TypeError),
        ({"window_size": "2"}, TypeError),
        ({"window_size_func": 2}, TypeError),
    ],
)
def test_what_is_no_window_size(arguments, error):
    def build(lib):
        return lib.Dataset.range(5).group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), **arguments)

    assert_both_refuse(build, error)

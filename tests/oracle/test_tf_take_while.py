"""Tests of take_while against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

INT = TensorSpec((), np.int64)
BOOL = TensorSpec((), np.bool_)

SOURCES = {
    "range": lambda lib: lib.Dataset.range(6),
    "empty": lambda lib: lib.Dataset.range(0),
    "endless": lambda lib: lib.Dataset.range(6).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: lib.Dataset.range(6).map(lib.call(fail_at(1, 4), INT)),
    "falls again": lambda lib: lib.Dataset.from_tensor_slices(np.array([1, 9, 1, 1])),
}


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 99])
@pytest.mark.parametrize("source", SOURCES)
def test_ends(source, limit):
    assert_same(lambda lib: SOURCES[source](lib).take_while(lambda x: x < limit), limit=12)


@pytest.mark.parametrize("source", SOURCES)
def test_before_other_ops(source):
    assert_same(lambda lib: SOURCES[source](lib).take_while(lambda x: x < 4).repeat(2), limit=15)
    assert_same(lambda lib: SOURCES[source](lib).take_while(lambda x: x < 4).batch(3), limit=15)
    assert_same(lambda lib: SOURCES[source](lib).batch(2).take_while(lambda x: x[0] < 4), limit=15)


@pytest.mark.parametrize("bad", [(0,), (2,), (3,), (0, 1, 2, 3), (5,)])
def test_a_predicate_that_fails(bad):
    def build(lib):
        return lib.Dataset.range(6).take_while(lib.call(lambda x: fail_at(*bad)(x) < 4, BOOL))

    assert_same(build)
    assert_same(lambda lib: build(lib).batch(2))


def test_structures():
    assert_same(lambda lib: lib.Dataset.range(5).enumerate(3).take_while(lambda i, x: i + x < 8))
    named = {"a": np.arange(5), "b": np.arange(5.0)}
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(named).take_while(lambda e: e["a"] < 3))
    assert_same(lambda lib: lib.Dataset.from_tensor_slices((np.arange(5),)).take_while(lambda x: x < 3))


@pytest.mark.parametrize("result", [True, False, np.True_], ids=repr)
def test_constants(result):
    assert_same(lambda lib: lib.Dataset.range(3).take_while(lambda x: result))


@pytest.mark.parametrize("predicate", [None, 3])
def test_what_is_no_function(predicate):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).take_while(predicate), TypeError)

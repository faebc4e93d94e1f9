"""Tests of filter against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import assert_both_refuse, assert_same, attempt, oracle

from dataset import Dataset, SpecError, TensorSpec
from support.libraries import fail_at

BOOL = TensorSpec((), np.bool_)

PREDICATES = {
    "some": lambda x: x % 3 != 1,
    "all": lambda x: x >= 0,
    "the first": lambda x: x == 0,
    "a Python bool": lambda x: True,
}


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("source", SOURCES)
def test_sources(source, predicate):
    limit = 1 if source == "endless" and predicate == "the first" else 12
    assert_same(lambda lib: SOURCES[source](lib).filter(PREDICATES[predicate]), limit=limit)


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "endless"])
def test_none(source):
    assert_same(lambda lib: SOURCES[source](lib).filter(lambda x: x < 0))


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(2).filter(lambda *args: True))


def check(*bad):
    function = fail_at(*bad)
    return lambda x: np.bool_(function(x) % 2 == 0)


@pytest.mark.parametrize(
    "bad", [(0,), (3,), (6,), (0, 6), (2, 3, 4), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6)], ids=str
)
def test_failures(bad):
    assert_same(lambda lib: lib.Dataset.range(7).filter(lib.call(check(*bad), BOOL)))
    assert_same(lambda lib: lib.Dataset.range(7).filter(lib.call(check(*bad), BOOL)).take(2))
    assert_same(lambda lib: lib.Dataset.range(7).filter(lib.call(check(*bad), BOOL)).repeat(2))


def test_failures_below_and_inside():
    assert_same(lambda lib: failing(lib, 1, 4).filter(lib.call(check(0, 5), BOOL)))
    assert_same(
        lambda lib: (
            failing(lib, 1, 4).filter(lib.call(check(0, 5), BOOL)).map(lib.call(fail_at(2), TensorSpec((), np.int64)))
        )
    )


@pytest.mark.parametrize(
    "result", [lambda x: x, lambda x: 1, lambda x: "yes", lambda x: np.array([True]), lambda x: (True,), lambda x: None]
)
def test_a_predicate_that_gives_no_bool(result):
    """tf.data traces the predicate at construction; here it is first called when an element is requested."""
    assert isinstance(attempt(lambda lib: lib.Dataset.range(3).filter(result), oracle()), Exception)
    with pytest.raises(SpecError, match="must return a bool"):
        next(iter(Dataset.range(3).filter(result)))


@pytest.mark.parametrize("predicate", [None, 3, "abs", [bool]], ids=repr)
def test_what_is_no_function(predicate):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).filter(predicate), TypeError)

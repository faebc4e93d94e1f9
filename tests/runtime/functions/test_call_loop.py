"""Tests of calling user functions: one by one, on columns, and when they raise."""

import traceback

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, vectorized
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.functions.kernels.vectorized import chunk_of_columns
from dataset.testing import assert_elements_equal, outcomes


def shown(results):
    return [type(r).__name__ if isinstance(r, BaseException) else int(r) for r in results]


# One by one.


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_an_exception_takes_the_place_of_one_element(size):
    calls = []

    def fail_at_threes(x):
        calls.append(int(x))
        if x % 3 == 0:
            raise KeyError("three")
        return x

    dataset = Dataset.range(10).map(fail_at_threes)
    results = outcomes(iter(dataset.prefetch(size)))
    assert shown(results) == ["KeyError" if x % 3 == 0 else x for x in range(10)]
    assert calls == list(range(10))  # once each, and in order
    (note,) = results[6].__notes__
    assert note.startswith("in map(fail_at_threes) from test_call_loop.py:")
    assert note.endswith(", element 6")
    assert traceback.extract_tb(results[6].__traceback__)[-1].name == "fail_at_threes"


@pytest.mark.parametrize("function", [lambda x: None, vectorized(lambda x: None)])
def test_a_function_that_returns_nothing_is_an_error(function):
    (result,) = outcomes(iter(Dataset.range(1).map(function)))
    assert isinstance(result, SpecError)
    assert "must return an element, got None" in str(result)


# Functions that take columns.


def test_a_vectorized_function_that_raises_on_one_element_fails_for_that_one():
    calls = []

    @vectorized
    def no_threes(x):
        calls.append(x.tolist())
        if (x == 3).any():
            raise ValueError("three")
        return x

    assert no_threes(np.array([5])).tolist() == [5]  # it can be called directly
    results = outcomes(iter(Dataset.range(6).map(no_threes).prefetch(6)))
    assert shown(results) == [0, 1, 2, "ValueError", 4, 5]
    assert results[3].__notes__[0].endswith("element 3")
    calls.clear()
    outcomes(iter(Dataset.range(3, 5).map(no_threes)))
    assert calls == [[3], [4]]  # a single element that failed is not tried again


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:1], "columns of 3 values, one for each input element; the element has 1 values"),
        (lambda x: np.concatenate([x, x]), "the element has 6 values"),
        (lambda x: (x, x[:2]), "component 1 has 2 values"),
        (lambda x: {"a": x, "n": x.sum()}, "component 'n' has a scalar"),
        (lambda x: 5, "the element has a scalar"),
        (lambda x: np.array(5), "the element has a scalar"),
        (lambda x: b"abc", "a scalar"),
        (lambda x: [1, 2], "has 2 values"),
    ],
)
def test_a_vectorized_function_that_returns_no_columns_is_an_error(function, message):
    with pytest.raises(SpecError) as error:
        chunk_of_columns(function(Chunk(LEAF, 3, [np.arange(3)]).columns()[0]), 3)
    assert message in str(error.value)


def test_a_vectorized_function_gets_objects_where_shapes_differ():
    seen = []

    @vectorized
    def look(rows, names):
        seen.append((rows.dtype, rows.shape, names.dtype, [type(name) for name in names]))
        return np.array([len(row) for row in rows])

    dataset = Dataset.range(3).map(lambda x: (np.zeros(x), b"n")).map(look)
    assert next(iter(dataset.batch(3))).tolist() == [0, 1, 2]
    assert seen == [(np.dtype(object), (3,), np.dtype(object), [bytes] * 3)]


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        b"x\0",
        np.zeros(2),
        np.array([b"a", b"b\0"], object),
        np.datetime64(3, "s"),
        RaggedTensor([1, 2], [0, 1, 2]),
        SparseTensor([[1]], [5], [3]),
        (1, {"a": b"x", "b": np.ones((2, 2), np.uint8)}),
        {"a": 1, "b": None},
    ],
)
def test_the_identity_on_columns_is_the_identity_for_every_kind_of_component(value):
    same = vectorized(lambda *columns: columns if isinstance(value, tuple) else columns[0])
    dataset = Dataset.from_tensors(value).repeat(4)
    for mapped in (dataset.map(same), dataset.map(same).prefetch(4)):
        assert_elements_equal(outcomes(iter(mapped)), list(dataset))


def test_columns_that_a_vectorized_function_keeps_and_fills_again_are_copied():
    kept = np.zeros((1, 2))

    @vectorized
    def fill(x):
        kept[:] = x[:, None]
        return kept

    assert [row.tolist() for row in list(Dataset.range(4).map(fill))] == [[i, i] for i in range(4)]
    twice = vectorized(lambda x: (x[:, None],) * 2)
    first, second = next(iter(Dataset.range(3).map(twice).batch(3)))
    first += 1
    assert second.tolist() == [[0], [1], [2]]

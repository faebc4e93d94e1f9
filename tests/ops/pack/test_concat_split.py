"""concat_split: one stream of tokens, cut into rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.resuming import examples
from support.states import state_after


@examples(60)
@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 7), st.sampled_from([None, -1]), st.booleans())
def test_every_token_comes_once_and_in_order(lengths, length, separator, drop):
    arrays = [np.full(count, number, np.int32) for number, count in enumerate(lengths)]
    spec = TensorSpec((None,), np.int32)
    dataset = Dataset.from_generator(lambda: iter(arrays), output_signature=spec)
    end = [] if separator is None else [separator]
    stream = list(itertools.chain.from_iterable([*array.tolist(), *end] for array in arrays if len(array)))
    rows = [np.array(stream[start : start + length], np.int32) for start in range(0, len(stream), length)]
    if drop and rows and len(rows[-1]) < length:
        rows.pop()
    assert_elements_equal(list(dataset.concat_split(length, separator, drop)), rows)


@pytest.mark.parametrize("size", [1, 4, 30])
def test_keeps_the_contract_of_an_op(size):
    check_operator(
        lambda: Dataset.range(12).map(lambda n: np.full(n % 5, n)).concat_split(size, separator=99).repeat(2)
    )
    arrays = {"a": np.arange(24).reshape(8, 3), "b": np.ones((8, 3, 2), np.float32)}
    found = check_operator(lambda: Dataset.from_tensor_slices(arrays).concat_split(size, separator={"b": 0.5}))
    if size == 4:
        assert found[0]["a"].tolist() == [0, 1, 2, 0]
        assert found[0]["b"].tolist() == [[1, 1]] * 3 + [[0.5, 0.5]]


def test_takes_no_more_than_the_rows_need():
    def transform(numbers):
        return numbers.map(lambda n: np.full(4, n)).concat_split(3)

    check_laziness(transform, lambda k: -(-3 * k // 4))


def test_the_spec_has_the_length_if_all_rows_have_it():
    dataset = Dataset.from_tensor_slices(np.zeros((5, 3)))
    assert dataset.concat_split(4).element_spec == TensorSpec((None,), np.float64)
    assert dataset.concat_split(4, drop_remainder=True).element_spec == TensorSpec((4,), np.float64)


def test_a_failure_loses_no_tokens():
    rows = Dataset.range(5).map(fail_at(2)).map(lambda n: np.full(2, n)).concat_split(3)
    found = check_operator(lambda: rows)
    shown = [str(row) if isinstance(row, Exception) else row.tolist() for row in found]
    assert shown == [[0, 0, 1], "bad 2", [1, 3, 3], [4, 4]]


def test_arguments_are_checked():
    dataset = Dataset.from_tensor_slices({"a": np.zeros((2, 3), np.int32), "n": np.zeros(2)})
    with pytest.raises(ValueError, match="component 'n' is not an array of tokens"):
        dataset.concat_split(3)
    with pytest.raises(TypeError, match=r"separator has 0\.5"):
        dataset.select("a").concat_split(3, separator=0.5)
    with pytest.raises(ValueError, match="separator has the key 'b'"):
        Dataset.from_tensor_slices({"a": np.zeros((2, 3))}).concat_split(3, separator={"b": 1})
    found = outcomes(iter(Dataset.range(2).map(lambda n: (np.zeros(3), n)).concat_split(3)))
    assert {type(outcome) for outcome in found} == {SpecError}


def test_a_state_holds_less_than_two_rows():
    rows = Dataset.range(100).map(lambda n: np.full(10_000, n)).concat_split(16)
    assert len(str(state_after(rows, 10))) < 3000

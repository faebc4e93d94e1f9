"""unbatch: the rows of each element, one by one. tests/oracle compares elements, counts and failures with tf.data."""

import numpy as np
import pytest

from dataset import Dataset, SpecError
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ({"b": [1], "a": (np.zeros((1, 3)), None)}, [{"b": np.int64(1), "a": (np.zeros(3), None)}]),
        (np.arange(2).astype("M8[D]"), list(np.arange(2).astype("M8[D]"))),
        (np.zeros((3, 0, 2)), [np.zeros((0, 2))] * 3),  # rows of size 0 crash tf.data
    ],
    ids=repr,
)
def test_returns_the_rows_of_every_structure_and_kind(value, rows):
    check_operator(lambda: Dataset.from_tensors(value).unbatch(), rows)


def test_returns_the_rows_of_each_element_in_turn():
    check_operator(lambda: Dataset.range(5).batch(2).unbatch(), ints(0, 1, 2, 3, 4))
    lengths = [0, 2, 0, 0, 1, 0]
    check_operator(Dataset.range(6).map(lambda i: np.full(lengths[int(i)], i)).unbatch, ints(1, 1, 4))
    check_operator(lambda: Dataset.from_tensors(np.zeros((0, 3))).repeat(3).unbatch(), [])


def test_takes_an_element_when_its_first_row_is_requested():
    check_laziness(lambda numbers: numbers.batch(4).unbatch(), lambda k: 4 * -(-k // 4))
    check_laziness(lambda numbers: numbers.map(lambda n: np.zeros(2)).unbatch(), lambda k: -(-k // 2), size=24)


@pytest.mark.parametrize(
    ("value", "words"), [("text", "scalar"), ((np.zeros(2), 1), "scalar"), (([1, 2], [3]), "number of rows")], ids=repr
)
def test_refuses_elements_without_rows_at_construction(value, words):
    with pytest.raises(ValueError, match=rf"unbatch\(\).*{words}"):
        Dataset.from_tensors(value).unbatch()


def test_failures_keep_their_place():
    values = [{"a": np.zeros(2), "b": np.zeros(2)}, {"a": np.zeros(2), "b": np.zeros(3)}, {"a": np.zeros(2), "b": 1.0}]
    got = check_operator(lambda: Dataset.range(4).map(fail_at(3)).map(lambda x: values[int(x)]).unbatch())
    assert [type(outcome) for outcome in got] == [dict, dict, SpecError, SpecError, ValueError]
    assert "unbatch" in str(got[2])
    assert "'a' has 2" in str(got[2])
    assert "'b' has 3" in str(got[2])
    assert "component 'b' must be an array with rows, got a float64" in str(got[3])

"""unique: each element once, where it comes first."""

import enum

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, StateError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes


def test_takes_up_to_the_last_new_element():
    check_laziness(lambda numbers: numbers.map(lambda x: x // 5).unique(), lambda k: 5 * k - 4 if k else 0, size=46)


@pytest.mark.parametrize("dtype", np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?")
def test_of_numbers_of_every_dtype(dtype):
    values = np.array([1, 0, 1, 0, 1], dtype)
    for source in (values, values.astype(values.dtype.newbyteorder()), np.stack([values, values], 1)):
        assert_elements_equal(list(Dataset.from_tensor_slices(source).unique()), list(source[:2]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "complex64", "complex128"])
def test_nan_equals_nan_and_zero_equals_minus_zero_as_in_np_unique(dtype):
    values = np.array([0.0, -0.0, np.nan, -np.nan, 1, np.nan], dtype)
    for source in (values, np.stack([values, values], 1), values.reshape(6, 1, 1)):
        got = list(Dataset.from_tensor_slices(source).unique())
        assert_elements_equal(got, [source[0], source[2], source[4]])


@pytest.mark.parametrize("as_rows", [False, True])
def test_of_dates_and_text(as_rows):
    def source(values):
        dataset = Dataset.from_tensor_slices(values)
        return dataset.map(np.copy if values.ndim > 1 else (lambda x: x)) if as_rows else dataset

    days = np.array(["2020-01-01", "2020-01-02", "2020-01-01", "NaT", "NaT"], "M8[D]")
    check_operator(source(days).unique, [days[0], days[1], days[3]])
    text = np.array([["a", "bc"], ["ab", "c"], ["a", "bc"]], object)
    check_operator(source(text).unique, list(text[:2].astype("S").astype(object)))


def test_dtypes_tell_elements_apart():
    mixed = [np.int64(1), np.int32(1), np.float64(1), np.True_, b"1", np.array([1]), np.int64(1), b"1", np.float64(1)]

    def run(demand):
        return list(Dataset.range(9).map(lambda i: (mixed[i],)).unique().map(lambda x: np.array(repr(x))).batch(demand))

    assert np.concatenate(run(9)).tolist() == np.concatenate(run(1)).tolist() == [repr(x).encode() for x in mixed[:6]]


@pytest.mark.parametrize(
    "elements",
    [
        [((1, [1, 2]), {"z": "t"}), ((1, [1, 3]), {"z": "t"})],
        [RaggedTensor.from_rows([[1], [2, 3]]), RaggedTensor.from_rows([[1, 2], [3]])],
        [SparseTensor([[0]], [1], [3]), SparseTensor([[1]], [1], [3]), SparseTensor([[0]], [1], [4])],
    ],
    ids=repr,
)
def test_of_structures(elements):
    expected = [next(iter(Dataset.from_tensors(element))) for element in elements]
    check_operator(lambda: Dataset.from_generator(lambda: [*elements, *reversed(elements)]).unique(), expected)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def test_objects_are_equal_as_they_say_but_cannot_be_saved():
    colors = [Color.RED, Color.BLUE, Color.RED]
    dataset = Dataset.from_generator(lambda: colors).unique()
    assert list(dataset) == colors[:2]
    iterator = iter(dataset)
    next(iterator)
    with pytest.raises(StateError, match=r"unique from .* objects.*plain data.*RED"):
        iterator.state_dict()


def test_an_object_without_a_hash_fails_alone():
    class Bag:
        __hash__ = None

    values = [Color.RED, Bag(), Color.RED, Color.BLUE]
    for demand in (1, 9):
        got = outcomes(iter(Dataset.from_generator(lambda: values).unique().batch(demand).unbatch()))
        (error,) = [x for x in got if isinstance(x, Exception)]
        assert isinstance(error, SpecError)
        assert "Bag is not hashable" in str(error)
        assert error.__notes__[0].startswith("in unique from test_unique.py:")
        assert error.__notes__[0].endswith("element 1")
    for error in outcomes(iter(Dataset.range(2).map(lambda x: (x, Dataset.range(3))).unique())):
        assert isinstance(error, SpecError)
        assert "Dataset" in str(error)

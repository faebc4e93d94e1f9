"""map: each element through a user's function. tests/oracle compares results, failures and arguments with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import Sample, fail_at
from support.pipelines import Record


def test_takes_one_element_for_each():
    for function in (lambda x: x + 1, str):
        check_laziness(lambda numbers, function=function: numbers.map(function), lambda k: k)
    check_laziness(lambda numbers: numbers.map(lambda x: x + 1, synchronous=True), lambda k: k)


def test_calls_the_function_once_for_each_element_and_only_for_those_requested():
    calls = []

    def count(x):
        calls.append(int(x))
        return fail_at(7)(x)

    iterator = iter(Dataset.range(10).map(count))
    next(iterator)
    next(iterator)
    assert calls == [0, 1]
    calls.clear()
    outcomes(iter(Dataset.range(10).map(count).batch(4)))
    assert calls == list(range(10))


# What the function may return


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (np.datetime64("2024-01-01", "D"), np.datetime64("2024-01-01", "D")),
        (np.str_("a"), b"a"),
        (bytearray(b"a\x00"), b"a\x00"),
        ([[1, 2], [3]], (np.array([1, 2]), np.array([3]))),
        (Record("a", (1, 2)), Record(b"a", (np.int64(1), np.int64(2)))),
        (Sample(1, {"x": 2}), Sample(np.int64(1), {"x": np.int64(2)})),
    ],
    ids=repr,
)
def test_turns_every_kind_of_result_into_components(returned, expected):
    dataset = Dataset.range(3).map(lambda x: returned)
    assert_elements_equal(list(dataset), [expected] * 3)
    assert_elements_equal(list(dataset.shuffle(3)), [expected] * 3)  # which requests all at once


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5, 3], [np.int64(1), np.float64(2.5), np.int64(3)]),
        ([2**63, -1, 3], [np.uint64(2**63), np.int64(-1), np.int64(3)]),
        (["a", 1, b"b"], [b"a", np.int64(1), b"b"]),
        ([np.float32(1), 2.0, 3j], [np.float32(1), np.float64(2), np.complex128(3j)]),
    ],
    ids=repr,
)
def test_an_elements_dtype_does_not_depend_on_what_is_made_with_it(values, expected):
    dataset = Dataset.range(3).map(lambda x: values[int(x)])
    assert_elements_equal(list(dataset), expected)
    order = [int(x) for x in Dataset.range(3).shuffle(3, seed=1)]
    assert_elements_equal(list(dataset.shuffle(3, seed=1)), [expected[place] for place in order])


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (1, None),
        ((1, 2), (1, Record(2, 3))),
        ({"a": 1}, {"b": 1}),
        (Record(1, 2), Sample(1, 2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    ("source", "words"), [("map", "same structure"), ("generator", "earlier values had the structure")]
)
def test_a_result_of_another_structure_fails_alone(source, words, first, other):
    values = [first, other, first]
    dataset = Dataset.range(3).map(values.__getitem__) if source == "map" else Dataset.from_generator(lambda: values)
    assert [type(one) for one in outcomes(iter(dataset.batch(3))) if isinstance(one, Exception)] == [SpecError]
    got = outcomes(iter(dataset))
    assert_elements_equal([got[0], got[2]], list(Dataset.from_tensors(first)) * 2)
    assert isinstance(got[1], SpecError)
    assert words in str(got[1])
    assert "element 1" in got[1].__notes__[0]


# Exceptions


def test_the_note_names_the_op_and_counts_elements_that_failed_before():
    dataset = Dataset.range(6).map(fail_at(1, 2), name="decoder").map(fail_at(4)).batch(1)
    errors = [error for error in outcomes(iter(dataset)) if isinstance(error, Exception)]
    assert [error.__notes__[0].rpartition(" ")[2] for error in errors] == ["1", "2", "4"]
    assert "named 'decoder' from test_map.py:" in errors[0].__notes__[0]


# Specs


def test_the_spec_of_a_function_that_always_fails_is_its_exception():
    with pytest.raises(ValueError, match="bad") as caught:
        _ = Dataset.range(2).map(fail_at(0, 1)).element_spec
    assert "map(check)" in caught.value.__notes__[0]
    with pytest.raises(SpecError, match=r"map\(<lambda>\).*none"):
        _ = Dataset.range(0).map(lambda x: x).element_spec


# Who owns an array


@pytest.mark.parametrize("demand", [1, 3])
def test_a_function_may_fill_an_array_of_text_again(demand):
    buffer = np.array([b"", b""], object)

    def fill(x):
        buffer[:] = str(x).encode()
        return buffer

    rows = Dataset.range(3).map(fill).batch(demand).unbatch()
    assert [row.tolist() for row in rows] == [[b"0"] * 2, [b"1"] * 2, [b"2"] * 2]


@pytest.mark.parametrize("function", [lambda x: (x, x), lambda x: (x, x + 0), lambda x: {"a": x, "b": x}])
def test_components_made_from_one_value_share_no_memory_in_a_batch(function):
    for number, element in enumerate(Dataset.range(12).map(function).batch(4)):
        a, b = element.values() if isinstance(element, dict) else element
        a[:] = 99
        assert b.tolist() == list(range(4 * number, 4 * number + 4))


# Functions on columns


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_rows_of_different_shapes_that_a_vectorized_function_returns_are_arrays(kind):
    rows = [[1, 2], [3], [4, 5, 6]]

    @vectorized
    def cut(numbers):
        column = np.empty(len(numbers), object)
        column[:] = [kind(rows[number]) for number in numbers]
        return column

    @vectorized
    def unchanged(column):
        return column

    for dataset in (Dataset.range(3).map(cut), Dataset.range(3).map(cut).map(unchanged)):
        assert [row.tolist() for row in dataset] == rows
        assert [batch.to_list() for batch in dataset.ragged_batch(2)] == [rows[:2], rows[2:]]
        assert [tokens.tolist() for tokens, *_ in dataset.pack(6)] == [[1, 2, 3, 4, 5, 6]]


def test_a_vectorized_function_is_called_with_columns_and_may_return_structures():
    lengths = []

    @vectorized
    def combine(a, b):
        lengths.append(len(a))
        return {"sum": a + b, "rows": np.stack([a, b], axis=1)}

    expected = [{"sum": np.int64(10 + 2 * i), "rows": np.array([10 + i, i])} for i in range(5)]
    check_operator(lambda: Dataset.range(5).enumerate(start=10).map(combine), expected)
    lengths.clear()
    assert [len(batch["sum"]) for batch in Dataset.range(5).enumerate().map(combine).batch(3)] == lengths == [3, 2]


@pytest.mark.parametrize("calls", [None, 2])
def test_an_invalid_element_of_another_structure_fails_as_if_it_were_the_first(calls):
    results = [1.0, ("\ud800", 1), (2, 3)]
    mapped = Dataset.range(3).map(lambda i: results[i], calls)
    for pipeline in (mapped, mapped.map(lambda *parts: parts[0])):
        found = [type(outcome) for outcome in outcomes(iter(pipeline))]
        assert found == [np.float64, UnicodeEncodeError, SpecError]


@pytest.mark.parametrize("calls", [None, 2])
def test_lists_of_several_lengths_are_an_error_that_says_what_to_write(calls):
    texts = Dataset.from_tensor_slices([b"a b c", b"d e", b"f g h"])
    found = outcomes(iter(texts.map(lambda text: [len(word) for word in text.split()], calls)))
    assert [type(outcome) for outcome in found] == [tuple, SpecError, tuple]
    assert "returned (*, *), but earlier elements had the structure (*, *, *)" in str(found[1])
    assert "return np.asarray(values)" in str(found[1])
    inside = texts.map(lambda text: {"ids": [len(word) for word in text.split()]}, calls)
    assert [row["ids"].tolist() for row in inside] == [[1, 1, 1], [1, 1], [1, 1, 1]]

"""Tests of chunks: columns and rows are two forms of the same elements."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor
from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk, concatenate_columns, take_list
from dataset.testing import assert_elements_equal

DTYPES = st.sampled_from([np.int64, np.uint8, np.float16, np.float32, np.bool_, np.complex64])


@st.composite
def columns_of(draw, length):
    """Draw a column of ``length`` values: scalars, arrays of one shape, bytes, or arrays of several shapes."""
    shape = draw(st.lists(st.integers(0, 3), max_size=2))
    numbers = np.arange(length * int(np.prod(shape))).reshape(length, *shape)
    texts = [bytes([i]) for i in range(length)]
    mixed = [np.full(i % 3, i) for i in range(length)]
    ragged = [RaggedTensor([i], [0, 1]) for i in range(length)]
    return draw(st.sampled_from([numbers.astype(draw(DTYPES)), numbers.astype("M8[s]"), texts, mixed, ragged]))


@st.composite
def both_forms(draw):
    """Draw the same elements as a chunk of columns and as a chunk of rows."""
    length = draw(st.integers(1, 6))
    element = draw(st.sampled_from([0, (0, 0), {"b": 0, "a": (0,)}, (0, None, {"x": 0})]))
    structure = structure_of(element)
    columns = [draw(columns_of(length)) for _ in range(structure.num_components)]
    as_columns = Chunk(structure, length, columns)
    return as_columns, Chunk(structure, length, rows=Chunk(structure, length, columns).rows())


def check_same(a, b):
    assert (a.length, len(a)) == (b.length, len(b))
    assert_elements_equal(a.rows(), b.rows())
    rebuilt = a.structure.rows(a.columns(), a.length)
    assert_elements_equal(rebuilt, b.structure.rows(b.columns(), b.length))


@given(both_forms(), st.data())
def test_both_forms_hold_the_same_elements_and_agree_under_slicing_taking_and_striding(forms, data):
    check_same(*forms)
    assert forms[0].nbytes == forms[1].nbytes >= 0
    length = forms[0].length
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    step = data.draw(st.integers(1, 4))
    indices = np.array(data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=8)), np.intp)
    rows = forms[1].rows()
    for change, expected in (
        (lambda chunk: chunk.slice(start, stop), rows[start:stop]),
        (lambda chunk: chunk.take(indices), [rows[i] for i in indices]),
        (lambda chunk: chunk.stride(start, step), rows[start::step]),
    ):
        changed = list(map(change, forms))
        for chunk in changed:
            assert_elements_equal(chunk.rows(), expected)
        check_same(*changed)


@given(both_forms(), st.data())
def test_pieces_put_together_are_the_whole(forms, data):
    length = forms[0].length
    cuts = sorted({0, length, *data.draw(st.lists(st.integers(0, length), max_size=3))})
    pieces = [data.draw(st.sampled_from(forms)).slice(a, b) for a, b in itertools.pairwise(cuts)]
    check_same(Chunk.concatenate(pieces), forms[0])


def test_slices_share_memory_and_taking_makes_memory_of_its_own():
    array = np.arange(6).reshape(3, 2)
    chunk = Chunk(LEAF, 3, [array])
    assert np.shares_memory(chunk.slice(1, 3).columns()[0], array)
    assert not np.shares_memory(chunk.take(np.array([0, 1, 2])).columns()[0], array)
    assert take_list([5, 6, 7], np.array([], np.intp)) == []


def test_read_only_arrays_leave_the_original_writable():
    array, listed, ragged = np.zeros((2, 2)), [np.zeros(1), np.zeros(2)], [RaggedTensor(np.arange(3), [0, 3])] * 2
    chunk = Chunk(structure_of((0, 0, 0)), 2, [array, listed, ragged]).read_only()
    for one, other, last in chunk.rows():
        assert not any(component.flags.writeable for component in (one, other, last.values))
    assert array.flags.writeable
    assert all(a.flags.writeable for a in listed)


@pytest.mark.parametrize("dtype", ["i8", "f4", "S3"])
@pytest.mark.parametrize("lists", [(0,), (1,), (0, 2)])
def test_arrays_in_lists_are_joined_with_rows(dtype, lists):
    """A list of rows would be stacked again for each batch."""
    rows = np.arange(24).reshape(6, 2, 2).astype(dtype)
    parts = [list(rows[i : i + 2]) if i // 2 in lists else rows[i : i + 2] for i in (0, 2, 4)]
    joined = concatenate_columns(parts)
    assert isinstance(joined, np.ndarray)
    assert joined.dtype == rows.dtype
    np.testing.assert_array_equal(joined, rows)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([np.zeros(())], np.zeros(2)),  # a 0-dimensional array is not a scalar
        ([np.zeros((2, 2), order="F")], np.zeros((2, 2, 2))),
        ([np.zeros(2, np.float32)], np.zeros((2, 2))),
        ([np.zeros(3)], np.zeros((2, 2))),
        ([np.zeros(2), None], np.zeros((2, 2))),
        ([np.zeros(2).view(np.recarray)], np.zeros((2, 2))),
    ],
)
def test_other_values_stay_in_a_list(values, rows):
    for parts in ([values, rows], [rows, values]):
        joined = concatenate_columns(parts)
        assert isinstance(joined, list)
        assert sum(value is values[0] for value in joined) == 1


# An element that was returned belongs to the user.


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.from_tensors({"a": 1}).repeat(3),
        lambda: Dataset.from_tensors({"a": 1}).map(lambda d: {"a": d["a"]}).cache().repeat(3),
        lambda: Dataset.from_tensor_slices({"a": [1, 1]}).cache().repeat(3),
        lambda: Dataset.from_tensor_slices({"a": [1, 1]}).batch(2).unbatch(),
        lambda: Dataset.from_tensors(({"a": 1}, 2)).repeat(3).map(lambda d, x: d),
    ],
)
def test_changing_a_dict_that_came_out_changes_no_later_element(make):
    dataset = make()
    for _ in range(2):
        for element in dataset:
            assert element == {"a": 1}
            element["b"] = 2
            del element["a"]


def test_a_function_may_change_the_dict_it_is_given():
    slices = Dataset.from_tensor_slices({"image": np.zeros((4, 2)), "label": [1, 2, 3, 4]})

    def split(features):
        label = features.pop("label")
        features["half"] = features["image"][:1]
        return features, label

    for dataset in (slices.map(split), slices.map(split).batch(2).unbatch(), slices.batch(1).unbatch().map(split)):
        elements = list(dataset)
        assert [int(label) for _, label in elements] == [1, 2, 3, 4]
        assert all(sorted(features) == ["half", "image"] for features, _ in elements)
        assert all(features["image"].shape == (2,) for features, _ in elements)


def test_a_predicate_that_changes_its_dict_changes_no_element():
    dataset = Dataset.from_tensor_slices({"a": [1, 2, 3, 4]}).filter(lambda d: d.pop("a") > 1)
    assert [dict(element) for element in dataset] == [{"a": 2}, {"a": 3}, {"a": 4}]
    assert [batch["a"].tolist() for batch in dataset.batch(3)] == [[2, 3, 4]]

"""Tests of chunks: columns and rows are two forms of the same elements."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor
from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk, concatenate_columns, object_column, pack, take_list
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.testing import assert_elements_equal

DTYPES = st.sampled_from([np.int64, np.uint8, np.float16, np.float32, np.bool_, np.complex64])


@st.composite
def columns_of(draw, length):
    """Draw a column of ``length`` values: scalars, arrays of one shape, bytes, or arrays of several shapes."""
    kind = draw(st.sampled_from(["scalars", "arrays", "bytes", "mixed", "ragged", "dates"]))
    if kind == "scalars":
        return np.arange(length).astype(draw(DTYPES))
    if kind == "arrays":
        shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
        return np.arange(length * int(np.prod(shape))).astype(draw(DTYPES)).reshape(length, *shape)
    if kind == "bytes":
        return [bytes([i]) for i in range(length)]
    if kind == "mixed":
        return [np.full(i % 3, i) for i in range(length)]
    if kind == "dates":
        return np.arange(length).astype("M8[s]")
    return [RaggedTensor([i], [0, 1]) for i in range(length)]


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


@given(both_forms())
def test_both_forms_hold_the_same_elements(forms):
    check_same(*forms)


@given(both_forms(), st.data())
def test_both_forms_agree_under_slicing(forms, data):
    length = forms[0].length
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    rows = forms[1].rows()[start:stop]
    for chunk in forms:
        assert_elements_equal(chunk.slice(start, stop).rows(), rows)
    check_same(*(chunk.slice(start, stop) for chunk in forms))


@given(both_forms(), st.data())
def test_both_forms_agree_under_taking(forms, data):
    length = forms[0].length
    indices = np.array(data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=8)), np.intp)
    rows = [forms[1].rows()[i] for i in indices]
    for chunk in forms:
        assert_elements_equal(chunk.take(indices).rows(), rows)
    check_same(*(chunk.take(indices) for chunk in forms))


@given(both_forms(), st.data())
def test_both_forms_agree_under_striding(forms, data):
    start = data.draw(st.integers(0, forms[0].length - 1))
    step = data.draw(st.integers(1, 4))
    rows = forms[1].rows()[start::step]
    for chunk in forms:
        assert_elements_equal(chunk.stride(start, step).rows(), rows)


@given(both_forms(), st.data())
def test_pieces_put_together_are_the_whole(forms, data):
    length = forms[0].length
    cuts = sorted({0, length, *data.draw(st.lists(st.integers(0, length), max_size=3))})
    pieces = [data.draw(st.sampled_from(forms)).slice(a, b) for a, b in itertools.pairwise(cuts)]
    check_same(Chunk.concatenate(pieces), forms[0])


@given(both_forms())
def test_the_bytes_held_are_counted(forms):
    assert forms[0].nbytes >= 0
    assert forms[0].nbytes == forms[1].nbytes


def test_taking_makes_memory_of_its_own():
    array = np.arange(6).reshape(3, 2)
    taken = Chunk(LEAF, 3, [array]).take(np.array([0, 1, 2]))
    assert not np.shares_memory(taken.columns()[0], array)


def test_slices_share_memory():
    array = np.arange(6).reshape(3, 2)
    assert np.shares_memory(Chunk(LEAF, 3, [array]).slice(1, 3).columns()[0], array)


def test_read_only_arrays_leave_the_original_writable():
    array, listed = np.zeros((2, 2)), [np.zeros(1), np.zeros(2)]
    chunk = Chunk(structure_of((0, 0)), 2, [array, listed]).read_only()
    for row in chunk.rows():
        assert not any(component.flags.writeable for component in row)
    assert array.flags.writeable
    assert all(a.flags.writeable for a in listed)


def test_read_only_holds_for_the_values_of_ragged_tensors():
    ragged = RaggedTensor(np.arange(3), [0, 3])
    (row,) = Chunk(LEAF, 1, [[ragged]]).read_only().rows()
    assert not row.values.flags.writeable


def test_scalars_of_one_type_are_packed_and_nothing_else():
    assert pack([np.int8(1), np.int8(2)]).dtype == np.int8
    assert pack([np.float16(1)]).dtype == np.float16
    assert pack([np.int8(1), np.int16(2)]) == [1, 2]
    assert isinstance(pack([b"a", b"b"]), list)
    assert isinstance(pack((np.zeros(2), np.zeros(2))), list)
    assert isinstance(pack([np.datetime64(1, "s"), np.datetime64(1, "ms")]), list)


def test_columns_of_other_dtype_or_shape_are_joined_as_lists():
    assert isinstance(concatenate_columns([np.zeros(2), np.zeros(2)]), np.ndarray)
    joined = concatenate_columns([np.zeros(1, np.int64), np.ones(1, np.float32)])
    assert [type(value) for value in joined] == [np.int64, np.float32]
    assert isinstance(concatenate_columns([np.zeros((1, 2)), np.zeros((1, 3))]), list)
    assert concatenate_columns([np.zeros(1, np.int64), [b"a"]]) == [0, b"a"]


def test_an_object_column_has_one_dimension_whatever_is_in_it():
    assert object_column([np.zeros(2), np.zeros(2)]).shape == (2,)
    assert object_column([[1, 2], [3, 4]]).shape == (2,)
    assert object_column(np.arange(3)).dtype == object


@pytest.mark.parametrize("indices", [[], [2], [0, 2, 2]])
def test_taking_from_a_list_is_indexing(indices):
    assert take_list([5, 6, 7], np.array(indices, np.intp)) == [[5, 6, 7][i] for i in indices]


def test_what_is_canonical_is_kept_as_rows():
    rows = [(np.int64(1), b"a"), (np.int64(2), b"b")]
    assert chunk_of_rows(rows).rows() is rows


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
        return features, label

    for dataset in (slices.map(split), slices.map(split).batch(2).unbatch(), slices.batch(1).unbatch().map(split)):
        labels = []
        for features, label in dataset:
            assert list(features) == ["image"]
            assert features["image"].shape == (2,)
            labels.append(int(label))
        assert labels == [1, 2, 3, 4]


def test_a_function_may_add_to_the_dict_it_is_given():
    def add(features):
        features["half"] = features["image"][:1]
        return features

    for element in Dataset.from_tensor_slices({"image": np.ones((4, 2))}).map(add):
        assert sorted(element) == ["half", "image"]


def test_a_predicate_that_changes_its_dict_changes_no_element():
    dataset = Dataset.from_tensor_slices({"a": [1, 2, 3, 4]}).filter(lambda d: d.pop("a") > 1)
    assert [dict(element) for element in dataset] == [{"a": 2}, {"a": 3}, {"a": 4}]
    assert [batch["a"].tolist() for batch in dataset.batch(3)] == [[2, 3, 4]]

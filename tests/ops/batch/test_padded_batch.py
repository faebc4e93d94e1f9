"""padded_batch: batches of components of different sizes. tests/oracle compares shapes, values and refusals."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator
from support.op_cases import rows


def test_pads_to_the_largest_in_the_batch_or_to_a_given_shape():
    check_operator(lambda: rows().padded_batch(2), [np.array([[1, 0], [2, 2]]), np.array([[3, 3, 3]])])
    check_operator(
        lambda: rows().padded_batch(2, [4], -1, drop_remainder=True), [np.array([[1, -1, -1, -1], [2, 2, -1, -1]])]
    )


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.map(np.zeros).padded_batch(4), lambda k: 4 * k)


def test_each_component_has_its_shape_and_value():
    dataset = Dataset.range(1, 3).map(lambda n: {"a": np.full(n, n), "b": (["x"] * int(n), n)})
    shapes, values = {"b": ([None], []), "a": [3]}, {"b": ("?", None), "a": -1}
    text = np.array([[b"x", b"?"], [b"x", b"x"]], object)
    expected = {"a": np.array([[1, -1, -1], [2, 2, -1]]), "b": (text, np.array([1, 2]))}
    check_operator(lambda: dataset.padded_batch(2, shapes, values), [expected])
    with pytest.raises(TypeError, match="padded_shapes must have the structure of the elements"):
        list(dataset.padded_batch(2, {"a": [3]}))


def test_text_after_a_function_and_rows_of_a_ragged_tensor_are_padded():
    text = Dataset.from_tensor_slices(["a", "b"]).map(lambda text: np.array([text] * (1 + (text == b"a")), object))
    expected = [np.array([[b"a", b"a"], [b"b", b"z\0"]], object)]
    check_operator(lambda: text.padded_batch(2, padding_values="z\0"), expected)
    assert next(iter(text.padded_batch(2))).tolist() == [[b"a", b"a"], [b"b", b""]]
    ragged = RaggedTensor([1, 2, 3], [0, 1, 1, 3])
    check_operator(lambda: Dataset.from_tensor_slices(ragged).padded_batch(3), [np.array([[1, 0], [0, 0], [2, 3]])])


@pytest.mark.parametrize("value", [0.5, "x", 2**70, np.nan])
def test_a_value_that_the_dtype_cannot_hold_is_refused_or_fails_the_batch_if_the_spec_is_unknown(value):
    with pytest.raises(TypeError, match=r"padding_values has .* for the element, which is not a value of dtype"):
        Dataset.from_tensors(np.arange(2)).padded_batch(2, padding_values=value)
    with pytest.raises(TypeError, match="is not a value of dtype int64"):
        list(rows().padded_batch(3, padding_values=value))


def test_components_that_cannot_be_padded_fail_in_their_batch_and_are_named():
    lengths = Dataset.range(1, 4).map(lambda n: {"a": np.zeros(n), "b": np.zeros((1, n))})
    got = check_operator(lambda: lengths.padded_batch(2, {"a": [None], "b": [None, 2]}))
    assert_elements_equal(got[:1], [{"a": np.zeros((2, 2)), "b": np.zeros((2, 1, 2))}])
    assert isinstance(got[1], SpecError)
    assert "padded_batch(2) from test_padded_batch.py" in str(got[1])
    assert "component 'b' has shape (1, 3) in element 2, which does not fit into (1, 2)" in str(got[1])
    for other, words in ((np.zeros(3, "f8"), "dtype"), (np.zeros((2, 2), "f4"), "rank"), (["a"], "type")):
        values = [np.zeros(2, "f4"), other]
        with pytest.raises(SpecError, match=words):
            list(Dataset.from_generator(lambda values=values: values).padded_batch(2))
    with pytest.raises(SpecError, match="rank 2 in element 0, expected 1"):
        list(Dataset.from_generator(lambda: [np.zeros((1, 1))]).padded_batch(1, [None]))


@pytest.mark.parametrize("value", [RaggedTensor([1], [0, 1]), SparseTensor([[0]], [1], [2])], ids=["ragged", "sparse"])
def test_refuses_ragged_and_sparse_tensors_and_says_what_to_use(value):
    with pytest.raises(TypeError, match=r"use batch\(\)"):
        Dataset.from_tensors(value).padded_batch(2)
    with pytest.raises(SpecError, match=r"use batch\(\)"):
        list(Dataset.range(2).map(lambda x: value).padded_batch(2))

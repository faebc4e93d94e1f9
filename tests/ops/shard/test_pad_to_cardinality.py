"""pad_to_cardinality: zeros after the elements. tests/oracle compares with tf.data, where shapes must be known."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator
from support.op_cases import fail_at


def rows(tensors):
    return Dataset.from_tensor_slices({"a": tensors})


@pytest.mark.parametrize(
    ("source", "zero"),
    [
        (lambda: rows(np.arange(1, 4)), np.int64(0)),
        (lambda: rows([b"x", b"yz"]), b""),
        (lambda: rows([["a", "b"]]), np.array([b"", b""], object)),
        (lambda: rows(np.array(["2020-01-01"], "M8[D]")), np.datetime64(0, "D")),
        (lambda: rows(RaggedTensor.from_rows([[1], [2, 3]])), np.zeros(2, np.int64)),
        (lambda: rows(SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])), SparseTensor([], np.array([], int), [2])),
        (lambda: rows(np.arange(3)).map(lambda e: {"a": np.full(2, e["a"])}), np.zeros(2, np.int64)),
        (lambda: rows(np.arange(1, 6)).batch(2), np.zeros(1, np.int64)),
    ],
)
def test_zeros_follow_the_elements(source, zero):
    elements = [{**element, "valid": np.True_} for element in source()]
    expected = [*elements, *[{"a": zero, "valid": np.False_}] * 2]
    size = len(expected)
    check_operator(lambda: source().pad_to_cardinality(size).repeat(2), expected * 2)
    assert len(source().pad_to_cardinality(size)) == size


def test_is_lazy():
    check_laziness(
        lambda numbers: numbers.map(lambda x: {"a": x}).assert_cardinality(50).pad_to_cardinality(53), lambda k: k
    )


def test_zeros_cannot_be_changed_by_one_another():
    padded = list(rows(np.ones((1, 2))).pad_to_cardinality(3))
    with pytest.raises(ValueError, match="read-only"):
        padded[1]["a"][0] = 5


def test_a_failing_element_is_not_replaced():
    padded = Dataset.range(3).map(fail_at(1)).map(lambda x: {"a": x}).pad_to_cardinality(5)
    assert_elements_equal([int(e["a"]) for e in padded.ignore_errors()], [0, 2, 0, 0])


def test_without_elements_the_spec_must_determine_the_zeros():
    assert_elements_equal(list(rows([b"x"]).take(0).pad_to_cardinality(1)), [{"a": b"", "valid": np.False_}])
    unknown = rows([1]).map(lambda e: {"a": np.zeros(2)}).take(0).pad_to_cardinality(2)
    iterator = iter(unknown)
    with pytest.raises(SpecError, match="no element shows the shapes of the padding"):
        next(iterator)
    assert list(iterator) == []


def test_elements_that_are_not_dicts_are_refused():
    with pytest.raises(SpecError, match="elements must be dicts"):
        Dataset.range(2).pad_to_cardinality(3)
    unknown = Dataset.range(2).map(lambda x: x).pad_to_cardinality(3)
    with pytest.raises(SpecError, match="elements must be dicts"):
        next(iter(unknown))
    with pytest.raises(SpecError, match="elements must be dicts"):
        _ = unknown.element_spec
    with pytest.raises(TypeError, match="mask_key must be text, got 3"):
        rows([1]).pad_to_cardinality(2, 3)
    with pytest.raises(ValueError, match="known number of elements of at most 1, got 2; assert_cardinality"):
        rows([1, 2]).pad_to_cardinality(1)

"""bucket_by_sequence_length: batches of elements of similar length. tests/oracle compares options and components."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, TensorSpec
from dataset.testing import check_laziness, check_operator, outcomes

LENGTHS = [1, 2, 3, 4, 5, 0, 7, 2, 3]


def rows(lengths=LENGTHS):
    """Vectors whose spec states that their lengths differ."""
    return Dataset.from_generator(
        lambda: (np.full(length, length) for length in lengths), output_signature=TensorSpec((None,), np.int64)
    )


def bucketed(dataset, *arguments, **options):
    return dataset.bucket_by_sequence_length(len, *arguments, **options)


def padded(*lengths, to=None):
    width = max(lengths) if to is None else to
    return np.array([[length] * length + [0] * (width - length) for length in lengths], np.int64)


def test_returns_a_batch_for_each_full_bucket_and_the_rest_at_the_end():
    mapped = Dataset.from_tensor_slices(np.array(LENGTHS)).map(lambda n: np.full(n, n))
    for dataset in (rows(), mapped):
        check_operator(
            lambda dataset=dataset: bucketed(dataset, [3, 5], [2, 3, 1]),
            [padded(1, 2), padded(5), padded(7), padded(0, 2), padded(3, 4, 3)],
        )
    full = [padded(1, 2, 0), padded(5, 7), padded(3, 4, 3)]
    check_operator(lambda: bucketed(rows(), [3, 5], [3, 3, 2], drop_remainder=True), full)


def test_pads_to_one_less_than_the_boundary():
    expected = [padded(1, 2, to=2), padded(3, 4, 5, to=7), padded(0, 2, to=2), padded(7, 3, to=7)]
    check_operator(lambda: bucketed(rows(), [3, 8], [2, 3, 1], pad_to_bucket_boundary=True), expected)


def test_after_a_function_the_boundary_needs_shapes():
    mapped = Dataset.from_tensor_slices(np.array([1, 3, 2])).map(lambda n: (np.full(n, n), np.zeros(4)))
    arguments = (lambda row, _: len(row), [3, 5], [2, 2, 1])
    with pytest.raises(ValueError, match=r"bucket_by_sequence_length\(\): .* pass padded_shapes with None"):
        mapped.bucket_by_sequence_length(*arguments, pad_to_bucket_boundary=True)
    dataset = mapped.bucket_by_sequence_length(*arguments, padded_shapes=([None], [4]), pad_to_bucket_boundary=True)
    expected = [(padded(1, 2, to=2), np.zeros((2, 4))), (padded(3, to=4), np.zeros((1, 4)))]
    check_operator(lambda: dataset, expected)


def test_takes_no_more_than_fills_a_batch():
    check_laziness(lambda numbers: numbers.bucket_by_sequence_length(lambda x: 1, [2], [4, 3]), lambda k: 4 * k)
    # Elements of both buckets in turn: batches of 2 are full with the elements 2, 3, 6, 7, ...
    check_laziness(
        lambda numbers: numbers.bucket_by_sequence_length(lambda x: x % 2 + 1, [2], [2, 2]),
        lambda k: 2 * k + k % 2 if k < 25 else 51,
        size=40,
    )


@pytest.mark.parametrize("length", [2.0, None, True], ids=repr)
def test_a_length_that_is_not_an_int_fails_in_its_place(length):
    found = outcomes(iter(rows([1, 1, 1]).bucket_by_sequence_length(lambda row: length, [3], [2, 2])))
    assert len(found) == 3
    assert all("element_length_func must return an int, got" in str(error) for error in found)


def test_refuses_components_that_cannot_be_padded():
    ragged = Dataset.from_tensors({"a": RaggedTensor.from_rows([[1]]), "b": 1})
    with pytest.raises(TypeError, match=r"component 'a' is a RaggedTensorSpec.*use no_padding=True"):
        ragged.bucket_by_sequence_length(lambda parts: 1, [3], [2, 2])
    with pytest.raises(ValueError, match="unknown rank"):
        bucketed(Dataset.from_generator(lambda: [[1]], output_signature=TensorSpec(None, np.int64)), [3], [2, 2])


def taken_before_each_batch(lengths, boundaries, sizes):
    """How many elements have been taken when each batch is full, by counting."""
    waiting, found = [0] * len(sizes), []
    for count, length in enumerate(lengths, 1):
        bucket = sum(length >= boundary for boundary in boundaries)
        waiting[bucket] += 1
        if waiting[bucket] == sizes[bucket]:
            waiting[bucket] = 0
            found.append(count)
    return found


@pytest.mark.parametrize("sizes", [[64, 64, 64], [64, 32, 1], [20, 17, 40], [1, 1, 1]], ids=str)
@pytest.mark.parametrize("source", ["generator", "generator, by len", "arrays"])
def test_calls_the_function_only_for_the_elements_that_fill_each_batch(sizes, source):
    """Whatever the input: one that calls user code is not read ahead."""
    lengths = np.random.default_rng(1).geometric(0.3, 600)
    made, asked = [], []

    def generate():
        for length in lengths:
            made.append(length)
            yield np.full(length, length)

    def length_of(row):
        asked.append(len(row))
        return len(row)

    dataset = Dataset.from_generator(generate, output_signature=TensorSpec((None,), np.int64))
    if source == "arrays":  # these are read ahead
        dataset = Dataset.from_tensor_slices(RaggedTensor.from_rows([[length] * length for length in lengths.tolist()]))
    function = len if source == "generator, by len" else length_of
    iterator = iter(dataset.bucket_by_sequence_length(function, [3, 6], sizes, no_padding=source == "arrays"))
    expected = taken_before_each_batch(lengths, [3, 6], sizes)
    assert len(expected) > 5
    for count in expected:
        next(iterator)
        assert function is len or asked == lengths[:count].tolist()
        assert source == "arrays" or len(made) == count

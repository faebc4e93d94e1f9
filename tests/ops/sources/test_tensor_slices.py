"""from_tensor_slices: the rows of arrays."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, TensorSpec
from dataset.testing import assert_elements_equal, check_operator
from support.pipelines import Pair, Record


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "uint8",
        "int32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "datetime64[s]",
        "m8[D]",
    ],
)
def test_gives_rows_of_every_dtype(dtype):
    array = np.arange(6).reshape(3, 2).astype(dtype)
    check_operator(lambda: Dataset.from_tensor_slices(array), list(array))
    check_operator(lambda: Dataset.from_tensor_slices(array[:, 0]), list(array[:, 0]))
    assert Dataset.from_tensor_slices(array).element_spec == TensorSpec((2,), array.dtype)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2], [np.int64(1), np.int64(2)]),
        ([1.5], [np.float64(1.5)]),
        ([True, False], [np.True_, np.False_]),
        (["a", "b\x00"], [b"a", b"b\x00"]),
        ([b"a\x00\x00", b""], [b"a\x00\x00", b""]),
        (np.array(["ab", "c"]), [b"ab", b"c"]),
        ([["a"], ["b"]], [np.array([b"a"], object), np.array([b"b"], object)]),
        (([1, 2], [3, 4]), [(np.int64(1), np.int64(3)), (np.int64(2), np.int64(4))]),
        (([1, 2],), [(np.int64(1),), (np.int64(2),)]),
        (([1, 2], None), [(np.int64(1), None), (np.int64(2), None)]),
        (Pair([1], ["a"]), [Pair(np.int64(1), b"a")]),
        (Record([1], ["a"]), [Record(np.int64(1), b"a")]),
        (
            {"b": [1, 2], "a": ([3, 4], [5, 6])},
            [
                {"b": np.int64(1), "a": (np.int64(3), np.int64(5))},
                {"b": np.int64(2), "a": (np.int64(4), np.int64(6))},
            ],
        ),
        ([], []),
        (np.zeros((0, 3)), []),
        (np.zeros((2, 0)), [np.zeros(0), np.zeros(0)]),
    ],
    ids=repr,
)
def test_gives_rows_in_the_structure_of_the_arrays(given, expected):
    check_operator(lambda: Dataset.from_tensor_slices(given), expected)


def test_gives_the_python_objects_of_an_object_array():
    things = np.array([{1}, {2}], object)
    assert list(Dataset.from_tensor_slices(things)) == [{1}, {2}]


def test_gives_dense_vectors_from_ragged_rows():
    ragged = RaggedTensor.from_rows([[1, 2], [], [3]])
    expected = [np.array([1, 2]), np.array([], np.int64), np.array([3])]
    check_operator(lambda: Dataset.from_tensor_slices(ragged), expected)
    assert Dataset.from_tensor_slices(ragged).element_spec == RaggedTensorSpec((None,), np.int64, ragged_rank=0)


def test_gives_sparse_rows_from_a_sparse_matrix():
    sparse = SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 2])
    expected = [
        SparseTensor([[1]], [5], [2]),
        SparseTensor([], np.array([], np.int64), [2]),
        SparseTensor([[0]], [6], [2]),
    ]
    check_operator(lambda: Dataset.from_tensor_slices(sparse), expected)
    assert Dataset.from_tensor_slices(sparse).element_spec == SparseTensorSpec((2,), np.int64)


def test_refuses_a_sparse_vector_whose_rows_are_numbers():
    with pytest.raises(ValueError, match=r"'s' must have two or more dimensions.*shape \(3,\)"):
        Dataset.from_tensor_slices({"s": SparseTensor([[1]], [5], [3]), "x": [1, 2, 3]})


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.skip(3).take(20),
        lambda d: d.shard(3, 1),
        lambda d: d.shuffle(10, seed=2),
        lambda d: d.shuffle(None, seed=2).repeat(2),
        lambda d: d.padded_batch(4),
        lambda d: d.ragged_batch(4),
        lambda d: d.window(3).flat_map(lambda window: window),
        lambda d: Dataset.sample_from_datasets([d, d], seed=1),
        lambda d: d.shuffle(5, seed=1).map(lambda row: row + 1).padded_batch(3),
    ],
)
def test_ragged_rows_are_those_that_they_would_be_one_by_one(change):
    rows = [np.arange(number % 7, dtype=np.int32) + number for number in range(50)]
    ragged = Dataset.from_tensor_slices(RaggedTensor.from_rows(rows))
    single = Dataset.from_generator(lambda: rows, output_signature=TensorSpec((None,), np.int32))
    assert_elements_equal(list(change(ragged)), list(change(single)))
    check_operator(lambda: change(ragged))


def test_gives_text_of_ragged_and_sparse_values_as_bytes():
    ragged = RaggedTensor.from_rows([["a", "ü"], []], object)
    expected = [np.array([b"a", "ü".encode()], object), np.array([], object)]
    check_operator(lambda: Dataset.from_tensor_slices(ragged), expected)
    sparse = SparseTensor([[0, 1]], np.array(["a"]), [1, 2])
    found = check_operator(lambda: Dataset.from_tensor_slices(sparse))
    assert found == [SparseTensor([[1]], np.array([b"a"], object), [2])]


def test_knows_spec_and_length_of_no_rows():
    dataset = Dataset.from_tensor_slices(np.zeros((0, 3), np.float32))
    assert (len(dataset), dataset.element_spec) == (0, TensorSpec((3,), np.float32))


def test_does_not_copy_the_array_and_gives_read_only_rows():
    array = np.zeros((3, 2))
    for row in Dataset.from_tensor_slices(array):
        assert np.shares_memory(row, array)
        assert not row.flags.writeable
    assert array.flags.writeable


def test_gives_read_only_rows_of_ragged_and_sparse_values():
    ragged = RaggedTensor(np.arange(3), [0, 2, 3])
    for row in Dataset.from_tensor_slices(ragged):
        assert not (np.shares_memory(row, ragged.values) and row.flags.writeable)
    sparse = SparseTensor([[0, 1], [1, 0]], np.array([5, 6]), [2, 2])
    for row in Dataset.from_tensor_slices(sparse):
        assert not (np.shares_memory(row.values, sparse.values) and row.values.flags.writeable)


def test_a_batch_of_rows_never_lets_the_user_write_into_the_source():
    array = np.zeros((4, 2))
    for batch in Dataset.from_tensor_slices(array).batch(2):
        if batch.flags.writeable:
            batch[:] = 1
    assert not array.any()


@pytest.mark.parametrize("scalar", [3, "text", np.float32(1), b"x"])
def test_refuses_a_scalar(scalar):
    with pytest.raises(ValueError, match=r"from_tensor_slices\(\).*from_tensors"):
        Dataset.from_tensor_slices(scalar)


def test_refuses_a_scalar_component_by_its_name():
    with pytest.raises(ValueError, match="label"):
        Dataset.from_tensor_slices({"image": [1, 2], "label": 3})


def test_refuses_components_of_different_lengths():
    with pytest.raises(ValueError, match=r"same number of rows.*'a' has 2.*'b' has 1"):
        Dataset.from_tensor_slices({"b": [1], "a": [1, 2]})


@pytest.mark.parametrize("empty", [None, (), {}, (None,)])
def test_refuses_an_element_without_components(empty):
    with pytest.raises(ValueError, match=r"from_tensor_slices\(\).*component"):
        Dataset.from_tensor_slices(empty)


def test_gives_the_same_rows_again():
    dataset = Dataset.from_tensor_slices(np.arange(5))
    assert_elements_equal(list(dataset), list(dataset))


def test_takes_rows_of_a_non_contiguous_and_a_foreign_endian_array():
    array = np.arange(12).reshape(3, 4)[:, ::2].astype(">i4")
    check_operator(lambda: Dataset.from_tensor_slices(array).batch(3), [array])


def test_rows_of_several_lengths_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"from_tensor_slices\(\): .*component 'b' .*RaggedTensor\.from_rows\(\)"):
        Dataset.from_tensor_slices({"a": [1, 2], "b": [[1, 2], [3]]})

"""Tests of to_torch(): the conversion of each kind of value, and of elements of these values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from dataset import Dataset, RaggedTensor, SparseTensor, TensorSpec


def pointer(array):
    return array.__array_interface__["data"][0]


def only(value):
    """Return the tensor for a value that a function has just computed."""
    return next(iter(Dataset.range(1).map(lambda _: value() if callable(value) else value).to_torch()))


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_a_writable_array_shares_its_memory_with_the_tensor(dtype):
    made = []

    def make(_):
        array = np.ones(4, dtype)
        made.append(pointer(array))
        return array

    (tensor,) = Dataset.range(1).map(make).to_torch()
    assert (tensor.data_ptr(), tensor.tolist()) == (made[0], [1] * 4)


@pytest.mark.parametrize("chain", [lambda d: d, lambda d: d.batch(2), lambda d: d.shuffle(9, seed=1).cache().batch(2)])
def test_writing_to_a_tensor_changes_no_source_and_no_cache(chain):
    source = np.arange(12).reshape(6, 2)
    tensors = chain(Dataset.from_tensor_slices(source)).to_torch()
    for tensor in tensors:
        assert not np.shares_memory(tensor.numpy(), source)
        tensor.fill_(-1)
    assert source.ravel().tolist() == list(range(12))
    assert sorted(int(x) for tensor in tensors for x in tensor.ravel()) == list(range(12))


NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("code", NUMBERS)
def test_dtypes_of_numbers_are_kept(code):
    dtype = np.dtype(code)
    for shape in [(), (3,), (0, 2), (2, 1, 2)]:
        array = np.ones(shape, dtype)
        tensor = only(lambda: array.copy()[()])
        assert tensor.dtype is torch.from_numpy(np.ones(1, dtype)).dtype
        assert tuple(tensor.shape) == shape
        assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_small_floats_of_ml_dtypes_are_those_of_torch(name):
    array = np.array([1, 2, 0.5], getattr(ml_dtypes, name))
    tensor = only(array.copy)
    assert tensor.dtype is getattr(torch, name)
    assert tensor.to(torch.float32).tolist() == [1, 2, 0.5]
    scalar = only(lambda: array[1])
    assert (scalar.dtype, scalar.shape, float(scalar)) == (tensor.dtype, (), 2.0)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5, dtype=">i4"),
        np.arange(5.0).astype(">f8"),
        np.arange(5)[::-1],
        np.arange(10)[::2],
        np.arange(6).reshape(2, 3).T,
        np.arange(12).reshape(3, 4)[:, ::-2],
        np.ndarray((3,), np.int32, buffer=bytearray(b"\1\0\0\0\0\0\0\2\0\0\0\0\0\0\3\0\0\0"), strides=(6,)),
        np.broadcast_to(np.arange(3), (2, 3)),
    ],
    ids=["big-endian", "big-endian floats", "reversed", "strided", "transposed", "both", "odd strides", "broadcast"],
)
def test_arrays_of_any_layout_and_byte_order_are_converted(array):
    tensor = only(array)
    assert tensor.tolist() == array.tolist()
    tensor.fill_(0)  # the memory must not be shared by several values


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[ms]", np.longdouble])
def test_a_dtype_that_torch_does_not_have_is_refused_at_the_call(dtype):
    dataset = Dataset.from_tensor_slices({"time": np.zeros(3, dtype), "x": np.zeros(3)})
    with pytest.raises(TypeError, match=r"to_torch\(\): component 'time': torch has no tensors of dtype .*map\(\)"):
        dataset.to_torch()
    unknown = dataset.map(lambda e: e)  # its spec is known only at run time
    with pytest.raises(TypeError, match="torch has no tensors of dtype"):
        next(iter(unknown.to_torch()))
    assert next(iter(dataset.select("x").to_torch())) == 0
    with pytest.raises(TypeError, match="the element: torch has no tensors"):
        Dataset.from_generator(pytest.fail, output_signature=TensorSpec((), dtype)).to_torch()


def test_text_is_bytes_in_lists_and_python_objects_are_unchanged():
    dataset = Dataset.from_tensor_slices([["a", "bc"], ["", "d"]])
    assert list(dataset.to_torch()) == [[b"a", b"bc"], [b"", b"d"]]
    assert list(dataset.unbatch().to_torch()) == [b"a", b"bc", b"", b"d"]
    assert list(dataset.batch(2).to_torch()) == [[[b"a", b"bc"], [b"", b"d"]]]
    ragged = RaggedTensor.from_rows([np.array([b"a", b"b"], object), np.array([], object), np.array([b"c"], object)])
    assert only(ragged) == [[b"a", b"b"], [], [b"c"]]
    thing = object()
    assert only(lambda: (thing, None)) == (thing, None)


def test_a_ragged_tensor_becomes_a_jagged_one():
    tensor = only(RaggedTensor.from_rows([[1, 2], [], [3, 4, 5]]))
    assert tensor.layout is torch.jagged
    assert [row.tolist() for row in tensor.unbind()] == [[1, 2], [], [3, 4, 5]]
    (batch,) = Dataset.range(3).map(np.arange).ragged_batch(3).to_torch()
    assert [row.tolist() for row in batch.unbind()] == [[], [0], [0, 1]]


def test_two_ragged_dimensions_are_refused_with_a_way_out():
    ragged = RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 2, 3]])
    with pytest.raises(TypeError, match=r"one ragged dimension; .*to_tensor\(\)"):
        only(ragged)
    with pytest.raises(TypeError, match="the element: torch's nested tensors"):
        Dataset.from_tensors(ragged).to_torch()


def test_a_sparse_tensor_becomes_a_sparse_one_or_an_error():
    sparse = SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 3])
    tensor = only(sparse)
    assert tensor.layout is torch.sparse_coo
    assert tensor.to_dense().tolist() == sparse.to_dense().tolist()
    with pytest.raises(RuntimeError, match="size"):  # not broken memory
        only(SparseTensor([[5, 5]], [1.0], [2, 2]))
    with pytest.raises(TypeError, match="no sparse tensors of text"):
        only(SparseTensor([[0]], np.array([b"a"], object), [2]))


def test_a_dataset_in_an_element_becomes_a_dataset_of_tensors():
    windows = [list(window) for window in Dataset.range(5).window(2).to_torch()]
    assert windows == [[torch.tensor(0), torch.tensor(1)], [torch.tensor(2), torch.tensor(3)], [torch.tensor(4)]]
    pairs = Dataset.from_tensor_slices({"a": np.arange(4)}).window(2).to_torch()
    assert [[int(x) for x in pair["a"]] for pair in pairs] == [[0, 1], [2, 3]]
    assert [len(pair["a"]) for pair in pairs] == [2, 2]


def test_passes_have_the_orders_of_as_many_iterations():
    def make():
        return Dataset.range(8).shuffle(8, seed=3)

    plain = make()
    expected = [[int(x) for x in plain] for _ in range(4)]
    dataset = make()
    tensors = dataset.to_torch()
    found = [[int(x) for x in tensors], [int(x) for x in tensors], [int(x) for x in dataset.to_torch()]]
    assert found == expected[:3]
    assert len({tuple(order) for order in expected}) == 4
    tensors.set_epoch(3)
    assert [[int(x) for x in tensors] for _ in range(2)] == [expected[3]] * 2
    tensors.set_epoch(1)
    assert [int(x) for x in tensors] == expected[1]


def test_epochs_are_ints_from_0_on_and_switches_bools():
    for epoch, kind in ((-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(kind, match=r"set_epoch\(\)"):
            Dataset.range(3).to_torch().set_epoch(epoch)
    for arguments in ({"pin_memory": 1}, {"map_style": "yes"}):
        with pytest.raises(TypeError, match=r"to_torch\(\)"):
            Dataset.range(3).to_torch(**arguments)

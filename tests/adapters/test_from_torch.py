"""Tests of from_torch(): torch datasets as sources."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from dataset import Dataset, RaggedTensor, SparseTensor, TensorSpec
from dataset.testing import assert_elements_equal, check_operator, outcomes


class Squares(torch.utils.data.Dataset):
    def __init__(self, length=30):
        self.length = length
        self.asked = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.asked.append(index)
        return torch.full((2,), float(index)), index * index


class Stream(IterableDataset):
    def __init__(self, count=7):
        self.count = count
        self.begun = 0

    def __iter__(self):
        self.begun += 1
        buffer = torch.zeros(2)
        for number in range(self.count):
            buffer.fill_(number)  # reuse the same tensor, as users of torch may do
            yield {"x": buffer, "n": number}


def test_a_map_style_dataset_has_a_length_and_random_access():
    data = Squares()
    dataset = Dataset.from_torch(data, output_signature=(TensorSpec(2, np.float32), TensorSpec((), np.int64)))
    assert (len(dataset), data.asked) == (30, [])
    x, square = dataset[-2]
    assert (x.tolist(), x.dtype, square, data.asked) == ([28, 28], np.float32, 784, [28])


@pytest.mark.parametrize(
    "data",
    [
        Squares,
        lambda: TensorDataset(torch.arange(60.0).reshape(30, 2), torch.arange(30)),
        lambda: Subset(Squares(), list(range(3, 25))),
        lambda: ConcatDataset([Squares(5), Squares(6)]),
        Stream,
        lambda: DataLoader(TensorDataset(torch.arange(60), torch.arange(60)), batch_size=3),
    ],
    ids=["map-style", "tensors", "subset", "concatenated", "iterable", "loader"],
)
def test_it_keeps_the_contract_of_operators(data):
    check_operator(lambda: Dataset.from_torch(data()), positions=8)


def test_items_have_the_values_that_they_have_in_torch():
    expected = [(np.full(2, number, np.float32), np.int64(number * number)) for number in range(5)]
    assert_elements_equal(list(Dataset.from_torch(Squares(5))), expected)
    dataset = Dataset.from_tensor_slices({"x": np.arange(12.0).reshape(6, 2), "y": np.arange(6, dtype=np.uint16)})
    for map_style in (False, True):  # to torch and back
        assert_elements_equal(list(Dataset.from_torch(dataset.to_torch(map_style=map_style))), list(dataset))


def test_a_tensor_dataset_stays_columns_and_shares_their_memory():
    tensor = torch.arange(6.0).reshape(3, 2)
    dataset = Dataset.from_torch(TensorDataset(tensor, torch.tensor([1, 2, 3])))
    assert "from_tensor_slices" in dataset.explain()
    x, y = dataset[1]
    assert x.__array_interface__["data"][0] == tensor[1].data_ptr()
    assert not x.flags.writeable
    assert y == 2


def test_a_subclass_of_tensor_dataset_with_items_of_its_own_is_asked_for_them():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * tensor[index] for tensor in self.tensors)

    assert [int(x) for (x,) in Dataset.from_torch(Doubled(torch.arange(3)))] == [0, 2, 4]


def test_tensors_of_items_share_memory_read_only():
    data = [torch.arange(3.0), torch.ones(3)]
    for array, tensor in zip(Dataset.from_torch(data), data, strict=True):
        assert array.__array_interface__["data"][0] == tensor.data_ptr()
        assert not array.flags.writeable


def test_an_iterable_dataset_may_fill_one_tensor_again():
    data = Stream(4)
    dataset = Dataset.from_torch(data)
    assert [element["x"].tolist() for element in dataset] == [[number] * 2 for number in range(4)]
    assert all(element["x"].flags.writeable for element in dataset)
    assert dataset.cardinality() == -2
    assert data.begun == 2
    assert dataset.element_spec == {"x": TensorSpec((None,), np.float32), "n": TensorSpec((), np.int64)}


def test_a_list_at_the_top_of_an_item_is_structure():
    loader = DataLoader(TensorDataset(torch.arange(4), torch.arange(4.0)), batch_size=2)
    assert type(next(iter(loader))) is list
    assert [(x.tolist(), y.tolist()) for x, y in Dataset.from_torch(loader)] == [([0, 1], [0, 1]), ([2, 3], [2, 3])]
    assert Dataset.from_torch([{"boxes": [torch.tensor(1), torch.tensor(2)]}])[0]["boxes"].tolist() == [1, 2]


def test_grad_and_conjugation_are_left_behind():
    leaf = torch.ones(2, requires_grad=True)
    conjugate = torch.tensor([1 + 2j]).conj()
    first, second, third = Dataset.from_torch([leaf, conjugate, conjugate.imag])
    assert (first.tolist(), second.tolist(), third.tolist()) == ([1, 1], [1 - 2j], [-2])


def test_small_floats_are_those_of_ml_dtypes(monkeypatch):
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        tensor = torch.tensor([[1, 2], [0.5, 4]]).to(getattr(torch, name))
        rows = list(Dataset.from_torch(TensorDataset(tensor)))
        assert [row.dtype for (row,) in rows] == [np.dtype(getattr(ml_dtypes, name))] * 2
        assert [row.tolist() for (row,) in rows] == [[1, 2], [0.5, 4]]
        assert Dataset.from_torch([tensor[0, 1]])[0] == 2
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"torch.bfloat16 needs ml_dtypes, which is not installed: pip install ml_d"):
        Dataset.from_torch(TensorDataset(torch.ones(2, dtype=torch.bfloat16)))


def test_sparse_and_jagged_tensors_are_converted_and_other_layouts_refused():
    sparse = torch.sparse_coo_tensor([[1, 0], [0, 2]], [5.0, 6.0], (2, 3), check_invariants=True)
    ragged = torch.nested.nested_tensor([torch.arange(2), torch.arange(3)], layout=torch.jagged)
    first, second = Dataset.from_torch([(sparse, ragged)])[0]
    assert isinstance(first, SparseTensor)
    assert first.to_dense().tolist() == sparse.to_dense().tolist()
    assert second == RaggedTensor.from_rows([[0, 1], [0, 1, 2]])
    (error,) = outcomes(iter(Dataset.from_torch([torch.eye(2).to_mkldnn()])))
    assert isinstance(error, TypeError)
    assert "make it dense" in str(error)


def test_a_signature_applies_to_both_kinds():
    signature = (TensorSpec(2, np.float64), TensorSpec((), np.float32))
    dataset = Dataset.from_torch(Squares(3), output_signature=signature)
    assert dataset.element_spec == signature
    assert [x.dtype for x, _ in dataset] == [np.float64] * 3
    stream = Dataset.from_torch(Stream(2), {"x": TensorSpec(2, np.float32), "n": TensorSpec((), np.float32)})
    assert [element["n"].dtype for element in stream] == [np.float32] * 2
    with pytest.raises(TypeError, match=r"from_torch\(\)"):
        Dataset.from_torch(Squares(3), output_signature=3)


@pytest.mark.parametrize("data", [3, None, iter([1]), type("HasItems", (), {"__getitem__": None})()])
def test_other_objects_are_refused(data):
    with pytest.raises(TypeError, match=r"from_torch\(\): expected a map-style dataset, an IterableDataset"):
        Dataset.from_torch(data)


def test_messages_name_the_dataset_and_the_item():
    class Broken(Squares):
        def __getitem__(self, index):
            if index == 2:
                raise OSError("no such image")
            return super().__getitem__(index)

    found = outcomes(iter(Dataset.from_torch(Broken(4), name="images")))
    assert isinstance(found[2], OSError)
    assert "from_torch(Broken) named 'images' from test_from_torch.py" in found[2].__notes__[0]
    assert "item 2" in found[2].__notes__[0]
    assert "from_generator(Stream)" in Dataset.from_torch(Stream()).explain()


@pytest.mark.explore
@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
def test_cuda_tensors_are_brought_to_the_host():
    assert Dataset.from_torch([torch.arange(3, device="cuda")])[0].tolist() == [0, 1, 2]

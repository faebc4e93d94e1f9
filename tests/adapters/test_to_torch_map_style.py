"""Tests of to_torch(map_style=True): elements by number, for torch's samplers."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from adapters.torch_pipelines import double, numbers
from dataset import Dataset

SOURCE = {"x": np.arange(40.0).reshape(20, 2), "y": np.arange(20)}

CHAINS = {
    "arrays": lambda rows: rows,
    "mapped": lambda rows: rows.map(lambda e: {**e, "y": e["y"] * 3}),
    "shard": lambda rows: rows.shard(3, 1),
    "skip and take": lambda rows: rows.skip(4).take(9),
    "repeat": lambda rows: rows.repeat(2).skip(3),
    "zip": lambda rows: Dataset.zip(rows, rows.map(lambda e: -e["y"])),
    "prefetch": lambda rows: rows.map(lambda e: e["y"], num_parallel_calls=2).prefetch(2),
    "batches": lambda rows: rows.batch(3),
    "text": lambda rows: rows.map(lambda e: (b"%d" % e["y"], e["y"])),
    "uneven": lambda rows: rows.map(lambda e: np.arange(e["y"])),
    "none": lambda rows: rows.map(lambda e: (e["y"], None)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_elements_by_number_are_those_of_iterating(name):
    dataset = CHAINS[name](Dataset.from_tensor_slices(SOURCE))
    expected = [repr(element) for element in dataset.to_torch()]
    tensors = pickle.loads(pickle.dumps(dataset.to_torch(map_style=True)))
    count = len(tensors)
    assert count == len(expected)
    assert [repr(tensors[index]) for index in range(count)] == expected
    for some in ([*range(count)], [count - 1, 0, -2, 0], [1], []):
        assert [repr(element) for element in tensors.__getitems__(some)] == [expected[index] for index in some]


def test_many_elements_are_rows_of_one_gathered_column():
    elements = Dataset.from_tensor_slices(SOURCE).to_torch(map_style=True).__getitems__([7, 7, 2])
    assert len({element["x"].untyped_storage().data_ptr() for element in elements}) == 1
    elements[0]["x"].fill_(-1)
    assert SOURCE["x"][7].tolist() == [14, 15]
    assert elements[1]["x"].tolist() == [14, 15]


def test_a_function_is_called_for_the_requested_elements_only_and_its_error_names_the_element():
    calls = []

    def fail(x):
        calls.append(int(x))
        if x == 5:
            raise ValueError("five")
        return x

    tensors = Dataset.range(100).map(fail).to_torch(map_style=True)
    assert tensors[7] == 7
    assert [int(x) for x in tensors.__getitems__([9, 3])] == [9, 3]
    assert calls == [7, 9, 3]
    with pytest.raises(ValueError, match="five") as caught:
        tensors.__getitems__([3, 5])
    assert "element 5" in caught.value.__notes__[0]


@pytest.mark.parametrize("index", [20, -21])
def test_an_index_out_of_range_is_an_error(index):
    tensors = Dataset.from_tensor_slices(SOURCE).to_torch(map_style=True)
    with pytest.raises(IndexError, match=str(index)):
        tensors[index]
    with pytest.raises(IndexError, match=f"index {index} is out of range for a dataset of 20 elements"):
        tensors.__getitems__([0, index])


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (lambda d: d.shuffle(3).map(double), r"random access, which shuffle\(3\) from test_to_torch_map_style.py"),
        (lambda d: d.filter(lambda x: x > 1).batch(2), "random access, which filter"),
        (lambda d: d.repeat().map(double), r"needs a known length, but that of repeat\(\) from"),
    ],
)
def test_the_op_that_prevents_random_access_is_named_at_the_call(chain, message):
    with pytest.raises(TypeError, match=message):
        chain(Dataset.range(9)).to_torch(map_style=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_samples_from_it(workers):
    tensors = Dataset.from_tensor_slices(SOURCE).map(lambda e: (e["x"], e["y"] + 1)).to_torch(map_style=True)
    method = "fork" if workers else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*use of fork.*", DeprecationWarning)
        batches = list(
            DataLoader(tensors, batch_size=6, shuffle=True, num_workers=workers, multiprocessing_context=method)
        )
    assert [tuple(x.shape) for x, _ in batches] == [(6, 2)] * 3 + [(2, 2)]
    for x, y in batches:
        assert torch.equal(x[:, 0] / 2 + 1, y.double())
    assert sorted(numbers(y for _, y in batches)) == list(range(1, 21))

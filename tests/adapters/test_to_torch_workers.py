"""Tests of to_torch() in DataLoader workers: together they return each element once, in a new order in each epoch."""

from __future__ import annotations

import os
import pickle
import sys
import types
import warnings

import numpy as np
import pytest
from torch.utils.data import DataLoader

from adapters.torch_pipelines import IN_ORDER, SHUFFLED, double, numbers
from dataset import Dataset, Options, RaggedTensor, SparseTensor
from dataset.adapters.torch.passes import Passes
from dataset.dataset import shared_among


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # torch warns if there are more workers than cores, which is irrelevant for these tests.
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        # Python 3.12 warns about forking a process with threads, as a DataLoader does.
        warnings.filterwarnings("ignore", ".*use of fork.*", DeprecationWarning)
        # JAX also warns if other tests of the same process have used it.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        # torch sends sparse tensors between processes without specifying whether to check them.
        warnings.filterwarnings("ignore", "Sparse invariant checks", UserWarning)
        yield


def loader(dataset, workers=2, method="fork", **keywords):
    return DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=method, **keywords)


@pytest.mark.parametrize("make", IN_ORDER.values(), ids=IN_ORDER.keys())
def test_workers_give_all_in_the_order_without_them(make):
    expected = [np.atleast_1d(batch).tolist() for batch in make()]
    found = [np.atleast_1d(batch).tolist() for batch in loader(make().to_torch(), 3)]
    assert found == expected


@pytest.mark.parametrize("make", SHUFFLED.values(), ids=SHUFFLED.keys())
def test_each_epoch_gives_each_element_once_in_another_order(make):
    expected = sorted(numbers(make()))
    tensors = make().to_torch()
    persistent = loader(tensors, persistent_workers=True)
    epochs = [numbers(batches) for batches in (persistent, persistent, loader(tensors))]
    assert [sorted(epoch) for epoch in epochs] == [expected] * 3
    assert len({tuple(epoch) for epoch in [*epochs, expected]}) == 4


@pytest.mark.parametrize(("method", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_set_epoch_reaches_the_workers(method, persistent):
    dataset = Dataset.from_tensor_slices(np.arange(60)).shuffle(60, seed=1).map(lambda x: 2 * x).batch(7)
    expected = [numbers(dataset) for _ in range(3)]
    tensors = dataset.to_torch()
    batches = loader(tensors, method=method, persistent_workers=persistent)
    found = []
    for epoch in [2, 0, 1, 1]:
        tensors.set_epoch(epoch)
        found.append(numbers(batches))
    assert found == [expected[epoch] for epoch in [2, 0, 1, 1]]


def test_neither_loaders_side_by_side_nor_abandoned_epochs_disturb_others():
    tensors = Dataset.range(50).shuffle(50).batch(3).to_torch()
    for side in zip(*zip(loader(tensors), loader(tensors), strict=True), strict=True):
        assert sorted(numbers(side)) == list(range(50))
    batches = loader(tensors)
    for _ in range(2):
        next(iter(batches))
        assert sorted(numbers(batches)) == list(range(50))


@pytest.mark.parametrize(("workers", "drop"), [(0, False), (1, True), (3, False), (3, True)])
def test_the_length_is_right_and_there_are_no_warnings(workers, drop):
    tensors = Dataset.range(101).shuffle(10).batch(10, drop_remainder=drop).to_torch()
    batches = loader(tensors, workers, method="fork" if workers else None)
    assert len(batches) == len(list(batches)) == (10 if drop else 11)


def test_elements_can_be_batched_by_the_loader():
    dataset = Dataset.from_tensor_slices({"x": np.arange(24.0).reshape(12, 2), "y": np.arange(12)})
    batches = list(DataLoader(dataset.to_torch(), batch_size=3, num_workers=2, multiprocessing_context="fork"))
    assert [tuple(batch["x"].shape) for batch in batches] == [(3, 2)] * 4
    assert sorted(numbers(batch["y"] for batch in batches)) == list(range(12))


def test_a_pickled_pipeline_has_the_elements_of_the_original_and_may_need_cloudpickle(monkeypatch):
    tensors = Dataset.range(20).map(lambda x: x).shuffle(20, seed=2).batch(3).to_torch()
    assert numbers(pickle.loads(pickle.dumps(tensors))) == numbers(tensors)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ImportError, match=r'lambdas to DataLoader workers needs .* "dataset-combinators\[process\]"'):
        pickle.dumps(tensors)
    assert list(pickle.loads(pickle.dumps(Dataset.range(3).map(double).to_torch()))) == [0, 2, 4]


def test_a_memory_cache_is_filled_once_by_persistent_workers(tmp_path):
    log = tmp_path / "calls"

    def count(x):
        with log.open("a") as file:
            file.write(f"{x}\n")
        return x

    dataset = Dataset.range(12).map(count).cache().shuffle(12).batch(2)
    batches = loader(dataset.to_torch(), persistent_workers=True)
    for _ in range(2):
        assert sorted(numbers(batches)) == list(range(12))
    assert sorted(map(int, log.read_text().split())) == list(range(12))
    assert sorted(numbers(dataset)) == list(range(12))  # fills the cache of this process
    assert sorted(numbers(loader(dataset.to_torch()))) == list(range(12))


def test_a_dataset_in_an_element_belongs_whole_to_its_worker():
    windows = Dataset.range(12).window(3).to_torch()
    batches = loader(windows, collate_fn=lambda window: [int(x) for x in window])
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_workers_send_text_ragged_and_sparse_values():
    def make(x):
        return x, b"%d" % x, RaggedTensor.from_rows([[x], [x, x]]), SparseTensor([[0]], [x], [2])

    for x, (_, text, ragged, sparse) in enumerate(loader(Dataset.range(4).map(make).to_torch())):
        assert text == b"%d" % x
        assert [row.tolist() for row in ragged.unbind()] == [[x], [x, x]]
        assert sparse.to_dense().tolist() == [x, 0]


@pytest.mark.parametrize(("set_by_user", "processes", "budget"), [(8, 2, 4), (8, 3, 2), (1, 4, 1), (None, 1, None)])
def test_budgets_are_divided(set_by_user, processes, budget):
    options = Options()
    options.autotune.cpu_budget = set_by_user
    options.autotune.ram_budget = 1000
    settings = shared_among(Dataset.range(3).with_options(options), processes).options().autotune
    assert settings.cpu_budget == (budget or len(os.sched_getaffinity(0)))
    assert settings.ram_budget == 1000 // processes


def worker(number, seed, workers=2):
    return types.SimpleNamespace(id=number, num_workers=workers, seed=seed + number)


def test_workers_that_begin_at_once_come_to_the_same_number():
    passes = Passes()
    passes.begin(worker(0, 1)), passes.begin(worker(1, 1))
    before = passes._table.copy()
    first = passes.begin(worker(0, 2))[0]
    passes._table[:] = before  # as if the other worker had read the table before that
    assert passes.begin(worker(1, 2))[0] == first == 1


def test_a_loader_of_a_dataset_instead_of_its_tensors():
    for dataset in (Dataset.range(8).repeat(), Dataset.range(8).filter(bool), Dataset.range(8).shuffle(3).batch(2)):
        with pytest.raises(TypeError, match=r"a DataLoader takes dataset\.to_torch\(\)$"):
            list(DataLoader(dataset, batch_size=None))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_makes_batches_of_batches_warns(workers):
    batches, elements = Dataset.range(8).batch(2).prefetch(1), Dataset.range(8).batch(2).unbatch()
    # The tests make warnings errors, which a worker sends to the main process.
    with pytest.raises(UserWarning, match="pass batch_size=None"):
        list(DataLoader(batches.to_torch(), num_workers=workers))
    for quiet in (
        DataLoader(batches.to_torch(), batch_size=None, num_workers=workers),
        DataLoader(elements.to_torch(), batch_size=2, num_workers=workers),
        batches.to_torch(),
    ):
        assert len(list(quiet)) == 4

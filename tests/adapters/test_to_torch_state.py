"""Tests of resuming in the middle of an epoch: iterators over tensors, and torchdata's StatefulDataLoader."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch

from adapters.torch_pipelines import FROZEN, IN_ORDER, SHUFFLED, numbers
from dataset import Dataset, StateError
from support.states import rest_of, state_after

pytestmark = [
    # torchdata calls deprecated functions of torch.
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),  # for a process with threads
]

PIPELINES = {**IN_ORDER, **SHUFFLED, **FROZEN}


def plain(batches):
    return [np.atleast_1d(batch).tolist() for batch in batches]


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)  # it contains only plain data


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES.keys())
def test_an_iterator_resumes_where_another_was_saved(make):
    iterator = iter(make().to_torch())
    next(iterator, None), next(iterator, None)
    state = saved_and_loaded(iterator.state_dict())
    assert plain(rest_of(make().to_torch(), state)) == plain(iterator)


needs_torchdata = pytest.mark.explore


def stateful(tensors, workers, state=None, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchdata uses deprecated parts of torch
        from torchdata.stateful_dataloader import StatefulDataLoader
    method = "fork" if workers else None
    keywords |= {"num_workers": workers, "multiprocessing_context": method}
    loader = StatefulDataLoader(tensors, batch_size=None, **keywords)
    if state is not None:
        loader.load_state_dict(state)
    return loader


@needs_torchdata
@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("name", ["arrays", "unseeded", "of arrays", "above a cache"])
def test_a_loader_resumes_in_the_middle_of_an_epoch_twice(name, workers, persistent):
    def new_loader(state=None):
        return stateful(PIPELINES[name]().to_torch(), workers, state, persistent_workers=persistent)

    loader = new_loader()
    list(loader)  # an earlier epoch
    iterator = iter(loader)
    for _ in range(2):
        next(iterator)
    state = saved_and_loaded(loader.state_dict())
    rest = plain(iterator)
    again = new_loader(state)
    iterator = iter(again)
    assert plain([next(iterator)]) == rest[:1]
    state = saved_and_loaded(again.state_dict())
    assert plain(iterator) == rest[1:]
    third = new_loader(state)
    assert plain(third) == rest[1:]
    assert sorted(numbers(third)) == sorted(numbers(PIPELINES[name]()))  # the next epoch


def test_the_epochs_of_a_loop_continue_in_another_process():
    """Simulates a new process: new objects, whose passes are counted from 0."""

    def make():
        return Dataset.range(20).shuffle(20, seed=1).batch(4).to_torch()

    def train(tensors, epochs):
        """Return the batches by epoch, and the state after the second batch of the last epoch."""
        found = []
        for _ in range(epochs):
            iterator = iter(tensors)
            found.append(plain([next(iterator), next(iterator)]))
            last = saved_and_loaded(iterator.state_dict())
            found[-1] += plain(iterator)
        return found, last

    expected, _ = train(make(), 5)
    _, state = train(make(), 2)
    again, third = make(), make()
    assert plain(rest_of(again, state)) == expected[1][2:]
    assert [plain(again) for _ in range(3)] == expected[2:]
    assert len(rest_of(third, state_after(again, 1))) == 4  # resumed a second time
    assert plain(third) == plain(again)


def test_a_state_of_another_worker_pipeline_or_version_leaves_the_iterator_where_it_was():
    iterator = iter(Dataset.range(9).to_torch())
    next(iterator)
    other_worker = iterator.state_dict()
    other_worker["pass"][2:] = [1, 2]
    other_pipeline = iter(Dataset.range(9).batch(2).to_torch()).state_dict()
    for state, words in (
        (other_worker, "the state is of worker 1 of 2, but this is worker 0 of 1: resume"),
        (other_pipeline, "another pipeline"),
        ({**other_pipeline, "version": 99}, "version 99"),
    ):
        with pytest.raises(StateError, match=words):
            iterator.load_state_dict(state)
    assert next(iterator) == 1


@pytest.mark.parametrize("state", [None, {}, {"version": 2}, {"version": 2, "pass": [0], "iterator": [{}]}, []])
def test_what_is_no_state_is_refused(state):
    iterator = iter(Dataset.range(9).to_torch())
    with pytest.raises(StateError, match="expected what state_dict"):
        iterator.load_state_dict(state)


def test_the_state_of_the_other_kind_of_iterator():
    dataset = Dataset.range(9)
    plain, tensors = iter(dataset), iter(dataset.to_torch())
    with pytest.raises(StateError, match=r"of an iterator over a Dataset: load it into iter\(dataset\)"):
        tensors.load_state_dict(plain.state_dict())
    with pytest.raises(
        StateError, match=r"load a state of to_torch\(\) or of a StatefulDataLoader into one of the same"
    ):
        plain.load_state_dict(tensors.state_dict())
    with pytest.raises(AttributeError, match="no attribute 'state_dict'; its iterators have it"):
        dataset.to_torch().state_dict()

"""Tests of resuming in the middle of an epoch: iterators over tensors, and torchdata's StatefulDataLoader."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch

from adapters.torch_pipelines import FROZEN, IN_ORDER, SHUFFLED, numbers
from dataset import Dataset, StateError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torchdata uses deprecated parts of torch
    from torchdata.stateful_dataloader import StatefulDataLoader

pytestmark = [
    # torchdata calls deprecated functions of torch.
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),  # for a process with threads
]

PIPELINES = {**IN_ORDER, **SHUFFLED, **FROZEN}


def plain(batches):
    return [np.atleast_1d(batch).tolist() for batch in batches]


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES.keys())
def test_an_iterator_goes_on_where_another_stood(make):
    dataset = make()
    iterator = iter(dataset.to_torch())
    next(iterator, None), next(iterator, None)
    state = iterator.state_dict()
    rest = plain(iterator)
    resumed = iter(make().to_torch())
    resumed.load_state_dict(state)
    assert plain(resumed) == rest


def test_the_pass_after_a_resumed_one_is_the_next():
    def make():
        return Dataset.range(20).shuffle(20, seed=1).batch(3).to_torch()

    whole = make()
    expected = [plain(whole) for _ in range(4)]
    first = make()
    list(first), list(first)
    iterator = iter(first)
    next(iterator)
    state = iterator.state_dict()
    second = make()
    resumed = iter(second)
    resumed.load_state_dict(state)
    assert plain(resumed) == expected[2][1:]
    assert plain(second) == expected[3]


def stateful(tensors, workers, **keywords):
    method = "fork" if workers else None
    return StatefulDataLoader(tensors, batch_size=None, num_workers=workers, multiprocessing_context=method, **keywords)


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)  # it contains only plain data


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "make", [PIPELINES[name] for name in ["arrays", "unseeded", "seeded", "of arrays", "repeated", "above a cache"]]
)
def test_a_loader_goes_on_exactly_in_the_middle_of_an_epoch_twice_over(make, workers, persistent):
    keywords = {"persistent_workers": True} if persistent and workers else {}
    loader = stateful(make().to_torch(), workers, **keywords)
    list(loader)  # an earlier epoch
    iterator = iter(loader)
    for _ in range(2):
        next(iterator)
    state = saved_and_loaded(loader.state_dict())
    rest = plain(iterator)

    again = stateful(make().to_torch(), workers, **keywords)
    again.load_state_dict(state)
    iterator = iter(again)
    assert plain([next(iterator)]) == rest[:1]
    state = saved_and_loaded(again.state_dict())
    assert plain(iterator) == rest[1:]

    third = stateful(make().to_torch(), workers, **keywords)
    third.load_state_dict(state)
    assert plain(third) == rest[1:]
    assert sorted(numbers(third)) == sorted(numbers(make()))  # the next epoch


@pytest.mark.parametrize("workers", [0, 2])
def test_the_epoch_after_a_resumed_one_is_that_of_a_run_without_a_break(workers):
    def make():
        return Dataset.from_tensor_slices(np.arange(40)).shuffle(40, seed=1).batch(3).to_torch()

    whole = stateful(make(), workers)
    expected = [plain(whole) for _ in range(4)]
    first = stateful(make(), workers)
    list(first)
    iterator = iter(first)
    next(iterator)
    state = first.state_dict()
    resumed = stateful(make(), workers)
    resumed.load_state_dict(state)
    assert plain(resumed) == expected[1][1:]
    assert plain(resumed) == expected[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_of_several_epochs_goes_on_after_each_of_several_stops(workers):
    """Stopped after 2 batches, at the end of an epoch and in the next one, without set_epoch()."""

    def make():
        return Dataset.range(24).shuffle(24, seed=1).map(lambda x: x + 0).batch(3).prefetch(2).to_torch()

    whole = stateful(make(), workers)
    expected = [plain(whole) for _ in range(5)]
    loader = stateful(make(), workers)
    iterator = iter(loader)
    found = [plain([next(iterator), next(iterator)])]
    for _ in range(2):  # to the end of the epoch and two batches into the next one
        state = saved_and_loaded(loader.state_dict())
        loader = stateful(make(), workers)
        loader.load_state_dict(state)
        found[-1] += plain(loader)
        iterator = iter(loader)
        found.append(plain([next(iterator), next(iterator)]))
    state = saved_and_loaded(loader.state_dict())
    loader = stateful(make(), workers)
    loader.load_state_dict(state)
    found[-1] += plain(loader)
    state = saved_and_loaded(loader.state_dict())  # between two epochs
    found.append(plain(loader))
    assert found == expected[:4]
    loader = stateful(make(), workers)
    loader.load_state_dict(state)
    assert next(batches for batches in (plain(loader), plain(loader)) if batches) == expected[3]


def left_to_chance():
    return Dataset.range(60).map(lambda x: x + 0, num_parallel_calls=3, deterministic=False).prefetch(3).to_torch()


@pytest.mark.parametrize("workers", [0, 2])
def test_where_order_is_left_to_chance_each_element_comes_once(workers):
    loader, found = stateful(left_to_chance(), workers), []
    for steps in (7, 11, 13):
        iterator = iter(loader)
        found += [int(next(iterator)) for _ in range(steps)]
        state = saved_and_loaded(loader.state_dict())
        loader = stateful(left_to_chance(), workers)
        loader.load_state_dict(state)
    found += numbers(loader)
    assert sorted(found) == list(range(60))


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES.keys())
def test_torch_loads_a_state_without_being_told_to_trust_it(make):
    iterator = iter(make().to_torch())
    next(iterator, None)
    state = saved_and_loaded(iterator.state_dict())
    rest = plain(iterator)
    resumed = iter(make().to_torch())
    resumed.load_state_dict(state)
    assert plain(resumed) == rest


def test_the_epochs_of_a_loop_go_on_in_another_process_as_they_would_have():
    """Simulates a new process: new objects, whose passes are counted from 0."""

    def make():
        return Dataset.range(20).shuffle(20, seed=1).batch(4).to_torch()

    def train(tensors, epochs, state=None):
        """Return the batches by epoch, and the state after the second batch of the last epoch."""
        found = []
        for _ in range(epochs):
            iterator = iter(tensors)
            if state is not None:
                iterator.load_state_dict(state)
                state = None
            found.append(plain([next(iterator), next(iterator)]))
            last = saved_and_loaded(iterator.state_dict())
            found[-1] += plain(iterator)
        return found, last

    expected, _ = train(make(), 5)
    _, state = train(make(), 2)
    again = make()
    iterator = iter(again)
    iterator.load_state_dict(state)
    assert plain(iterator) == expected[1][2:]
    assert [plain(again) for _ in range(3)] == expected[2:]
    iterator = iter(again)  # resume a second time
    next(iterator)
    state = iterator.state_dict()
    third = make()
    iterator = iter(third)
    iterator.load_state_dict(state)
    rest = plain(iterator)
    assert plain(third) == plain(again)
    assert len(rest) == 4


def test_a_state_of_another_worker_is_refused_in_words():
    iterator = iter(Dataset.range(9).to_torch())
    state = iterator.state_dict()
    state["pass"][2:] = [1, 2]
    with pytest.raises(StateError, match="the state is of worker 1 of 2, but this is worker 0 of 1: resume"):
        iterator.load_state_dict(state)
    assert next(iterator) == 0


@pytest.mark.parametrize("state", [None, {}, {"version": 2}, {"version": 2, "pass": [0], "iterator": [{}]}, []])
def test_what_is_no_state_is_refused(state):
    iterator = iter(Dataset.range(9).to_torch())
    with pytest.raises(StateError, match="expected what state_dict"):
        iterator.load_state_dict(state)


def test_a_state_of_another_pipeline_or_version_leaves_the_iterator_where_it_was():
    iterator = iter(Dataset.range(9).to_torch())
    next(iterator)
    other = iter(Dataset.range(9).batch(2).to_torch()).state_dict()
    with pytest.raises(StateError, match="another pipeline"):
        iterator.load_state_dict(other)
    with pytest.raises(StateError, match="version 99"):
        iterator.load_state_dict({**other, "version": 99})
    assert next(iterator) == 1

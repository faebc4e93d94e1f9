"""Tests of distribute() over ops that hold many elements: what their states cost, and what they are worth."""

import numpy as np
import pytest

from dataset import Dataset, Options
from dataset.ops.distribute.operator import DistributeOperator
from dataset.plan.plain import nbytes_of_plain
from dataset.runtime.chunks.chunk import nbytes_of
from dataset.runtime.processes import resting_groups
from support.distribute_cases import Faulty, outcomes
from support.states import rest_of, state_after

SIZE = 300


def row(x):
    return np.full(400, x)


def first(x):
    return x[0]


def elements(fault=lambda x: x):
    """Return a dataset without random access, so that what an op holds of it is saved by value."""
    return Dataset.range(SIZE).map(fault).map(row).filter(lambda x: True)


HOLDING = {
    "shuffle": lambda source: source.shuffle(64, seed=1).batch(2),
    "random_map": lambda source: source.random_map(lambda r, x: x + r.integers(9), seed=1).shuffle(64, seed=1),
    "shuffle repeated": lambda source: source.shuffle(64, seed=1).repeat(2),
    "shuffle of a generator": lambda source: Dataset.from_generator(lambda: iter(source)).shuffle(64, seed=1),
    "prefetch": lambda source: source.shuffle(64, seed=1).prefetch(8),
    "map": lambda source: source.map(lambda x: x + 1, num_parallel_calls=2).shuffle(64, seed=1),
    "parallel interleave": lambda source: source.map(first).interleave(
        lambda x: Dataset.range(3).map(lambda y: row(x * y), num_parallel_calls=2), num_parallel_calls=2
    ),
    "windows": lambda source: source.group_by_window(lambda x: x[0] % 4, lambda k, x: x.batch(16), 16).unbatch(),
    "window": lambda source: source.window(64, shift=4).flat_map(lambda x: x.batch(8)),
    "tokens": lambda source: source.map(lambda x: x[: 1 + x[0] % 99]).batch_by_tokens(500, window=64, seed=1),
    "pack": lambda source: source.map(lambda x: x[: 1 + x[0] % 99]).pack(100),
    "resample": lambda source: source.map(lambda x: (x, x[0] % 2)).rejection_resample(
        lambda x, y: y, [0.2, 0.8], seed=1
    ),
    "scan": lambda source: source.scan(np.zeros(9999), lambda state, x: (state + x[0], x)),
    "unique": lambda source: source.map(lambda x: (x[0], bytes(int(x[0])))).unique(),
    "cache": lambda source: source.cache().repeat(2),
    "interleave": lambda source: source.map(first).interleave(lambda x: Dataset.range(4).map(row), cycle_length=99),
    "zip": lambda source: Dataset.zip((source.shuffle(64, seed=1), source)),
    "mix": lambda source: Dataset.sample_from_datasets([source.shuffle(64, seed=1), source], seed=1),
}


def distributed(dataset, workers):
    """Return a dataset in whose workers no op would keep the order if it need not be repeated."""
    options = Options()
    options.deterministic = False
    return dataset.distribute(workers, deterministic=True).with_options(options)


@pytest.fixture(autouse=True)
def _no_resting_processes():
    yield
    resting_groups.end_resting()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("op", HOLDING.values(), ids=HOLDING)
def test_states_have_at_most_the_bytes_of_the_elements_and_are_exact(op, workers, tmp_path, monkeypatch):
    sent, states = [], []
    deliver = DistributeOperator._deliver

    def noted(self, share, count, found, progress):
        sent.append(sum(1 + nbytes_of(part) for part in found))
        states.append(0 if progress.position is None else nbytes_of_plain(progress.position.to_plain()))
        deliver(self, share, count, found, progress)

    expected = outcomes(iter(op(elements())))
    monkeypatch.setattr(DistributeOperator, "_deliver", noted)
    iterator = iter(distributed(op(elements(Faulty({SIZE - 20: "kill"}, str(tmp_path)))), workers))
    assert outcomes(iterator) == expected
    restarts = sum(worker.restarts for worker in iterator.stats().operators[0].workers)
    assert restarts == 1
    assert sum(states) <= sum(sent) + (workers + restarts) * max(states) + len(states) * 8
    half = len(expected) // 2
    state = state_after(distributed(op(elements()), workers), half)
    assert outcomes(iter(rest_of(distributed(op(elements()), workers), state))) == expected[half:]

"""Tests of distribute(): the elements, their order, states, and what is left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, Options, StateError, TextLineDataset
from dataset.checkpoint import from_json, to_json
from dataset.ops.distribute import operator as operators
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.processes import resting_groups
from dataset.testing import no_leaks
from support.distribute_cases import PIPELINES, outcomes
from support.process_helpers import has_ended
from support.resuming import resealed, with_stops
from support.states import rest_of, state_after

SIZE = 40


def unchanged(*element):
    return element[0] if len(element) == 1 else element


def numbers(size=SIZE):
    return Dataset.from_tensor_slices(np.arange(size)).shuffle(size, seed=7).map(lambda x: x * 2)


def values(elements):
    return [np.asarray(element).tolist() for element in elements]


def check_resumes(build, at, later, *, workers):
    """Check that a run with so many workers goes on after it is saved, and resumes with a later number of them."""
    expected = outcomes(iter(build()))
    iterator = iter(build().distribute(workers))
    found = outcomes(iterator, at)
    state = from_json(to_json(iterator.state_dict()))
    assert found + outcomes(iterator) == expected  # saving does not disturb the workers
    resumed = iter(build().distribute(later))
    resumed.load_state_dict(state)
    assert found + outcomes(resumed) == expected


@pytest.fixture(autouse=True)
def _no_resting_processes():
    yield
    resting_groups.end_resting()


def provenance(dataset):
    options = Options()
    options.provenance = True
    iterator = iter(dataset.with_options(options))
    return [(outcomes(iter([element])), iterator.provenance()) for element in iterator]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("build", PIPELINES, ids=lambda build: build.__name__)
def test_elements_and_their_records_are_those_of_the_pipeline(build, workers, tmp_path):
    local, distributed = build(12, unchanged, str(tmp_path)), build(12, unchanged, str(tmp_path)).distribute(workers)
    with no_leaks():
        found, expected = provenance(distributed), provenance(local)
        by_files = "by files" in distributed.explain()
        assert (sorted(found, key=repr) == sorted(expected, key=repr)) if by_files else found == expected
        resting_groups.end_resting()


def test_records_are_numbered_by_the_passes_and_inputs_below():
    def build(place):
        return Dataset.zip((Dataset.range(24), place(Dataset.range(6).repeat(2).map(unchanged)).repeat(2)))

    found = provenance(build(lambda dataset: dataset.distribute(2)))
    assert found == provenance(build(lambda dataset: dataset))
    assert {(record.inputs, record.epoch) for _, records in found for record in records} == {
        ((0,), 0),
        *(((1,), epoch) for epoch in range(4)),
    }


def test_every_epoch_has_the_order_of_the_local_epoch():
    local, distributed = numbers(), numbers().distribute(2)
    assert [values(distributed) for _ in range(3)] == [values(local) for _ in range(3)]
    assert values(numbers().distribute(2).repeat(3)) == values(numbers().repeat(3))


def test_files_have_random_numbers_of_their_own(tmp_path):
    for part in range(2):
        (tmp_path / f"{part}.txt").write_text("x\n" * 50)
    lines = Dataset.list_files(str(tmp_path / "*"), shuffle=False).flat_map(TextLineDataset)
    drawn = values(lines.random_map(lambda rng, line: rng.random(), seed=1).distribute(2))
    assert len(set(drawn)) == 100


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (numbers().batch(4), "in 3 processes, divided by elements"),
        (Dataset.range(9).filter(lambda x: x > 3), "1 process (filter(<lambda>) "),
        (Dataset.from_generator(lambda: iter(range(3))), "1 process (from_generator"),
    ],
)
def test_explain_says_how_the_plan_is_divided_and_why(dataset, words):
    assert words in dataset.distribute(3).explain()


def test_fewer_files_than_workers_are_divided_among_as_many_workers(tmp_path):
    for part in range(2):
        (tmp_path / f"{part}.txt").write_text("x\n")
    lines = Dataset.list_files(str(tmp_path / "*")).flat_map(TextLineDataset).filter(lambda line: line == b"x")
    assert "in 2 processes, divided by files (" in lines.distribute(5).explain()
    assert "divided by files, each with batches of its own (" in lines.batch(2).distribute(2).explain()
    assert len(list(lines.distribute(5))) == 2


@pytest.mark.parametrize("later", [1, 2, 3, 5])
@pytest.mark.parametrize("at", [0, 1, 7, SIZE - 1, SIZE])
def test_a_state_is_resumed_by_any_number_of_workers(at, later):
    check_resumes(numbers, at, later, workers=3)


def test_below_a_prefetch_and_a_shuffle_a_state_is_exact():
    def build(workers=None):
        batches = numbers().batch(3)
        batches = batches if workers is None else batches.distribute(workers)
        return batches.unbatch().shuffle(5, seed=1).prefetch(3)

    assert values(rest_of(build(3), state_after(build(2), 11))) == values(build())[11:]


def test_a_state_of_files_needs_the_same_number_of_workers(tmp_path):
    for part in range(3):
        (tmp_path / f"{part}.txt").write_text("x\n" * 3)
    lines = Dataset.list_files(str(tmp_path / "*")).flat_map(TextLineDataset)
    with pytest.raises(StateError, match=r"3 workers, and there are 2 now: .*own files"):
        rest_of(lines.distribute(2), state_after(lines.distribute(3), 1))


@pytest.mark.parametrize("change", [{"own": {"cursor": 9}}, {"at": -1}, {"inputs": 3}, {"inputs": [{}, {}]}])
def test_a_damaged_state_is_an_error(change):
    state = state_after(numbers().distribute(2), 1)
    other = iter(numbers().distribute(2))
    with pytest.raises(StateError):
        other.load_state_dict(resealed(state, operator={**state["operator"], **change}))
    assert len(list(other)) == SIZE  # its own position is unchanged


def test_in_any_order_every_element_comes_once_across_a_resume():
    dataset = numbers().distribute(3, deterministic=False)
    assert sorted(outcomes(iter(with_stops(lambda: dataset, [13])))) == sorted(values(numbers()))
    with pytest.raises(StateError, match="deterministic=False"):
        rest_of(numbers().distribute(2, deterministic=False), state_after(dataset, 13))


def fails_sometimes(x):
    if x in {2, 9, 13, 14}:
        raise ValueError(f"element {x}")
    return x


FAILING = {
    "batch": lambda: Dataset.range(22).map(fails_sometimes).batch(4),
    "whole batches": lambda: Dataset.range(22).map(fails_sometimes).batch(4, drop_remainder=True),
    "numbered": lambda: Dataset.range(22).map(fails_sometimes).enumerate().batch(3).enumerate(),
    "random": lambda: (
        Dataset.range(22).map(fails_sometimes).batch(2).random_map(lambda r, x: x + r.integers(9), seed=1)
    ),
    "repeated": lambda: Dataset.range(22).map(fails_sometimes).repeat(2).batch(5),
}


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("build", FAILING.values(), ids=FAILING)
def test_a_failure_before_a_batch_moves_the_batches_after_it_as_without_workers(build, workers):
    local = outcomes(iter(build()))
    assert len([outcome for outcome in local if "element" in str(outcome)]) >= 3
    with no_leaks():
        assert outcomes(iter(build().distribute(workers))) == local
        resting_groups.end_resting()


@pytest.mark.parametrize("later", [1, 2, 3])
@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_after_a_failure_before_a_batch_a_state_is_resumed_by_any_number_of_workers(at, later):
    check_resumes(FAILING["batch"], at, later, workers=2)


def test_a_map_in_any_order_keeps_the_order_if_positions_count():
    dataset = numbers().map(unchanged, num_parallel_calls=4, deterministic=False)
    assert values(dataset.distribute(1)) == values(numbers())


def test_in_any_order_a_slow_worker_does_not_stop_the_others(tmp_path):
    released = tmp_path / "released"

    def slow_first(x):
        while x == 0 and not released.exists():
            time.sleep(0.01)
        return x

    iterator = iter(Dataset.range(30).map(slow_first).distribute(2, deterministic=False))
    assert values(next(iterator) for _ in range(15)) == list(range(1, 30, 2))
    released.touch()
    assert values(iterator) == list(range(0, 30, 2))


def test_workers_run_ahead_by_a_bounded_number_of_elements(tmp_path):
    released, log = tmp_path / "released", tmp_path / "log"
    log.touch()

    def logged(x):
        while x == 2 and not released.exists():
            time.sleep(0.01)
        with log.open("ab", buffering=0) as file:
            file.write(b"%d\n" % x)
        return np.zeros(1 << 20, np.uint8)

    options = Options()
    options.autotune.ram_budget = 8 << 20
    iterator = iter(Dataset.range(1000).map(logged).distribute(2).with_options(options))
    next(iterator), next(iterator)  # the first element of a small budget is computed alone
    waiting = threading.Thread(target=next, args=(iterator,))
    waiting.start()
    operator = iterator._root
    with operator._lock:
        assert operator._filled.wait_for(lambda: len(operator._shares[1].queue) >= 2, 60)
    ahead = len(log.read_bytes().split())
    released.touch()
    waiting.join()
    iterator.close()
    assert 2 <= ahead <= 8


def wait_for_elements(iterator, count):
    """Wait until each worker has sent this many elements that are not taken yet; return the operator."""
    operator = iterator._root
    with operator._lock:
        assert operator._filled.wait_for(lambda: all(len(share.queue) >= count for share in operator._shares), 60)
    return operator


@pytest.mark.parametrize("later", [1, 2, 3])
@pytest.mark.parametrize("count_seconds", [0, 60])
def test_whole_rounds_are_taken_at_once_and_a_state_in_the_middle_is_exact(count_seconds, later, monkeypatch):
    monkeypatch.setattr(operators, "_COUNT_SECONDS", count_seconds)
    iterator = iter(numbers().distribute(2))
    found = outcomes(iterator, 1)
    operator = wait_for_elements(iterator, 3)
    while operator._hand:
        found += outcomes(iterator, 1)
    found += outcomes(iterator, 1)
    assert operator._hand
    state = from_json(to_json(iterator.state_dict()))
    with operator._lock:
        assert operator.buffered()[0] == sum(share.waiting for share in operator._shares)
    expected = values(numbers())
    assert found + outcomes(iterator, SIZE - len(found)) == expected
    with operator._lock:
        assert operator._filled.wait_for(lambda: all(share.ended for share in operator._shares), 60)
    assert operator.buffered() == (0, 0)
    assert operator._account.held == 0
    assert found + outcomes(iter(rest_of(numbers().distribute(later), state))) == expected


def test_elements_of_other_structures_are_not_in_one_chunk():
    iterator = iter(Dataset.range(20).map(lambda x: (x,) if x % 2 else x).distribute(2))
    found = outcomes(iterator, 1)
    found += values(wait_for_elements(iterator, 3).pull(SIZE).rows())
    assert len(found) == 2
    found[1] = tuple(found[1])
    assert found + outcomes(iterator) == [(x,) if x % 2 else x for x in range(20)]


def test_an_abandoned_iterator_leaves_nothing_behind():
    with no_leaks():
        iterator = iter(Dataset.range(10**9).map(unchanged).distribute(2))
        next(iterator)
        del iterator


def test_closing_does_not_wait_for_a_function():
    def hang(x):
        if x == 2:
            time.sleep(1000)
        return x

    with no_leaks():
        iterator = iter(Dataset.range(10).map(hang).distribute(1))
        assert next(iterator) == 0
        iterator.close()


def test_probing_an_element_starts_no_process():
    with no_leaks():
        assert Dataset.range(5).map(lambda x: os.getpid()).distribute(2).batch(1).element_spec.shape == (None,)


SCRIPT = """
import os, sys
from dataset import Dataset
iterator = iter(Dataset.range(10**6).map(lambda x: os.getpid()).distribute(2))
print(next(iterator), next(iterator), flush=True)
sys.stdin.read(1)
"""


@pytest.mark.parametrize("how", ["exits", "is killed"])
def test_the_workers_end_with_the_process(how):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    workers = list(map(int, process.stdout.readline().split()))
    assert len(set(workers)) == 2
    if how == "exits":
        process.communicate(b"x", timeout=250)
        assert process.returncode == 0
    else:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=250)
    assert all(map(has_ended, workers))


def test_statistics_have_a_line_per_worker():
    iterator = iter(numbers().distribute(2))
    list(iterator)
    (operator,) = iterator.stats().operators
    assert [worker.rank for worker in operator.workers] == [0, 1]
    assert sum(worker.elements for worker in operator.workers) == SIZE
    assert all(worker.memory > 1 << 20 and not worker.restarts for worker in operator.workers)
    assert "worker 1: " in repr(iterator.stats())
    assert len(json.loads(json.dumps(iterator.stats().to_dict()))["operators"][0]["workers"]) == 2


def untuned(dataset, workers):
    """Return an iterator with so many workers, which only the test changes."""
    options = Options()
    options.autotune.enabled = False
    iterator = iter(dataset.distribute(AUTOTUNE).with_options(options))
    iterator._root.knob = Tunable("num_parallel_calls", workers, 1, 4)
    return iterator


def test_the_number_of_workers_may_change_between_any_two_elements():
    iterator = untuned(numbers(200).batch(2), 1)
    operator, found = iterator._root, []
    for workers in (1, 3, 2, 4, 1, 2):
        operator.knob.value = workers
        found += values(next(iterator) for _ in range(9))
        assert len(operator._shares) == workers
    while len(operator._engine._group.workers) > 2:  # the others end after their last reply
        time.sleep(0.01)
    resumed = untuned(numbers(200).batch(2), 1)
    resumed.load_state_dict(iterator.state_dict())
    rest = values(iterator)
    assert found + rest == values(numbers(200).batch(2))
    assert values(resumed) == rest


def test_a_change_of_workers_releases_the_bytes_of_elements_that_were_not_taken():
    iterator = untuned(numbers(200), 2)
    found = [next(iterator)]
    operator = wait_for_elements(iterator, 3)
    operator.knob.value = 3
    found += [next(iterator) for _ in range(199)]  # without the end, which releases everything
    assert values(found) == values(numbers(200))
    with operator._lock:
        assert operator._filled.wait_for(lambda: all(share.ended for share in operator._shares), 60)
    assert operator._account.held == 0


def test_shares_of_processes_have_workers_of_their_own():
    ranks = [values(numbers().batch(2).shard_by_process(rank, 2).distribute(2)) for rank in range(2)]
    assert ranks == [values(numbers().batch(2).shard_by_process(rank, 2)) for rank in range(2)]


def test_a_function_that_cannot_be_sent_is_an_error():
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to worker processes"):
        list(Dataset.range(3).map(lambda x: lock and x).distribute(1))


@pytest.mark.parametrize("bad", [1, 150])
def test_results_that_cannot_be_sent_fail_one_by_one(bad):
    def one(x):
        return np.array([threading.Lock() if x == bad else int(x)], object)

    iterator = iter(Dataset.range(200).map(one).distribute(1))
    assert [int(next(iterator)[0]) for _ in range(bad)] == list(range(bad))
    with pytest.raises(TypeError, match="cannot be sent"):
        next(iterator)
    assert [int(x[0]) for x in iterator] == list(range(bad + 1, 200))


def test_a_plan_that_cannot_be_opened_is_an_error_of_the_iteration():
    with pytest.raises(Exception, match=r"no/such"):
        list(Dataset.from_tensor_slices([b"/no/such/file"]).flat_map(TextLineDataset).distribute(1))

"""Tests of AUTOTUNE from the user's view: the same elements, the log, and values that are kept for the next epoch."""

import copy
import json
import os
import pickle
import re
import time

import pytest

from chains.draw import draw_chain
from dataset import AUTOTUNE, Dataset, TextLineDataset
from dataset.autotune.tuner import Tuner
from dataset.autotune.windows import stages_of
from dataset.ops.prefetch import PatientPrefetchOperator
from dataset.runtime.choice import INLINE, Learned
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.resources.cores import usable_cores
from support.overlap import Calls, counted
from support.pipelines import with_options
from support.process_helpers import exit_code_of, fork
from support.resume_search import LENGTH_MAX, advanced
from support.resuming import loaded, to_json
from support.seeds import rng

SEVERAL = 8  # the value that tests set knobs to: parallel calls, or elements in a buffer


def plus(x):
    return int(str(x)) + 1  # not proved to be arithmetic, which needs no threads


def knobs(iterator):
    """Return the values by the name of the op."""
    return {record.name: record.knob for record in iterator._profile.top.walk() if record.knob is not None}


def values(iterator):
    return {name: knob.value for name, knob in knobs(iterator).items()}


def everywhere(size=500, calls=AUTOTUNE):
    """Return a pipeline with AUTOTUNE everywhere."""
    return (
        Dataset.range(size)
        .map(plus, num_parallel_calls=calls, name="map")
        .interleave(lambda x: Dataset.range(x, x + 2), 3, num_parallel_calls=calls, name="interleave")
        .batch(4, num_parallel_calls=calls, name="batch")
        .prefetch(calls, name="prefetch")
    )


def listed(dataset):
    return [element.tolist() for element in dataset]


# A scripted tuner


@pytest.fixture
def script(monkeypatch):
    """Replace the tuner by functions that the test appends, one per observation: ``script.append(function)``.

    A prefetch decides nothing itself.
    """
    todo = []
    monkeypatch.setattr(PatientPrefetchOperator, "_look", lambda _: None)

    def look(self, now, tops):
        if todo:
            todo.pop(0)(self, now, list(stages_of(tops)))
        return now

    monkeypatch.setattr(Tuner, "look", look)
    return todo


def setting(name, value, action="keep"):
    def do(tuner, now, records):
        for record in records:
            if record.name == name:
                tuner._record(now, record, action, record.knob.value, value, "the test says so")
                record.knob.value = value

    return do


def test_a_log_tells_what_was_done(script):
    script += [setting("prefetch", 5, "try"), setting("prefetch", 5), setting("prefetch", 2, "take back")]
    iterator = iter(Dataset.range(500).map(plus).prefetch(AUTOTUNE, name="prefetch"))
    list(iterator)
    log = iterator.tuning_log()
    assert [(one.operator, one.action, one.knob, one.before, one.after) for one in log] == [
        ("prefetch", "try", "buffer_size", 2, 5),
        ("prefetch", "keep", "buffer_size", 5, 5),
        ("prefetch", "take back", "buffer_size", 5, 2),
    ]
    assert all(0 <= one.seconds <= iterator.stats().seconds for one in log)
    assert repr(log).splitlines()[0].endswith("prefetch: try buffer_size 2 -> 5: the test says so")
    assert json.loads(json.dumps(log.to_dicts())) == log.to_dicts()
    assert len(log.to_dicts()) == 3


def test_the_log_is_a_copy_and_keeps_the_first_and_the_last_decisions(script, monkeypatch):
    monkeypatch.setattr("dataset.runtime.metrics.tuning_log.DECISIONS_FIRST", 3)
    monkeypatch.setattr("dataset.runtime.metrics.tuning_log.DECISIONS_LAST", 7)
    iterator = iter(Dataset.range(2000).map(plus).prefetch(AUTOTUNE, name="prefetch"))
    empty = iterator.tuning_log()
    script += [setting("prefetch", 2 + number) for number in range(100)]
    next(iterator)
    while script:
        iterator._observer.look(time.perf_counter())  # as the next thread does
    assert not empty
    iterator.tuning_log().clear()
    log = iterator.tuning_log()
    assert [one.after for one in log] == [2, 3, 4, *range(95, 102)]
    assert log.omitted == 90
    assert repr(log).splitlines()[3] == "... 90 decisions are not kept ..."
    assert len(repr(log).splitlines()) == 11


def test_the_next_iteration_begins_with_the_values_that_the_last_one_that_was_begun_ended_with(script):
    dataset, other = everywhere(), everywhere()
    script += [setting("prefetch", 7), setting("map", 1)]
    list(dataset)
    iter(dataset).close()
    for again, expected in [(dataset, {"prefetch": 7, "map": 1}), (other, {"prefetch": 7, "map": 1})]:
        with iter(again) as iterator:
            next(iterator)
            assert expected.items() <= values(iterator).items()
            said = [(one.operator, one.action, one.after, one.reason) for one in iterator.tuning_log() if one.after]
            assert ("prefetch", "keep", 7, "as in the previous iteration") in said


def test_what_was_only_being_tried_is_not_handed_on(script):
    """Otherwise short epochs would pass on increasing values whose benefit was never measured."""
    dataset = Dataset.range(500).map(plus).prefetch(AUTOTUNE, name="prefetch")
    script += [setting("prefetch", 4, "try"), setting("prefetch", 4), setting("prefetch", 100, "try")]
    list(dataset)
    assert not script
    with iter(dataset) as iterator:
        next(iterator)
        assert values(iterator) == {"prefetch": 4}


# Unchanged settings


DEFAULTS = {"map": usable_cores(), "interleave": 3, "batch": usable_cores(), "prefetch": 2}


def given_numbers():
    return (
        Dataset.range(40)
        .map(lambda x: time.sleep(2e-3) or x, num_parallel_calls=2, name="map")
        .interleave(lambda x: Dataset.range(x, x + 2), 3, num_parallel_calls=2, name="interleave")
        .batch(4, num_parallel_calls=3, name="batch")
        .prefetch(5, name="prefetch")
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (given_numbers, {"map": 2, "interleave": 2, "batch": 3, "prefetch": 5}),
        (lambda: with_options(everywhere(), autotune__enabled=False), DEFAULTS),
    ],
    ids=["given numbers", "no tuning"],
)
def test_numbers_that_were_given_and_the_defaults_without_tuning_are_never_changed(make, expected):
    iterator = iter(make())
    for _ in iterator:
        assert values(iterator) == expected
    assert all(knob.is_fixed for knob in knobs(iterator).values())
    assert not any(operator.is_tuned for operator in iterator.stats().operators)
    assert {one.action for one in iterator.tuning_log()} <= {"run inline", "run in background", "look again"}
    assert len(iterator.stats().operators) == 5


def test_the_defaults_are_what_tuning_begins_with():
    with iter(everywhere()) as iterator:
        assert values(iterator) == DEFAULTS
        assert {name: (knob.minimum, knob.maximum) for name, knob in knobs(iterator).items()} == {
            "map": (1, 64), "interleave": (1, 6), "batch": (1, 64), "prefetch": (1, 128),
        }  # fmt: skip


@pytest.mark.parametrize("enabled", [True, False])
def test_a_budget_of_cores_is_what_calls_begin_with(enabled):
    with iter(with_options(everywhere(), autotune__enabled=enabled, autotune__cpu_budget=1)) as iterator:
        assert values(iterator) == {"map": 1, "interleave": 1, "batch": 1, "prefetch": 2}
        assert iterator.stats().cpu_budget == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_a_bound_limits_every_number_that_autotune_chooses(enabled):
    bound = AUTOTUNE(max=2)
    with iter(with_options(everywhere(calls=bound), autotune__enabled=enabled, autotune__cpu_budget=5)) as iterator:
        assert values(iterator) == {"map": 2, "interleave": 2, "batch": 2, "prefetch": 2}
        assert {knob.maximum for knob in knobs(iterator).values()} == {2}
    wide = with_options(everywhere(calls=AUTOTUNE(max=7)), autotune__cpu_budget=5)
    with iter(wide) as iterator:
        assert {name: knob.maximum for name, knob in knobs(iterator).items()} == {
            **dict.fromkeys(("map", "batch", "prefetch"), 7),
            "interleave": 6,  # twice its cycle: more threads would have nothing to read
        }


@pytest.mark.parametrize("enabled", [True, False])
def test_no_more_calls_of_each_of_two_functions_run_at_once_than_the_bound_says(enabled):
    running = Calls(), Calls()
    numbers = Dataset.range(60)
    for calls in running:
        numbers = numbers.map(counted(calls, 0.001), num_parallel_calls=AUTOTUNE(max=2))
    assert listed(with_options(numbers, autotune__enabled=enabled, autotune__cpu_budget=8)) == list(range(60))
    assert [(calls.total, calls.most <= 2) for calls in running] == [(60, True)] * 2


def test_maps_with_different_bounds_keep_them():
    dataset = Dataset.range(9).map(plus, num_parallel_calls=AUTOTUNE(max=3), name="three")
    with iter(with_options(dataset.map(str, num_parallel_calls=AUTOTUNE(max=4), name="four"))) as iterator:
        assert {name: knob.maximum for name, knob in knobs(iterator).items()} == {"three": 3, "four": 4}


@pytest.mark.parametrize(
    ("reads", "cycle", "calls"), [(AUTOTUNE, 4, 8), (AUTOTUNE(max=6), 4, 6), (AUTOTUNE(max=3), 3, 3)]
)
def test_files_that_autotune_reads_at_once(reads, cycle, calls):
    dataset = TextLineDataset(["a", "b"], num_parallel_reads=reads)
    [knob] = knobs(iter(dataset)).values()
    assert (dataset.plan.cycle_length, knob.maximum) == (cycle, calls)


def test_what_is_computed_without_a_look_at_the_clock_is_limited_in_elements():
    with iter(Dataset.range(1300).shuffle(256, seed=1).map(plus, num_parallel_calls=AUTOTUNE)) as iterator:
        pool, looks = iterator._root, []
        controller = pool.controller
        controller.warm_start(Learned(INLINE, 2, 1e-3, patience=1, rest=60.0))
        controller.begin_inline = lambda begin=controller.begin_inline: (looks.append(1), begin())
        controller.end_inline = lambda count, size_max: 1.0  # nothing is computed ahead
        controller.lease = lambda count, seconds: 12 * count
        lengths = [pool.pull(32).length for _ in range(6)]
        assert lengths[0] == 1
        assert len(looks) == 2  # the first pull, and the first one of more elements
        del pool, controller


def test_a_copy_of_a_dataset_begins_as_the_dataset_itself():
    dataset = Dataset.range(50).map(plus, num_parallel_calls=AUTOTUNE, name="map").prefetch(AUTOTUNE, name="prefetch")
    with iter(dataset) as iterator:
        next(iterator)
        for knob in knobs(iterator).values():
            knob.value = 1  # more calls of a function that computes are bounded by the cores
    for one in (dataset, copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        with iter(one) as iterator:
            assert next(iterator) == 1
            assert values(iterator) == {"map": 1, "prefetch": 1}  # later ones may change the numbers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_iterates_over_a_dataset_that_is_being_tuned_in_the_parent():
    dataset, expected = everywhere(60), listed(everywhere(60))
    with iter(dataset) as iterator:
        first = next(iterator).tolist()
        assert exit_code_of(fork(lambda: listed(dataset) == expected)) == 0
        assert [first, *listed(iterator)] == expected


# The same elements


def turn(iterator, draws):
    """Change some knobs at random."""
    for record in iterator._profile.top.walk():
        if record.knob is not None and draws.random() < 0.3:
            record.knob.value = draws.randint(1, SEVERAL)


@pytest.mark.usefixtures("switch_interval")
@pytest.mark.parametrize("number", range(30))
def test_neither_tuning_nor_knobs_turned_at_random_change_elements_order_or_states(number, built):
    draws = rng("knobs", number)
    chains = iter(lambda: draw_chain(draws), None)
    chain = next(chain for chain in chains if chain.is_repeatable and "num_parallel_calls" in str(chain))

    def made(calls):
        return built(re.sub(r"num_parallel_calls=[^,)]+", f"num_parallel_calls={calls}", str(chain)))

    expected = advanced(iter(made(None)), LENGTH_MAX)
    assert advanced(iter(with_options(made("AUTOTUNE"), autotune__enabled=False)), LENGTH_MAX) == expected
    iterator, found = iter(made("AUTOTUNE")), []
    while len(found) < LENGTH_MAX and (more := advanced(iterator, 1)):
        found += more
        turn(iterator, draws)
        if draws.random() < 0.1:
            state = iterator.state_dict()
            iterator.close()
            iterator = loaded(made("AUTOTUNE"), to_json(state))
    iterator.close()
    assert found == expected


def yielding(x):
    """Let other threads run, so that calls end in any order."""
    if x % 3 == 0:
        time.sleep(0)
    return x + 1


RUNNING = {
    "map": lambda order: Dataset.range(400).map(yielding, num_parallel_calls=AUTOTUNE, deterministic=order),
    "interleave": lambda order: Dataset.range(40).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 10).map(yielding), 8, num_parallel_calls=AUTOTUNE, deterministic=order
    ),
}


@pytest.mark.usefixtures("switch_interval")
@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("name", RUNNING)
def test_knobs_that_are_turned_while_threads_work_lose_nothing(name, order):
    draws = rng("running", name, order)
    with iter(RUNNING[name](order)) as iterator:
        assert any(isinstance(record.stage, BackgroundOperator) for record in iterator._profile.top.walk())
        found = []
        for element in iterator:
            found.append(int(element))
            turn(iterator, draws)
    assert sorted(found) == list(range(1, 401))
    if order and name != "interleave":
        assert found == list(range(1, 401))

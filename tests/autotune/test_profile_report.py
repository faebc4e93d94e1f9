"""Tests of ``Dataset.profile``: what it measures and suggests, and that neither it nor ``apply`` changes elements."""

import itertools
import json
import threading
import time
import zlib

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, Options, TextLineDataset, TFRecordDataset
from dataset.autotune.profile_report import profile
from dataset.plan.node import inputs_first
from dataset.runtime.metrics.trace import Trace
from support.pipelines import with_options
from support.tfrecord_files import write_records

LONG = 60.0  # the data end before


def wait(x):
    time.sleep(0.001)
    return x


def plus(x):
    return x + 1


def codes(report):
    return [suggestion.code for suggestion in report.suggestions]


def parallel_ops(dataset):
    return {node.op for node in inputs_first(dataset.plan) if getattr(node, "num_parallel_calls", None) is not None}


def test_a_function_that_waits_is_made_parallel_and_the_end_prefetched():
    dataset = Dataset.range(60).map(wait).batch(10)
    report = dataset.profile(LONG)
    first, *others = [found for found in report.suggestions if found.code != ".cache()"]
    assert (first.code, first.operator, first.is_safe) == (".map(..., num_parallel_calls=AUTOTUNE)", "map(wait)", True)
    assert first.location.startswith("test_profile_report.py:")
    assert first.gain > 1.1
    assert [(other.code, other.is_safe, other.gain) for other in others] == [(".prefetch(AUTOTUNE)", True, None)]
    improved = report.apply()
    assert parallel_ops(improved) == {"map"}
    assert improved.plan.label() == "prefetch(AUTOTUNE)"
    assert parallel_ops(dataset) == set()


def test_the_report_prints_the_costs_and_the_suggestions():
    lines = str(Dataset.range(60).map(wait).batch(10).profile(LONG)).splitlines()
    assert lines[0].startswith("6 elements in ")
    assert lines[1].split()[:4] == ["operator", "elements/s", "wall", "cpu"]
    assert [line.split()[0] for line in lines[2:5]] == ["batch(10)", "map(wait)", "range(60)"]
    assert lines[5].startswith("1. ")
    assert "times the throughput (predicted): " in lines[5]
    assert str(Dataset.range(300_000).profile(LONG)).splitlines()[-1].startswith("no suggestions")


def test_functions_that_run_as_one_are_measured_and_advised_one_by_one():
    dataset = Dataset.range(60).map(plus)
    dataset = dataset.map(wait)
    dataset = dataset.map(str).batch(10)
    assert "together with its input" in dataset.explain()
    report = dataset.profile(LONG)
    assert [operator.name for operator in report.statistics.operators][1:4] == ["map(str)", "map(wait)", "map(plus)"]
    [found] = [one for one in report.suggestions if one.code == ".map(..., num_parallel_calls=AUTOTUNE)"]
    assert "map(wait)" in found.operator.split(", ")  # perhaps with one that other programs have delayed
    made = [node for node in inputs_first(report.apply().plan) if getattr(node, "num_parallel_calls", None) is not None]
    assert [node.label() for node in made] == found.operator.split(", ")
    np.testing.assert_equal(list(report.apply()), list(dataset))


def test_nothing_is_suggested_for_what_is_parallel_already():
    report = Dataset.range(60).map(wait, num_parallel_calls=AUTOTUNE).batch(10).prefetch(AUTOTUNE).profile(LONG)
    assert set(codes(report)) <= {".cache()"}


def test_a_cache_is_suggested_after_the_last_op_that_is_not_random():
    report = Dataset.range(60).map(wait).shuffle(10).batch(10).prefetch(2).profile(LONG)
    [cache] = [found for found in report.suggestions if found.code == ".cache()"]
    assert cache.operator == "map(wait)"
    assert not cache.is_safe
    assert "480 B" in cache.reason


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(60).shuffle(10).map(wait),
        Dataset.range(60).random_map(lambda rng, x: wait(x)),
        Dataset.range(60).map(wait).cache(),
        Dataset.range(10**6).shuffle(100).batch(10).take(5),
        Dataset.range(20).batch(2),
    ],
    ids=["random order", "random function", "cache", "no function", "no work"],
)
def test_no_cache_is_suggested_where_it_would_change_results_or_gain_nothing(dataset):
    assert not [code for code in codes(dataset.profile(LONG)) if "cache" in code]


def test_a_cache_that_does_not_fit_into_memory_is_a_file():
    dataset = Dataset.range(60).map(wait).map(lambda x: np.full(100, x))
    assert ".cache(filename)" in codes(with_options(dataset, autotune__ram_budget=1000).profile(LONG))


PIPELINES = {
    "shuffle": lambda: Dataset.range(40).shuffle(8, seed=3).map(wait).batch(4),
    "filter": lambda: Dataset.range(40).map(wait).filter(lambda x: wait(x) % 3 > 0).batch(4, drop_remainder=True),
    "zip": lambda: Dataset.zip(Dataset.range(40).map(wait), Dataset.range(100, 140).map(wait)).batch(3),
    "unordered": lambda: with_options(Dataset.range(40).map(wait), deterministic=False),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_neither_the_profile_nor_apply_changes_elements_or_their_order(name):
    dataset, untouched = PIPELINES[name](), PIPELINES[name]()
    improved = dataset.profile(LONG).apply()
    assert parallel_ops(improved)
    expected = [list(untouched) for _ in range(2)]
    for epoch in range(2):
        np.testing.assert_equal(list(improved if epoch else dataset), expected[epoch])


def test_it_ends_in_time_and_with_the_data():
    clock = itertools.count()
    plan = Dataset.range(10).repeat().plan
    report = profile(plan, plan, Options(), 5, Dataset, lambda: next(clock))
    assert report.statistics.elements == 4
    assert Dataset.range(3).profile(LONG).statistics.elements == 3
    assert Dataset.range(0).profile(LONG).statistics.elements == 0


def test_the_exception_of_an_element_is_raised_and_no_thread_is_left():
    before = set(threading.enumerate())
    dataset = Dataset.range(10).map(lambda x: 1 // (int(x) - 3), num_parallel_calls=2).prefetch(2)
    with pytest.raises(ZeroDivisionError):
        dataset.profile(LONG)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(("seconds", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError)])
def test_wrong_times(seconds, error):
    with pytest.raises(error, match=r"profile\(\)"):
        Dataset.range(3).profile(seconds)


def compute(x):
    total = 0
    for number in range(100_000):
        total += number % 7
    return x


def release(x):
    zlib.compress(bytes(1 << 24), 1)
    return x


def test_time_under_the_lock_is_that_of_functions_that_do_not_release_it():
    report = Dataset.range(40).map(compute, name="holds").map(release, name="releases").profile(LONG)
    own = {operator.name: operator for operator in report.statistics.operators}
    shares = {name: own[name].lock_seconds / own[name].seconds for name in ("holds", "releases")}
    assert shares["holds"] > 0.6
    assert shares["releases"] < 0.6
    assert " lock " in str(report).splitlines()[1]
    assert '.map(..., executor="process")' in codes(Dataset.range(40).map(compute).profile(LONG))


def test_larger_files_are_suggested_where_opening_takes_long(tmp_path, monkeypatch):
    names = []
    for number in range(30):
        names.append(tmp_path / f"{number}.txt")
        names[-1].write_text("line\n" * 20)
    monkeypatch.setattr("dataset.autotune.profile_report._GAIN_MIN", 1 + 1e-9)  # the share of reading is a measurement
    monkeypatch.setattr("dataset.autotune.profile_report._seconds_to_open", lambda name: 1.0)
    report = TextLineDataset(names).profile(LONG)
    [found] = [one for one in report.suggestions if one.code == "fewer and larger files"]
    assert found.gain > 1
    assert "100 B on average" in found.reason
    assert not found.is_safe
    monkeypatch.setattr("dataset.autotune.profile_report._seconds_to_open", lambda name: 0.0)
    assert "fewer and larger files" not in codes(TextLineDataset(names).profile(LONG))


def test_an_index_is_suggested_where_records_fill_a_large_buffer(tmp_path, monkeypatch):
    write_records(tmp_path / "a.tfrecord", [bytes(1000)] * 50)
    make = lambda **kwargs: TFRecordDataset(tmp_path / "a.tfrecord", **kwargs).shuffle(40).profile(LONG)
    assert "TFRecordDataset(..., index=True)" not in codes(make())
    monkeypatch.setattr("dataset.autotune.profile_report._LARGE_BYTES", 10_000)
    [found] = [one for one in make().suggestions if "index" in one.code]
    assert "kB now" in found.reason
    assert "TFRecordDataset(..., index=True)" not in codes(make(index=True))


def test_another_process_is_suggested_if_the_pipeline_holds_the_lock(monkeypatch):
    assert ".distribute(1)" in codes(Dataset.range(60).map(compute).batch(2).profile(LONG))
    assert ".distribute(1)" not in codes(Dataset.range(60).map(wait).batch(2).profile(LONG))


@pytest.mark.parametrize(
    ("make", "worker"),
    [
        (lambda: Dataset.range(20).map(wait, executor="process"), "process for "),
        (lambda: Dataset.range(20).map(wait).distribute(2), "worker 1 of distribute"),
    ],
)
def test_the_trace_has_a_track_for_each_worker_process(make, worker, tmp_path):
    make().profile(LONG).save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {event["tid"] for event in events if event["ph"] == "M" and event["args"]["name"].startswith(worker)}
    assert tracks
    assert tracks <= {event["tid"] for event in events if event["ph"] == "X"}


TRACED = {
    "inline": lambda: Dataset.range(40).map(wait).batch(4),
    "parallel": lambda: Dataset.range(60).map(wait, num_parallel_calls=3).batch(4).prefetch(2),
    "interleave": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.range(10).map(wait), cycle_length=2, num_parallel_calls=2
    ),
}


@pytest.mark.parametrize("name", TRACED)
def test_the_trace_has_a_track_for_each_thread_with_nested_spans(name, tmp_path):
    report = TRACED[name]().profile(LONG)
    report.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    spans = [event for event in events if event["ph"] == "X"]
    assert {span["tid"] for span in spans} == set(names)
    assert len(names) >= (1 if name == "inline" else 2)
    assert {span["name"] for span in spans} <= {operator.name for operator in report.statistics.operators}
    for ident in names:
        ends = []
        for span in sorted(
            (span for span in spans if span["tid"] == ident), key=lambda span: (span["ts"], -span["dur"])
        ):
            while ends and ends[-1] <= span["ts"]:
                ends.pop()
            end = span["ts"] + span["dur"]
            assert not ends or end <= ends[-1] + 1e-3  # rounding; in microseconds
            ends.append(end)


def test_a_trace_is_bounded_and_may_be_empty(monkeypatch):
    monkeypatch.setattr("dataset.runtime.metrics.trace._EVENTS_MAX", 5)
    assert Trace().to_chrome()["traceEvents"] == []
    trace = Trace()
    for _ in range(9):
        trace.add(Dataset.range(3).plan, 1, 0.0)
    assert len([event for event in trace.to_chrome()["traceEvents"] if event["ph"] == "X"]) == 5

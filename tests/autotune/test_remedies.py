"""Tests of the remedies in stats(): which row of the table fits, and that the page of the docs shows the same table."""

import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dataset import AUTOTUNE, Dataset, TextLineDataset, TFRecordDataset, io
from dataset.autotune.remedies import REMEDIES, Symptoms, remedy_for
from dataset.autotune.report import Measured
from dataset.optimize.driver import optimize
from dataset.runtime.metrics import scheduling_times
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.scheduling_times import CoreWait, SchedulingTimes
from dataset.runtime.metrics.statistics import Bottleneck, PipelineStatistics
from dataset.runtime.metrics.tuning_log import TuningLog

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "slow.md"


def plus(x):
    return x + 1


def fetch(x):
    time.sleep(0.003)
    return x


def parse_one(record):
    return io.parse_single_example(record, {})


FEATURES = {"label": io.FixedLenFeature((), int)}


def parse_and_add(record):
    return io.parse_single_example(record, FEATURES)["label"] + 1


def symptoms(dataset, *, memory=0.0, contention=0.0, has_stages=True, **own):
    values = {"seconds": 1.0, "cpu_seconds": 1.0, "elements": 1000, "parallelism": None, "is_tuned": False,
              "runs": "in the consumer's thread", "memory_refusals": 0}  # fmt: skip
    merged = {**values, **own}
    found = SimpleNamespace(**merged, seconds_per_element=merged["seconds"] / merged["elements"])
    return Symptoms(SimpleNamespace(node=dataset.plan, fused=()), found, contention, memory, has_stages)


NUMBERS = Dataset.range(1000)
THREADS = {"parallelism": 4, "runs": "in threads"}
CASES = {
    "waits": (symptoms(NUMBERS.map(plus), cpu_seconds=0.1), "num_parallel_calls=AUTOTUNE, or a number above"),
    "waits in few threads": (
        symptoms(NUMBERS.map(plus, num_parallel_calls=2), cpu_seconds=0.1, **THREADS),
        "num_parallel_calls=AUTOTUNE, or a number above",
    ),
    "waits in tuned threads": (
        symptoms(NUMBERS.map(plus, num_parallel_calls=AUTOTUNE), cpu_seconds=0.1, is_tuned=True, **THREADS),
        "",
    ),
    "computes": (symptoms(NUMBERS.map(plus)), "num_parallel_calls=AUTOTUNE, and executor=AUTOTUNE if"),
    "filters": (symptoms(NUMBERS.filter(plus)), "options.optimization.filter_parallelization = True"),
    "cheap": (symptoms(NUMBERS.map(plus), elements=10**6), "map after batch, or @dataset.vectorized"),
    "inline": (
        symptoms(NUMBERS.map(plus, num_parallel_calls=2), parallelism=2, runs="inline"),
        "@dataset.vectorized on a function for whole columns",
    ),
    "holds the lock": (
        symptoms(NUMBERS.map(plus, num_parallel_calls=2), contention=0.9, **THREADS),
        "@dataset.vectorized on a function for whole columns",
    ),
    "holds the lock and draws": (
        symptoms(NUMBERS.random_map(pow, num_parallel_calls=2), contention=0.9, **THREADS),
        "@dataset.vectorized on a function for whole columns, or executor",
    ),
    "filters and holds the lock": (symptoms(NUMBERS.filter(plus), contention=0.9, **THREADS), ""),
    "in processes": (symptoms(NUMBERS.map(plus), contention=0.9, parallelism=2, runs="in processes"), ""),
    "releases the lock": (symptoms(NUMBERS.map(plus, num_parallel_calls=2), contention=0.1, **THREADS), ""),
    "slow storage": (symptoms(TextLineDataset("f"), cpu_seconds=0.1), "several files and interleave"),
    "decompresses": (symptoms(TFRecordDataset("f", compression_type="GZIP")), "the extra gzip"),
    "parses one by one": (symptoms(NUMBERS.map(parse_one), elements=10**6), ".map(io.ExampleParser(features))"),
    "parses and computes": (symptoms(NUMBERS.map(parse_one)), "num_parallel_calls=AUTOTUNE, and executor=AUTOTUNE if"),
    "parses on columns": (
        symptoms(SimpleNamespace(plan=optimize(NUMBERS.map(parse_and_add).plan).plan), elements=10**6),
        "",
    ),
    "reads fast": (symptoms(TextLineDataset("f")), ""),
    "copies": (symptoms(NUMBERS.batch(10)), "batch(..., num_parallel_calls=AUTOTUNE)"),
    "no stage": (symptoms(NUMBERS.shuffle(10), has_stages=False), "prefetch(AUTOTUNE) at the end"),
    "no memory": (symptoms(NUMBERS.prefetch(3), memory=0.95, memory_refusals=3), "smaller elements"),
    "calls with threads of their own": (
        replace(symptoms(NUMBERS.map(plus), cpu_seconds=0.3), is_crowded_out=True, hides_threads=True),
        "OPENBLAS_NUM_THREADS=1 in the environment",
    ),
    "crowded out": (
        replace(symptoms(NUMBERS.map(plus), cpu_seconds=0.1), core_wait=9.0, is_crowded_out=True),
        "fewer processes on this machine, or another machine: the machine is overloaded",
    ),
    "crowded out, but waits for something else too": (
        replace(symptoms(NUMBERS.map(plus), cpu_seconds=0.1), core_wait=6.0, is_crowded_out=True),
        "num_parallel_calls=AUTOTUNE, or a number above",
    ),
    "refused once": (symptoms(NUMBERS.prefetch(3), memory=0.1, memory_refusals=3), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_the_row_that_fits(name):
    found, expected = CASES[name]
    remedy = remedy_for(found)
    assert remedy.startswith(expected)
    assert bool(remedy) == bool(expected)
    assert "\n" not in remedy
    assert "`" not in remedy


def test_several_functions_in_one_op_are_left_to_the_profile():
    found, expected = CASES["waits"]
    found.record.fused = (NUMBERS.plan,)
    assert remedy_for(found).startswith(expected)
    assert remedy_for(found).endswith("; profile() says what each of its functions needs")
    found.record.fused = ()


def test_every_condition_is_tested():
    rows = [row for row in REMEDIES if row.applies is not None]
    found = {remedy_for(case) for case, _ in CASES.values()} - {""}
    assert len(found) == len(rows)


def test_the_page_shows_the_same_table():
    rows = [f"| {row.sign} | {row.cause} | {row.remedy} |" for row in REMEDIES]
    table = "\n".join(["| what you see | cause | remedy |", "|---|---|---|", *rows])
    assert f"\n{table}\n\n" in PAGE.read_text(encoding="utf-8")


def test_threads_that_functions_start_are_told_by_the_cpu_time_of_the_process(monkeypatch):
    for framework in ("jax", "tensorflow"):
        monkeypatch.delitem(sys.modules, framework, raising=False)

    def hides_threads(cpu_seconds, outside=0.0):
        iterator = iter(Dataset.range(20).map(plus))
        next(iterator)
        profile = iterator._profile
        profile._cpu_began -= cpu_seconds  # as if threads had computed
        profile.began -= outside  # as if the loop had, too
        return Measured(profile, 1).symptoms(next(iter(profile.top.below()))).hides_threads

    assert hides_threads(100.0)
    assert not hides_threads(0.0)
    assert not hides_threads(100.0, outside=200.0)
    monkeypatch.setitem(sys.modules, "jax", None)
    assert not hides_threads(100.0)


def test_a_consumer_that_waits_although_it_is_the_bottleneck_is_told_to_prefetch():
    def loop(dataset):
        iterator = iter(dataset)
        for _ in iterator:
            time.sleep(0.01)
        return iterator.stats()

    stats = loop(Dataset.range(10).map(fetch))
    assert stats.bottleneck.name == "the consumer"
    assert stats.bottleneck.remedy.startswith("prefetch(AUTOTUNE) at the end of the chain: ")
    assert loop(Dataset.range(10).map(fetch).prefetch(1)).bottleneck.remedy == ""


@pytest.mark.parametrize(
    ("waited", "bottleneck", "words"),
    [
        (0.5, Bottleneck("map(f)", 1.5, "map(f)", 0, "write"), "map(f) is the bottleneck; making it twice as fast"),
        (0.01, Bottleneck("map(f)", 1.5, "map(f)", 0, "write"), "The pipeline keeps up"),
        (0.5, Bottleneck("the consumer", 1.5, "the consumer"), "its own work limits the throughput"),
        (0.5, None, "its own work limits the throughput"),
    ],
)
def test_the_verdict_is_one_sentence(waited, bottleneck, words):
    stats = PipelineStatistics(10, 1.0, 1 - waited, waited, (), bottleneck, 0, None, 2)
    assert words in stats.verdict
    assert stats.verdict.endswith(".")
    assert ("remedy: write" in repr(stats)) == (waited == 0.5 and bottleneck is not None and bool(bottleneck.remedy))
    assert PipelineStatistics(0, 0.0, 0.0, 0.0, (), None, 0, None, 2).verdict.startswith("The consumer has not")


def test_an_empty_log_says_how_to_have_something_tuned():
    naive = iter(Dataset.range(3).map(str, name="text").batch(2))
    list(naive)
    assert repr(naive.tuning_log()) == (
        "TuningLog: nothing was decided; no operator has AUTOTUNE; "
        "write num_parallel_calls=AUTOTUNE in text to have it tuned"
    )
    for dataset in (
        Dataset.range(3),
        Dataset.range(3).map(plus),
        Dataset.range(3).map(str, num_parallel_calls=AUTOTUNE),
    ):
        iterator = iter(dataset)
        assert next(iterator) is not None
        assert iterator.tuning_log().advice == ""
    assert repr(TuningLog()) == "TuningLog: nothing was decided"


@pytest.mark.parametrize(
    ("wait", "uses_all_cores", "remedy"),
    [
        (90.0, False, "fewer processes"),
        (90.0, True, ""),
        (0.1, False, "num_parallel_calls"),
        (None, False, "num_parallel_calls"),
    ],
)
def test_an_overloaded_machine_is_not_taken_for_slow_storage(monkeypatch, wait, uses_all_cores, remedy):
    """All threads wait ``wait`` seconds for a core per second of CPU time; None where this is not reported."""
    steps, each = itertools.count(1), SchedulingTimes(1.0, wait or 0.0)
    if wait is None:
        monkeypatch.setattr(scheduling_times, "_FILE", Path("/nonexistent"))
    else:
        read = lambda: SchedulingTimes(*(next(steps) * seconds for seconds in each))
        monkeypatch.setattr(SchedulingTimes, "of_this_thread", read)
    monkeypatch.setattr(CoreWait.__init__, "__defaults__", (0.0,))
    monkeypatch.setattr(PipelineProfile, "cpu_seconds", property(lambda self: 1e9 * uses_all_cores))

    iterator = iter(Dataset.range(60).map(fetch, name="fetch"))
    list(iterator)
    stats = iterator.stats()
    assert stats.bottleneck.name == "fetch"
    assert stats.bottleneck.remedy.startswith(remedy)
    assert ("overloaded" in repr(stats)) == (remedy == "fewer processes")

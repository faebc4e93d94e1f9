"""Tests of iterator.stats(): its values at any moment for every operator, and its text."""

import collections
import copy
import itertools
import json
import os
import pickle
import time

import pytest

from dataset import AUTOTUNE, ClosedError, Dataset, TextLineDataset
from dataset.runtime.metrics.statistics import Bottleneck, OperatorStatistics, PipelineStatistics
from dataset.testing import outcomes
from support.overlap import Gate
from support.pipelines import with_options
from support.process_helpers import WAIT, exit_code_of, fork, in_thread


def plus(x):
    return x + 1


def is_even(x):
    return bool(x % 2 == 0)


def fail_at_thirds(x):
    if x % 3 == 0:
        raise ValueError("bad")
    return x


def table(iterator):
    """Return the depth, name and elements of each operator, as text."""
    return "; ".join(f"{one.depth} {one.name} {one.elements}" for one in iterator.stats().operators)


def run(dataset):
    iterator = iter(dataset)
    collections.deque(iterator, maxlen=0)
    return iterator


# Elements


TEN = Dataset.range(10)
CASES = {
    "filter": (lambda: TEN.filter(is_even).batch(2), "0 batch(2) 3; 1 filter(is_even) 5; 2 range(10) 10"),
    "unbatch": (
        lambda: TEN.batch(4).map(plus).unbatch(),
        "0 unbatch 10; 1 map(plus) 3; 2 batch(4) 3; 3 range(10) 10",
    ),
    "zip": (lambda: Dataset.zip(TEN, TEN.map(plus)), "0 zip 10; 1 range(10) 10; 1 map(plus) 10; 2 range(10) 10"),
    "repeat": (
        lambda: Dataset.range(6).map(plus).batch(4).repeat(3),
        "0 repeat(3) 6; 1 batch(4) 6; 2 map(plus) 18; 3 range(6) 18",
    ),
    "parallel interleave": (
        lambda: Dataset.range(5).interleave(Dataset.range, 2, num_parallel_calls=2),
        "0 interleave(Dataset.range, cycle_length=2, block_length=1) 10; 1 range(5) 5",
    ),
    "prefetch in each epoch": (
        lambda: TEN.map(plus).prefetch(2).repeat(2),
        "0 repeat(2) 20; 1 prefetch(2) 20; 2 map(plus) 20; 3 range(10) 20",
    ),
    "cache that is read": (
        lambda: Dataset.range(6).map(plus).cache().repeat(4),
        "0 repeat(4) 24; 1 cache 24; 2 map(plus) 6; 3 range(6) 6; 2 elements(6) 18",
    ),
    "what does nothing": (
        lambda: TEN.map(plus).prefetch(0).skip(0).repeat(1).batch(2),
        "0 batch(2) 5; 1 map(plus) 10; 2 range(10) 10",
    ),
    "joined ops": (
        lambda: TEN.map(plus).filter(lambda x: x > 5, name="large").map(plus),
        "0 map(plus) + large + map(plus) 5; 1 range(10) 10",
    ),
    "exceptions": (lambda: TEN.map(fail_at_thirds), "0 map(fail_at_thirds) 10; 1 range(10) 10"),
}


@pytest.mark.parametrize("name", CASES)
def test_elements_are_counted_exactly_and_go_through_json(name):
    make, expected = CASES[name]
    iterator = iter(make())
    count = len(outcomes(iterator))
    stats = iterator.stats()
    assert stats.elements == count
    assert table(iterator) == expected
    data = stats.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["elements"] == count
    assert [one["name"] for one in data["operators"]] == [one.name for one in stats.operators]


# At any moment


PIPELINES = {
    "plain": lambda: Dataset.range(40).map(plus),
    "background": lambda: Dataset.range(40).map(plus, num_parallel_calls=2).prefetch(2),
}
each_pipeline = pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)


@each_pipeline
def test_before_the_first_element_in_the_middle_at_the_end_and_after_it(make):
    iterator, seen = iter(make()), []
    stats = iterator.stats()
    assert (stats.elements, stats.seconds, stats.wait_seconds, stats.bottleneck) == (0, 0.0, 0.0, None)
    assert [operator.elements for operator in stats.operators] == [0] * len(stats.operators)
    assert repr(stats).startswith("0 elements\noperator")
    for count in range(1, 41):
        next(iterator)
        stats = iterator.stats()
        assert stats.elements == stats.operators[0].elements == count
        assert 0 < stats.wait_seconds <= stats.seconds
        assert stats.wait_seconds + stats.consumer_seconds == pytest.approx(stats.seconds)
        seen.append(stats.seconds)
    assert seen == sorted(seen)
    assert next(iterator, None) is None
    ended = iterator.stats()
    assert ended.elements == 40
    assert next(iterator, None) is None
    iterator.close()
    assert iterator.stats() == ended


@pytest.mark.parametrize("count", [0, 7])
@each_pipeline
def test_after_close_it_is_what_it_was(make, count):
    iterator = iter(make())
    list(itertools.islice(iterator, count))
    iterator.close()
    stats = iterator.stats()
    assert stats.elements == count
    assert stats.buffered_bytes == 0
    assert [operator.buffered_elements for operator in stats.operators] == [0] * len(stats.operators)
    iterator.close()
    assert iterator.stats() == stats


@pytest.mark.parametrize(
    ("where", "number"), [("here", 0), ("here", 5), ("in a thread", 0), ("in a thread", 5), ("in threads", 0)]
)
def test_from_another_thread_while_an_element_is_waited_for(number, where):
    blocked = Gate(number)
    calls = 2 if where == "in threads" else None
    dataset = Dataset.range(10).map(blocked, num_parallel_calls=calls, name="blocked")
    iterator = iter(dataset.prefetch(1) if where == "in a thread" else dataset)
    taken = in_thread(lambda: [next(iterator) for _ in range(number + 1)])
    assert blocked.entered.wait(WAIT)
    while iterator.stats().elements < number:  # earlier elements are returned gradually
        pass
    first, second = iterator.stats(), iterator.stats()
    assert first.elements == second.elements == number
    grown = second.seconds - first.seconds
    assert grown > 0
    assert second.wait_seconds - first.wait_seconds == pytest.approx(grown)  # the consumer waits for the whole time
    assert repr(second)
    if where == "here":
        operator = second.operators[0]
        assert operator.seconds - first.operators[0].seconds == pytest.approx(grown)
    else:
        assert second.operators[0].consumer_wait_seconds > first.operators[0].consumer_wait_seconds
    blocked.opened.set()
    taken.result()
    assert iterator.stats().elements == number + 1
    iterator.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_in_a_forked_child_they_belong_to_the_parent():
    """The locks of the stages may be held by threads that do not exist in the child."""
    with iter(Dataset.range(100).map(plus, num_parallel_calls=2).prefetch(2)) as iterator:
        next(iterator)
        assert "pull" in vars(iterator._root)

        def in_child():
            with pytest.raises(ClosedError, match=r"belongs to the parent process; call iter\(\) in the child"):
                iterator.stats()

        assert exit_code_of(fork(in_child)) == 0
        assert iterator.stats().elements == 1


# Where it runs


def test_it_says_where_an_op_runs():
    slow = Dataset.range(100).map(sleep, num_parallel_calls=2, name="slow").batch(2).prefetch(2)
    with iter(slow.take(100)) as iterator:
        list(itertools.islice(iterator, 5))
        runs = {operator.name: operator.runs for operator in iterator.stats().operators}
    assert runs == {
        "take(100)": "in the consumer's thread",
        "prefetch(2)": "in a thread",
        "batch(2)": "in the thread of prefetch",
        "slow": "in threads",
        "range(100)": "in the threads of map, one at a time",
    }


def test_worker_processes_count_their_elements_and_say_that_they_run_it():
    iterator = run(TEN.map(plus, num_parallel_calls=2, executor="process"))
    assert table(iterator) == "0 map(plus) 10; 1 range(10) 10"
    assert iterator.stats().operators[0].runs == "in processes"


# Time


def sleep(x):
    time.sleep(2e-3)
    return x + 1


# Budgets


def test_budgets_are_told():
    dataset = Dataset.range(10).map(plus, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    stats = run(with_options(dataset, autotune__ram_budget=10_000_000, autotune__cpu_budget=3)).stats()
    assert (stats.ram_budget, stats.cpu_budget) == (10_000_000, 3)
    assert repr(stats).endswith("memory: 0 B in buffers of a budget of 10 MB; cores: 3")
    stats = run(with_options(dataset, autotune__enabled=False, autotune__cpu_budget=3)).stats()
    assert stats.ram_budget is None  # without tuning, only a budget of the user is a bound
    assert repr(stats).endswith("memory: 0 B in buffers; cores: 3")


def test_a_pipeline_that_reads_files_says_whether_the_native_kernels_are_in_use(native, tmp_path):
    (tmp_path / "lines").write_text("a\nb\n")
    stats = run(TextLineDataset(tmp_path / "lines")).stats()
    assert stats.native_kernels == ("in use" if native == "kernels" else "not in use: DATASET_NATIVE is 0")
    assert f"\nnative kernels: {stats.native_kernels}\n" in repr(stats)
    assert run(Dataset.range(3)).stats().native_kernels is None


# The objects


def operator(name, **changes):
    values = {
        "location": "train.py:7", "depth": 0, "elements": 0, "nbytes": 0, "seconds": 0.0, "cpu_seconds": 0.0,
        "input_wait_seconds": 0.0, "consumer_wait_seconds": 0.0, "runs": "in the consumer's thread",
        "parallelism": None, "mean_parallelism": None, "buffer_size": None, "buffered_elements": 0,
        "buffered_bytes": 0, "is_tuned": False, "memory_refusals": 0,
    }  # fmt: skip
    return OperatorStatistics(name=name, **{**values, **changes})


STATISTICS = PipelineStatistics(
    elements=1200,
    seconds=60.0,
    consumer_seconds=45.0,
    wait_seconds=15.0,
    operators=(
        operator(
            "prefetch(AUTOTUNE)", elements=1200, consumer_wait_seconds=15.0, runs="in a thread", buffer_size=8,
            buffered_elements=5, buffered_bytes=96_000_000, is_tuned=True,
        ),
        operator("batch(32)", depth=1, elements=1205, seconds=6.025, cpu_seconds=6.0, input_wait_seconds=12.5, busy=0.1,
                 runs="in the thread of prefetch"),
        operator("map(decode)", depth=2, elements=38_560, seconds=231.36, cpu_seconds=180.0,
                 consumer_wait_seconds=12.5, runs="in threads", parallelism=6, mean_parallelism=3.856, busy=0.64,
                 buffered_elements=37, is_tuned=True),
        operator("map(cheap)", depth=3, elements=38_600, seconds=0.00386, cpu_seconds=0.00386, runs="inline",
                 parallelism=4, mean_parallelism=0.0, busy=1e-4),
        operator("range(1000000)", depth=4, elements=38_600, seconds=1.9e-5, cpu_seconds=1.9e-5,
                 runs="in the threads of map, one at a time"),
    ),
    bottleneck=Bottleneck("map(decode)", 1.27, "cores"),
    buffered_bytes=102_345_678,
    ram_budget=2_000_000_000,
    cpu_budget=4,
)  # fmt: skip

PRINTED = """\
1,200 elements in 60 s: 20/s; the consumer waited for them 25% of the time
operator                elements    each   cpu  busy  waits for input  is waited for           holds  runs
prefetch(AUTOTUNE)         1,200                                                15 s  5 of 8 (96 MB)  in a thread, tuned
  batch(32)                1,205    5 ms  100%   10%           12.5 s                                 in the thread \
of prefetch
    map(decode)           38,560    6 ms   78%   64%                          12.5 s              37  in threads, \
6 at once (3.9 busy), tuned
      map(cheap)          38,600  100 ns  100%    0%                                                  inline
        range(1000000)    38,600    0 ns  100%                                                        in the threads \
of map, one at a time
bottleneck: map(decode) (if twice as fast: 1.27 times the throughput; limited by: cores)
memory: 102 MB in buffers of a budget of 2 GB; cores: 4"""


def test_it_prints_as_a_table():
    assert repr(STATISTICS) == PRINTED


@pytest.mark.parametrize(
    ("runs", "cpu_seconds", "mentioned"),
    [("in threads", 0.5, True), ("in the thread of prefetch", 0.5, True), ("in threads", 0.1, False),
     ("in processes", 0.5, False), ("in the consumer's thread", 0.5, False)],
)  # fmt: skip
@pytest.mark.parametrize("waited", [0.01, 0.1])
def test_threads_that_compute_beside_the_steps_are_mentioned(runs, cpu_seconds, mentioned, waited):
    operators = (operator("map(f)", runs=runs, seconds=0.6, cpu_seconds=cpu_seconds),)
    stats = PipelineStatistics(10, 1.0, 1 - waited, waited, operators, None, 0, None, 2)
    assert ("computed for 50%, and headspace() tells whether" in stats.verdict) == mentioned


def test_they_can_be_pickled_and_copied():
    stats = run(PIPELINES["background"]()).stats()
    assert pickle.loads(pickle.dumps(stats)) == copy.deepcopy(stats) == stats

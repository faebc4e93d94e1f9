"""Tests of iterator.stats(): its values at any moment for every operator, and its text."""

import copy
import itertools
import json
import os
import pickle
import threading
import time

import pytest

from dataset import AUTOTUNE, ClosedError, Dataset, Options
from dataset.runtime.metrics.statistics import Bottleneck, Decision, OperatorStatistics, PipelineStatistics, TuningLog

WAIT = 60  # seconds to wait for an event that must happen


def plus(x):
    return x + 1


def is_even(x):
    return bool(x % 2 == 0)


def table(iterator):
    """Return the depth, name and elements of each operator."""
    return [(operator.depth, operator.name, operator.elements) for operator in iterator.stats().operators]


def run(dataset):
    iterator = iter(dataset)
    for _ in iterator:
        pass
    return iterator


def with_options(dataset, **settings):
    options = Options()
    for name, value in settings.items():
        setattr(options.autotune, name, value)
    return dataset.with_options(options)


# Elements


def zipped():
    return Dataset.zip(Dataset.range(5), Dataset.range(5).map(plus))


CASES = {
    "batch": (lambda: Dataset.range(10).batch(3), [(0, "batch(3)", 4), (1, "range(10)", 10)]),
    "filter": (
        lambda: Dataset.range(10).filter(is_even),
        [(0, "filter(is_even)", 5), (1, "range(10)", 10)],
    ),
    "filter, then batch": (
        lambda: Dataset.range(100).filter(is_even).batch(10),
        [(0, "batch(10)", 5), (1, "filter(is_even)", 50), (2, "range(100)", 100)],
    ),
    "shuffle": (lambda: Dataset.range(20).shuffle(4), [(0, "shuffle(4)", 20), (1, "range(20)", 20)]),
    "unbatch": (
        lambda: Dataset.range(20).batch(6).map(plus).unbatch(),
        [(0, "unbatch", 20), (1, "map(plus)", 4), (2, "batch(6)", 4), (3, "range(20)", 20)],
    ),
    "flat_map": (
        lambda: Dataset.range(5).flat_map(Dataset.range),
        [(0, "flat_map(Dataset.range)", 10), (1, "range(5)", 5)],
    ),
    "zip": (zipped, [(0, "zip", 5), (1, "range(5)", 5), (1, "map(plus)", 5), (2, "range(5)", 5)]),
    "concatenate": (
        lambda: Dataset.range(3).concatenate(Dataset.range(4).map(plus)),
        [(0, "concatenate", 7), (1, "range(3)", 3), (1, "map(plus)", 4), (2, "range(4)", 4)],
    ),
    "repeat": (
        lambda: Dataset.range(6).map(plus).batch(4).repeat(3),
        [(0, "repeat(3)", 6), (1, "batch(4)", 6), (2, "map(plus)", 18), (3, "range(6)", 18)],
    ),
    "interleave": (
        lambda: Dataset.range(5).interleave(Dataset.range, 2),
        [(0, "interleave(Dataset.range, cycle_length=2, block_length=1)", 10), (1, "range(5)", 5)],
    ),
    "parallel interleave": (
        lambda: Dataset.range(5).interleave(Dataset.range, 2, num_parallel_calls=2),
        [(0, "interleave(Dataset.range, cycle_length=2, block_length=1)", 10), (1, "range(5)", 5)],
    ),
    "parallel map": (
        lambda: Dataset.range(10).map(plus, num_parallel_calls=2),
        [(0, "map(plus)", 10), (1, "range(10)", 10)],
    ),
    "parallel batch": (
        lambda: Dataset.range(10).batch(3, num_parallel_calls=2),
        [(0, "batch(3)", 4), (1, "range(10)", 10)],
    ),
    "worker processes": (
        lambda: Dataset.range(10).map(plus, num_parallel_calls=2, executor="process"),
        [(0, "map(plus)", 10), (1, "range(10)", 10)],
    ),
    "prefetch": (
        lambda: Dataset.range(10).map(plus).prefetch(2),
        [(0, "prefetch(2)", 10), (1, "map(plus)", 10), (2, "range(10)", 10)],
    ),
    "prefetch in each epoch": (
        lambda: Dataset.range(10).map(plus).prefetch(2).repeat(2),
        [(0, "repeat(2)", 20), (1, "prefetch(2)", 20), (2, "map(plus)", 20), (3, "range(10)", 20)],
    ),
    "parallel map in each epoch": (
        lambda: Dataset.range(10).map(plus, num_parallel_calls=2).repeat(3),
        [(0, "repeat(3)", 30), (1, "map(plus)", 30), (2, "range(10)", 30)],
    ),
    "cache": (
        lambda: Dataset.range(6).map(plus).cache(),
        [(0, "cache", 6), (1, "map(plus)", 6), (2, "range(6)", 6)],
    ),
    "prefetch of nothing": (lambda: Dataset.range(3).prefetch(0), [(0, "range(3)", 3)]),
    "prefetch of nothing, in the middle": (
        lambda: Dataset.range(4).map(plus).prefetch(0).batch(2),
        [(0, "batch(2)", 2), (1, "map(plus)", 4), (2, "range(4)", 4)],
    ),
    "what does nothing": (
        lambda: Dataset.range(4).map(plus).skip(0).repeat(1).batch(2),
        [(0, "batch(2)", 2), (1, "map(plus)", 4), (2, "range(4)", 4)],
    ),
    "no elements": (lambda: Dataset.range(0).map(plus), [(0, "map(plus)", 0), (1, "range(0)", 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_elements_are_counted_exactly(name):
    make, expected = CASES[name]
    iterator = iter(make())
    count = sum(1 for _ in iterator)
    assert iterator.stats().elements == count
    assert table(iterator) == expected


def test_ops_that_were_joined_into_one_are_all_named():
    iterator = run(Dataset.range(10).map(plus).filter(lambda x: x > 5, name="large").map(plus))
    assert table(iterator) == [(0, "map(plus) + large + map(plus)", 5), (1, "range(10)", 10)]
    iterator = run(Dataset.range(10).map(lambda x: x * 2, name="twice").map(lambda x: x + 3, name="plus 3"))
    assert [name for _, name, _ in table(iterator)] == ["twice + plus 3", "range(10)"]


def test_a_cache_that_is_read_takes_nothing_of_its_input():
    iterator = run(Dataset.range(6).map(plus).cache().repeat(4))
    found = {name: elements for _, name, elements in table(iterator)}
    assert (found["repeat(4)"], found["cache"], found["map(plus)"], found["range(6)"]) == (24, 24, 6, 6)


def test_labels_and_places_in_the_source():
    iterator = run(Dataset.range(3, name="numbers").map(plus, name="one more").batch(2))
    operators = iterator.stats().operators
    assert [operator.name for operator in operators] == ["batch(2)", "one more", "numbers"]
    assert all(operator.location.startswith("test_statistics.py:") for operator in operators)


# At any moment


PIPELINES = {
    "plain": lambda: Dataset.range(40).map(plus),
    "background": lambda: Dataset.range(40).map(plus, num_parallel_calls=2).prefetch(2),
}
each_pipeline = pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)


@each_pipeline
def test_before_the_first_element_nothing_has_happened(make):
    iterator = iter(make())
    stats = iterator.stats()
    assert (stats.elements, stats.seconds, stats.wait_seconds, stats.bottleneck) == (0, 0.0, 0.0, None)
    assert [operator.elements for operator in stats.operators] == [0] * len(stats.operators)
    assert repr(stats).startswith("0 elements\noperator")
    iterator.close()


@each_pipeline
def test_in_the_middle_at_the_end_and_after_it(make):
    iterator, seen = iter(make()), []
    for count in range(1, 41):
        next(iterator)
        stats = iterator.stats()
        assert stats.elements == count
        assert stats.operators[0].elements == count
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


@each_pipeline
def test_after_close_it_is_what_it_was(make):
    iterator = iter(make())
    for _ in range(7):
        next(iterator)
    iterator.close()
    stats = iterator.stats()
    assert stats.elements == 7
    assert stats == iterator.stats()
    assert stats.buffered_bytes == 0
    assert [operator.buffered_elements for operator in stats.operators] == [0] * len(stats.operators)
    iterator.close()
    assert iterator.stats().elements == 7


@pytest.mark.parametrize("close", [False, True])
def test_of_one_that_was_never_asked(close):
    iterator = iter(PIPELINES["background"]())
    if close:
        iterator.close()
    assert iterator.stats().elements == 0
    assert repr(iterator.stats())


def test_exceptions_count_as_elements():
    def fail(x):
        if x % 3 == 0:
            raise ValueError("bad")
        return x

    iterator, failures = iter(Dataset.range(10).map(fail)), 0
    while True:
        try:
            if next(iterator, None) is None:
                break
        except ValueError:
            failures += 1
            assert iterator.stats().elements >= failures
    assert failures == 4
    assert table(iterator) == [(0, "map(fail)", 10), (1, "range(10)", 10)]
    assert iterator.stats().elements == 10


@each_pipeline
def test_of_one_that_goes_on_from_a_state_they_begin_with_that(make):
    iterator = iter(make())
    for _ in range(15):
        next(iterator)
    state = iterator.state_dict()
    resumed = iter(make())
    next(resumed)
    resumed.load_state_dict(state)
    assert (resumed.stats().elements, resumed.stats().seconds) == (0, 0.0)
    assert len(list(resumed)) == 25
    assert resumed.stats().elements == 25
    assert resumed.stats().operators[0].elements == 25
    iterator.close()


def test_of_one_that_goes_on_from_the_end():
    iterator = run(PIPELINES["background"]())
    state = iterator.state_dict()
    iterator = iter(PIPELINES["background"]())
    iterator.load_state_dict(state)
    assert next(iterator, None) is None
    assert iterator.stats().elements == 0


class Blocked:
    """Function that signals when it is called with a number, and then waits."""

    def __init__(self, number):
        self.number = number
        self.called, self.gate = threading.Event(), threading.Event()

    def __call__(self, x):
        if x == self.number:
            self.called.set()
            assert self.gate.wait(WAIT)
        return x + 1


@pytest.mark.parametrize(
    ("where", "number"), [("here", 0), ("here", 5), ("in a thread", 0), ("in a thread", 5), ("in threads", 0)]
)
def test_from_another_thread_while_an_element_is_waited_for(number, where):
    blocked = Blocked(number)
    calls = 2 if where == "in threads" else None
    dataset = Dataset.range(10).map(blocked, num_parallel_calls=calls, name="blocked")
    iterator = iter(dataset.prefetch(1) if where == "in a thread" else dataset)
    taken = threading.Thread(target=lambda: [next(iterator) for _ in range(number + 1)])
    taken.start()
    assert blocked.called.wait(WAIT)
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
    blocked.gate.set()
    taken.join(WAIT)
    assert iterator.stats().elements == number + 1
    iterator.close()


def test_from_many_threads_while_others_iterate():
    iterator = iter(Dataset.range(3000).map(plus, num_parallel_calls=2).batch(2).repeat(2).prefetch(3))
    done, seen, failed = threading.Event(), [], []

    def look():
        try:
            while not done.is_set():
                seen.append(iterator.stats().elements)
                repr(iterator.stats())
        except BaseException as error:
            failed.append(error)
            raise

    watchers = [threading.Thread(target=look) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    assert sum(1 for _ in iterator) == 3000
    done.set()
    for watcher in watchers:
        watcher.join(WAIT)
    assert not failed
    assert max(seen) <= 3000


def test_a_function_of_the_pipeline_may_ask():
    found, iterators = [], []

    def look(x):
        found.append(iterators[0].stats().elements)
        return x + 1

    iterators.append(iter(Dataset.range(3).map(look)))
    list(iterators[0])
    assert len(found) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_in_a_forked_child_they_belong_to_the_parent():
    """The locks of the stages may be held by threads that do not exist in the child."""
    with iter(Dataset.range(100).map(plus, num_parallel_calls=2).prefetch(2)) as iterator:
        next(iterator)
        assert "pull" in vars(iterator._root)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                iterator.stats()
                said = "no error"
            except ClosedError as error:
                said = str(error)
            except BaseException as error:
                said = repr(error)
            os.write(writing, said.encode())
            os._exit(0)
        os.waitpid(child, 0)
        said = os.read(reading, 1000).decode()
        os.close(reading)
        os.close(writing)
        assert said == "this iterator belongs to the parent process; call iter() in the child"
        assert iterator.stats().elements == 1


# Where it runs


def runs(dataset, count=5):
    with iter(dataset) as iterator:
        list(itertools.islice(iterator, count))
        return {operator.name: operator.runs for operator in iterator.stats().operators}


def wait_a_little(x):
    time.sleep(1e-3)  # long enough to be worth a thread
    return x + 1


def test_it_says_in_which_thread_an_op_runs():
    slow = Dataset.range(100).map(wait_a_little, num_parallel_calls=2, name="slow").batch(2).prefetch(2)
    assert runs(slow.take(100)) == {
        "take(100)": "in the consumer's thread",
        "prefetch(2)": "in a thread",
        "batch(2)": "in the thread of prefetch",
        "slow": "in threads",
        "range(100)": "in the threads of map, one at a time",
    }


def test_it_says_that_worker_processes_run_it():
    found = runs(Dataset.range(20).map(plus, num_parallel_calls=2, executor="process", name="away"))
    assert found["away"] == "in processes"


def test_it_says_that_the_consumer_does_cheap_work_itself():
    found = runs(Dataset.range(20_000).map(plus, num_parallel_calls=2), 20_000)
    assert found == {"map(plus)": "inline", "range(20000)": "in the consumer's thread"}


# Time


def spin(x):
    until = time.perf_counter() + 2e-3
    while time.perf_counter() < until:
        pass
    return x + 1


def sleep(x):
    time.sleep(2e-3)
    return x + 1


@pytest.mark.parametrize("calls", [None, 2, AUTOTUNE])
@pytest.mark.parametrize("work", [spin, sleep])
def test_the_op_that_takes_long_has_the_most_seconds_and_is_the_bottleneck(work, calls):
    dataset = Dataset.range(60).map(plus, num_parallel_calls=calls, name="before").shuffle(3)
    dataset = dataset.map(work, num_parallel_calls=calls, name="slow").batch(4).map(plus, name="behind")
    stats = run(dataset).stats()
    slowest = max(stats.operators, key=lambda operator: operator.seconds)
    assert slowest.name == "slow"
    assert slowest.seconds_per_element > 1.9e-3
    assert stats.bottleneck.name == "slow"
    assert stats.bottleneck.gain > 1.1


def test_work_that_waits_has_little_of_the_processor_and_work_that_computes_nearly_all():
    def share(work, calls):
        stats = run(Dataset.range(40).map(work, num_parallel_calls=calls, name="work")).stats()
        return stats.operators[0].cpu_seconds / stats.operators[0].seconds

    assert share(sleep, None) < 0.3
    assert share(sleep, 2) < 0.3
    assert share(spin, None) > 2 * share(sleep, None)


def test_a_slow_consumer_is_the_bottleneck():
    iterator = iter(Dataset.range(30).map(plus).prefetch(2))
    for _ in iterator:
        time.sleep(2e-3)  # the consumer's work
    stats = iterator.stats()
    assert stats.bottleneck.name == stats.bottleneck.bound == "the consumer"
    assert stats.consumer_seconds > stats.wait_seconds


def test_seconds_of_operators_in_the_consumers_thread_add_up_to_what_it_waited():
    stats = run(Dataset.range(50).map(spin).batch(5)).stats()
    assert sum(operator.seconds for operator in stats.operators) == pytest.approx(stats.wait_seconds, rel=0.02)
    assert stats.bottleneck.bound == "the consumer's thread"


# Budgets


def test_budgets_are_told():
    dataset = Dataset.range(10).map(plus, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    stats = run(with_options(dataset, ram_budget=10_000_000, cpu_budget=3)).stats()
    assert (stats.ram_budget, stats.cpu_budget) == (10_000_000, 3)
    assert repr(stats).endswith("memory: 0 B in buffers of a budget of 10 MB; cores: 3")


def test_without_tuning_only_a_budget_of_the_user_is_a_bound():
    dataset = Dataset.range(10).prefetch(AUTOTUNE)
    stats = run(with_options(dataset, enabled=False, cpu_budget=3)).stats()
    assert stats.ram_budget is None
    assert repr(stats).endswith("memory: 0 B in buffers; cores: 3")
    stats = run(with_options(dataset, enabled=False, ram_budget=10, cpu_budget=3)).stats()
    assert stats.ram_budget == 10


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
        operator("batch(32)", depth=1, elements=1205, seconds=6.025, cpu_seconds=6.0, input_wait_seconds=12.5,
                 runs="in the thread of prefetch"),
        operator("map(decode)", depth=2, elements=38_560, seconds=231.36, cpu_seconds=180.0,
                 consumer_wait_seconds=12.5, runs="in threads", parallelism=6, mean_parallelism=3.856,
                 buffered_elements=37, is_tuned=True),
        operator("map(cheap)", depth=3, elements=38_600, seconds=0.00386, cpu_seconds=0.00386, runs="inline",
                 parallelism=4, mean_parallelism=0.0),
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
operator                elements    each  busy  waits for input  is waited for           holds  runs
prefetch(AUTOTUNE)         1,200                                          15 s  5 of 8 (96 MB)  in a thread, tuned
  batch(32)                1,205    5 ms  100%           12.5 s                                 in the thread \
of prefetch
    map(decode)           38,560    6 ms   78%                          12.5 s              37  in threads, 6 at once \
(3.9 busy), tuned
      map(cheap)          38,600  100 ns  100%                                                  inline
        range(1000000)    38,600    0 ns  100%                                                  in the threads of map, \
one at a time
bottleneck: map(decode) (if twice as fast: 1.27 times the throughput; limited by: cores)
memory: 102 MB in buffers of a budget of 2 GB; cores: 4"""


def test_it_prints_as_a_table():
    assert repr(STATISTICS) == PRINTED


def test_a_pipeline_that_has_not_begun_prints_what_there_is():
    stats = PipelineStatistics(0, 0.0, 0.0, 0.0, (operator("range(3)"),), None, 0, None, 2)
    assert repr(stats) == (
        "0 elements\noperator  elements  runs\nrange(3)         0  in the consumer's thread\n"
        "memory: 0 B in buffers; cores: 2"
    )


@pytest.mark.parametrize("make", [case[0] for case in CASES.values()], ids=CASES)
def test_as_plain_data_they_go_through_json(make):
    stats = run(make()).stats()
    data = stats.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["elements"] == stats.elements
    assert [one["name"] for one in data["operators"]] == [one.name for one in stats.operators]


def test_they_can_be_pickled_and_copied():
    stats = run(PIPELINES["background"]()).stats()
    assert pickle.loads(pickle.dumps(stats)) == copy.deepcopy(stats) == stats


def test_they_do_not_change_any_more():
    iterator = iter(Dataset.range(5))
    next(iterator)
    stats = iterator.stats()
    before = repr(stats)
    list(iterator)
    assert repr(stats) == before
    with pytest.raises(AttributeError):
        stats.elements = 7


def test_a_log_prints_as_lines():
    log = TuningLog(
        [
            Decision(0.251, "map(decode)", "try", "num_parallel_calls", 2, 4, "1.9 of its 2 workers are busy"),
            Decision(12.5, "map(decode)", "run inline", "", None, None, "that is quicker"),
        ]
    )
    assert repr(log) == (
        "    0.25 s  map(decode): try num_parallel_calls 2 -> 4: 1.9 of its 2 workers are busy\n"
        "   12.50 s  map(decode): run inline: that is quicker"
    )
    assert repr(TuningLog()) == "TuningLog: nothing was decided"
    assert json.loads(json.dumps(log.to_dicts())) == log.to_dicts()
    assert log.to_dicts()[0]["after"] == 4

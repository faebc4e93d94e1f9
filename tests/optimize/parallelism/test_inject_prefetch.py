"""inject_prefetch: batches are made while the consumer works, where nobody can notice it but by the clock."""

import threading
from pathlib import Path

import numpy as np
import pytest

import dataset
from dataset import Dataset, Options, TFRecordDataset, io
from dataset.ops import prefetch
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes
from support.overlap import Clock

ROWS = np.arange(24).reshape(12, 2)


def slices():
    return Dataset.from_tensor_slices(ROWS)


def asked():
    options = Options()
    options.optimization.inject_prefetch = True
    return options


def fires(data, options=None):
    return "inject_prefetch" in [fired.rule for fired in optimize(data.plan, options and options.optimization).fired]


def user(x):
    return abs(x)


@pytest.fixture
def records(tmp_path):
    with io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(12):
            writer.write(b"%d" % number)
    return tmp_path / "a.tfrecord"


FIRES = {
    "gather": lambda: slices().shuffle(5, seed=1).batch(2),
    "padded": lambda: slices().shuffle(5, seed=1).padded_batch(2),
    "rebatch": lambda: slices().shuffle(5, seed=1).batch(2).rebatch(3),
    "ops above the batch": lambda: slices().shuffle(5, seed=1).batch(2).take(3).repeat(2),
    "arithmetic": lambda: slices().map(lambda x: x + 1).batch(2),
}
NEVER = {
    "a prefetch": lambda: slices().batch(2).prefetch(1),
    "no batches": slices,
    "slices": lambda: slices().batch(2),
    "slices of slices": lambda: slices().skip(3).batch(2).take(3),
    "several inputs": lambda: Dataset.zip(slices().batch(2), slices().shuffle(5).batch(2)),
    "numbers": lambda: Dataset.range(12).shuffle(3, seed=1).batch(2),
    "counted": lambda: Dataset.counter().batch(2).take(5),
    "a function": lambda: slices().map(user).batch(2),
    "a function above": lambda: slices().batch(2).map(user),
    "a generator": lambda: Dataset.from_generator(lambda: iter(range(5))).batch(2),
}


@pytest.mark.parametrize("case", FIRES)
def test_fires_and_changes_nothing(case):
    assert fires(FIRES[case]())
    off = Options()
    off.optimization.inject_prefetch = False
    assert not fires(FIRES[case](), off)
    expected = outcomes(iter(FIRES[case]().with_options(off)))
    assert_elements_equal(outcomes(iter(FIRES[case]())), expected)


def test_fires_over_files(records):
    check_operator(
        lambda: TFRecordDataset(records).batch(5),
        [np.array([b"%d" % i for i in part], object) for part in (range(5), range(5, 10), range(10, 12))],
    )
    assert fires(TFRecordDataset(records).batch(5))


@pytest.mark.parametrize("case", NEVER)
def test_does_not_fire(case):
    assert not fires(NEVER[case]())


@pytest.mark.parametrize("case", ["a function", "a function above", "a generator"])
def test_functions_are_called_ahead_only_where_the_user_says_so(case):
    assert "call your functions" in str(optimize(NEVER[case]().plan).missed[-1])
    assert fires(NEVER[case](), asked())
    assert_elements_equal(outcomes(iter(NEVER[case]().with_options(asked()))), outcomes(iter(NEVER[case]())))


def test_the_plan_shows_it():
    assert slices().shuffle(3).batch(2).explain().count("prefetch(AUTOTUNE) once it pays") == 1


@pytest.fixture
def clock(monkeypatch):
    time = Clock()
    monkeypatch.setattr(prefetch, "time", time)
    return time


def consumed(clock, data, use_seconds, count):
    """Take some elements; how many before there was a thread."""
    before = threading.active_count()
    iterator = iter(data)
    with_thread = None
    for place in range(count):
        next(iterator)
        if with_thread is None and threading.active_count() > before:
            with_thread = place
        clock.now += use_seconds
    iterator.close()
    return with_thread


@pytest.mark.parametrize(
    ("make_seconds", "use_seconds", "starts"),
    [(0.01, 0.01, True), (0.01, 1e-6, False), (1e-6, 0.01, False), (3e-4, 3e-4, True), (1e-5, 1e-5, False)],
)
def test_the_thread_is_started_where_both_take_long(clock, make_seconds, use_seconds, starts):
    @dataset.vectorized
    def work(rows):
        clock.now += make_seconds
        return rows

    with no_leaks():
        data = Dataset.from_tensor_slices(np.zeros((100, 2))).batch(2).map(work).with_options(asked())
        place = consumed(clock, data, use_seconds, 40)
    assert (place is not None) == starts
    if starts:
        assert place == 3


@pytest.mark.parametrize("taken", [0, 1, 4, 7])
def test_a_state_goes_from_before_the_thread_to_after_it_and_back(clock, taken):
    def make(seconds):
        @dataset.vectorized
        def work(rows):
            clock.now += seconds
            return rows

        return Dataset.from_tensor_slices(np.arange(20)).batch(2).map(work).with_options(asked())

    expected = list(make(0))
    for before, after in ((0, 1), (1, 0), (1, 1)):
        iterator = iter(make(before))
        for _ in range(taken):
            next(iterator)
            clock.now += 1
        resumed = iter(make(after))
        resumed.load_state_dict(iterator.state_dict())
        found = []
        for batch in resumed:
            found.append(batch)
            clock.now += 1
        assert_elements_equal(found, expected[taken:])
        iterator.close()


def test_the_rest_between_two_looks_grows(clock):
    """Cheap elements are looked at ever more rarely, so that looking costs next to nothing."""
    looks = []

    class Counting(Clock):
        def perf_counter(self):
            looks.append(1)
            return 0.0

    prefetch.time = Counting()
    list(Dataset.from_tensor_slices(np.zeros(4000)).shuffle(100).batch(2))
    assert len(looks) < 2000 / 10


def test_fires_where_a_function_reads_what_belongs_to_a_number():
    def read(n):
        return Path(__file__).stat().st_size + n

    numbers = Dataset.range(20).map(read).batch(2)
    assert "prefetch(AUTOTUNE) once" in numbers.with_options(asked()).explain()
    assert "prefetch(AUTOTUNE) once" not in Dataset.range(20).batch(2).with_options(asked()).explain()

"""prefetch(AUTOTUNE): working with a thread and without it are compared if a thread could hide something."""

import itertools
import threading

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset
from dataset.ops import prefetch
from dataset.ops.batch.batch import BatchOperator
from dataset.ops.map import MapOperator
from dataset.ops.prefetch import PatientPrefetchOperator
from dataset.runtime.choice import Choice, Learned
from dataset.testing import assert_elements_equal, check_operator, no_leaks
from support.op_cases import ints
from support.overlap import WAIT, Clock
from support.resuming import advanced, loaded, to_json

LONG = 0.01
COUNT = 200
EXPECTED = [*ints(*range(77)), ValueError("bad 77"), *ints(*range(78, COUNT))]


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(prefetch, "time", clock)
    return clock


class Pipeline:
    """Numbers from a function that takes ``self.make_seconds``, and a consumer that takes ``self.use_seconds``."""

    def __init__(self, clock, source=None):
        self.clock = clock
        self.be_quick()
        self.dataset = (source or Dataset.range(COUNT)).map(self.make).prefetch(AUTOTUNE)
        self.found = []
        self.open()

    def open(self):
        self.iterator = iter(self.dataset)
        self.stage = self.iterator._root

    def make(self, x):
        self.clock.now += self.make_seconds
        if x == 77:
            raise ValueError("bad 77")
        return x

    def take(self, count):
        for _ in range(count):
            self.found += advanced(self.iterator, 1)
            self.clock.now += self.use_seconds

    def be_slow(self):
        self.make_seconds = self.use_seconds = LONG

    def be_quick(self):
        self.make_seconds = self.use_seconds = 0.0


SOURCES = {
    "indexed": lambda: Dataset.range(COUNT),
    "generator": lambda: Dataset.from_generator(lambda: iter(np.arange(COUNT))),
}


class Turns(Choice):
    """Accepts each challenger at once."""

    def is_due(self, now):
        return True

    def challenge(self, way, now, before=None):
        self.accept(way)


@pytest.mark.parametrize("source", SOURCES)
def test_the_thread_comes_and_goes_and_states_are_exact(clock, monkeypatch, source):
    monkeypatch.setattr(prefetch, "Choice", Turns)
    with no_leaks():
        pipeline = Pipeline(clock, SOURCES[source]())
        pipeline.stage.knob.maximum = 4  # both sides move the clock, so the stage may believe that it needs many
        pipeline.be_slow()
        where = []
        for number in range(COUNT):
            where.append(pipeline.stage.inline)
            with loaded(pipeline.dataset, to_json(pipeline.iterator.state_dict())) as resumed:
                assert_elements_equal(advanced(resumed, 4), EXPECTED[number : number + 4])
            pipeline.take(1)
        assert_elements_equal(pipeline.found, EXPECTED)
        assert sum(before != after for before, after in itertools.pairwise(where)) > 10
        assert advanced(pipeline.iterator, 1) == advanced(pipeline.iterator, 1) == []


@pytest.mark.parametrize("way", ["inline", "thread"])
def test_the_next_iteration_begins_as_the_last_one_ended(clock, way):
    pipeline = Pipeline(clock)
    for _ in range(2):
        pipeline.take(2)
        pipeline.stage.warm_start(Learned(way, 2, rest=1e9))
        pipeline.take(2)
        pipeline.iterator.close()
        pipeline.open()
        pipeline.take(1)
        assert pipeline.stage.inline is (way == "inline")
    pipeline.iterator.close()


def test_the_consumer_computes_only_after_the_thread_has_left(monkeypatch):
    reached, release, inside, most = threading.Event(), threading.Event(), set(), set()

    def make(x):
        inside.add(int(x))
        most.add(len(inside))
        if x == 3:
            reached.set()
            release.wait(WAIT)
        elif x > 3:
            release.set()
        inside.discard(int(x))
        return x

    def wait(stage, **how):
        release.set()
        wait_for_stillness(stage, **how)

    wait_for_stillness = PatientPrefetchOperator._wait_for_stillness
    monkeypatch.setattr(PatientPrefetchOperator, "_look", lambda _: 1.0)
    monkeypatch.setattr(PatientPrefetchOperator, "_wait_for_stillness", wait)
    with iter(Dataset.range(9).map(make).prefetch(AUTOTUNE)) as iterator:
        iterator._root.choice.accept(prefetch.THREAD)
        found = [next(iterator), next(iterator)]  # two elements are computed ahead
        assert reached.wait(WAIT)
        iterator._root.choice.accept("inline")
        assert [*found, *itertools.islice(iterator, 5)] == [*range(7)]
        assert most == {1}


FAILING = Dataset.range(90).map(lambda x: 7 // (x % 31 - 5)).prefetch(AUTOTUNE)


def requests_of(monkeypatch, operator, clock, seconds=0.0):
    """How many elements are requested from operators of this class at a time; computing one takes ``seconds``."""
    sizes, pull = [], operator.pull

    def recording(self, n):
        sizes.append(n)
        clock.now += n * seconds
        return pull(self, n)

    monkeypatch.setattr(operator, "pull", recording)
    return sizes


def test_cheap_elements_without_user_code_are_computed_many_at_once_without_a_thread(clock, monkeypatch):
    sizes = requests_of(monkeypatch, BatchOperator, clock)
    with no_leaks():
        iterator = iter(Dataset.range(4000).map(lambda x: x * 2).batch(2).prefetch(AUTOTUNE))
        found = [batch.tolist() for batch in iterator]
        assert iterator._root.inline
    assert found == [[x, x + 2] for x in range(0, 8000, 4)]
    assert sizes[0] == 1
    assert max(sizes) == prefetch.BUFFER_SIZE_MAX
    assert len(sizes) < 60


def test_elements_that_take_long_or_are_large_are_computed_one_at_a_time(clock, monkeypatch):
    for seconds, target_bytes in ((prefetch._TARGET_SECONDS, prefetch.CACHE_BYTES), (0.0, 16)):
        with monkeypatch.context() as patch:
            patch.setattr(prefetch, "CACHE_BYTES", target_bytes)
            sizes = requests_of(patch, BatchOperator, clock, seconds)
            assert len(list(Dataset.range(100).batch(2).prefetch(AUTOTUNE))) == 50
        assert set(sizes) == {1}


def test_a_function_that_may_wait_is_called_for_one_element_at_a_time(clock, monkeypatch):
    sizes = requests_of(monkeypatch, MapOperator, clock)
    Pipeline(clock).take(COUNT // 2)
    assert set(sizes) == {1}


@pytest.mark.parametrize("make", [lambda: FAILING, lambda: FAILING.batch(2).prefetch(AUTOTUNE)])
def test_states_and_failures_are_exact_where_many_are_computed_at_once(clock, make):
    assert any(isinstance(outcome, Exception) for outcome in check_operator(make))

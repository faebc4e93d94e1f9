"""prefetch: what it holds, when it starts, and that its elements are those of its input."""

import gc
import threading

import pytest

from dataset import AUTOTUNE, Dataset
from support.overlap import Gate
from support.process_helpers import in_thread
from support.states import rest_of

WAIT = 60  # for what must come; nothing waits that long
pytestmark = pytest.mark.usefixtures("switch_interval")


class Source:
    """A generator that counts what was taken."""

    def __init__(self):
        self.taken = 0
        self._reached = threading.Condition()

    def __call__(self):
        for number in range(1000):
            with self._reached:
                self.taken += 1
                self._reached.notify_all()
            yield number

    def wait_until(self, taken):
        with self._reached:
            assert self._reached.wait_for(lambda: self.taken >= taken, WAIT)

    def dataset(self):
        return Dataset.from_generator(self)


def thread_is_at_rest(iterator):
    """Wait until the prefetch thread can go no further: it holds all that it may."""
    operator = iterator._root
    with operator.lock:
        assert operator._stillness.wait_for(lambda: not operator._is_busy, WAIT)
    assert len(operator._items) >= operator.knob.value


def test_of_size_zero_it_starts_no_thread_and_without_a_size_the_library_chooses():
    before = set(threading.enumerate())
    iterator = iter(Dataset.range(3).prefetch(0))
    assert next(iterator) == 0
    assert set(threading.enumerate()) <= before
    assert Dataset.range(3).prefetch(None).plan.buffer_size == AUTOTUNE


def test_nothing_is_pulled_before_the_first_element_is_requested():
    source, before = Source(), set(threading.enumerate())
    iterator = iter(source.dataset().prefetch(4).prefetch(2))
    iterator.state_dict()
    assert source.taken == 0
    assert set(threading.enumerate()) <= before
    next(iterator)
    iterator.close()
    assert source.taken >= 1


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_it_never_holds_more_than_its_size(size):
    source = Source()
    with iter(source.dataset().prefetch(size)) as iterator:
        for given in range(1, 60):
            next(iterator)
            # Whatever the thread has done by now, it is no further than this.
            assert source.taken <= given + size
        source.wait_until(59 + size)  # and it gets that far by itself
        assert source.taken == 59 + size


@pytest.mark.parametrize("size", [1, 3, 8])
def test_it_never_holds_more_than_its_size_where_many_come_or_are_requested_at_a_time(size):
    with iter(Dataset.range(10_000).prefetch(size)) as iterator:
        for _ in range(300):
            next(iterator)
            assert iterator._root.buffered()[0] <= size
    source = Source()
    with iter(source.dataset().prefetch(size).batch(10)) as iterator:
        for given in range(1, 10):
            next(iterator)
            assert source.taken <= 10 * given + size


def test_a_slow_element_does_not_hold_back_those_that_are_ready():
    """Once elements were quick, several are requested at once; the ready ones must still come out first."""
    gate, found, enough = Gate(6), [], threading.Event()

    def consume():
        for number in iterator:
            found.append(int(number))
            if len(found) == 6:
                enough.set()

    iterator = iter(Dataset.from_generator(lambda: map(gate, range(7))).prefetch(100))
    consumer = in_thread(consume)
    gate.wait_for(1)
    came = enough.wait(5)
    gate.opened.set()
    consumer.result()
    assert found == list(range(7))
    assert came, "elements that were ready waited for one that was not"


def test_an_exception_counts_as_an_element_that_is_held():
    calls = []

    def fail(x):
        calls.append(x)
        raise ValueError

    with iter(Dataset.range(100).map(fail).prefetch(3)) as iterator:
        for given in range(1, 20):
            with pytest.raises(ValueError):
                next(iterator)
            assert len(calls) <= given + 3


def test_a_state_does_not_wait_for_the_element_in_the_making():
    gate = Gate(1)
    dataset = Dataset.from_generator(lambda: map(gate, range(20))).prefetch(2)
    iterator = iter(dataset)
    assert next(iterator) == 0
    gate.wait_for(1)  # the thread is inside the generator, and stays there
    state = iterator.state_dict()
    gate.opened.set()
    assert list(iterator) == rest_of(dataset, state) == list(range(1, 20))


def test_a_resumed_prefetch_holds_no_more_than_its_size():
    with iter(Source().dataset().prefetch(3)) as iterator:
        next(iterator)
        thread_is_at_rest(iterator)
        state = iterator.state_dict()
    source = Source()
    with iter(source.dataset().prefetch(3)) as resumed:
        resumed.load_state_dict(state)
        assert source.taken <= 1  # a generator is run again up to the place, either now or by the thread
        for given in range(2, 30):
            assert next(resumed) == given - 1
            assert source.taken <= given + 3


def test_a_prefetch_that_repeat_has_finished_with_leaves_no_thread_behind():
    def alive():
        return sum(thread.name == "dataset-worker" for thread in threading.enumerate())

    gc.collect()
    before = alive()
    with iter(Dataset.range(3).prefetch(2).repeat(50)) as iterator:
        for _ in range(150):
            next(iterator)
            assert alive() - before <= 1

"""prefetch(AUTOTUNE): its thread comes while making and using both take long, and goes when one of them does not."""

import os
import threading

import pytest

from dataset import AUTOTUNE, ClosedError, Dataset
from dataset.ops import prefetch
from dataset.testing import no_leaks
from support.overlap import Clock

LONG = 0.01
COUNT = 200


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(prefetch, "time", clock)
    return clock


class Pipeline:
    """Numbers from a function that takes ``self.make_seconds``, and a consumer that takes ``self.use_seconds``."""

    def __init__(self, clock, source=None):
        self.clock = clock
        self.make_seconds = self.use_seconds = 0.0
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
            try:
                self.found.append(int(next(self.iterator)))
            except ValueError:
                self.found.append("bad 77")
            self.clock.now += self.use_seconds

    def take_until(self, inline):
        """How many were taken until the work was done there."""
        count = 0
        while self.stage.inline != inline:
            self.take(1)
            count += 1
            assert count < COUNT
        return count

    def be_slow(self):
        self.make_seconds = self.use_seconds = LONG

    def be_quick(self):
        self.make_seconds = self.use_seconds = 0.0


EXPECTED = [*range(77), "bad 77", *range(78, COUNT)]


def unindexed():
    return Dataset.from_generator(lambda: iter(range(COUNT)))


@pytest.mark.parametrize("source", [None, unindexed], ids=["indexed", "generator"])
def test_the_thread_comes_and_goes_and_comes_later(clock, source):
    with no_leaks():
        pipeline = Pipeline(clock, source and source())
        assert pipeline.stage.inline
        pipeline.be_slow()
        assert pipeline.take_until(inline=False) == 4
        pipeline.be_quick()
        pipeline.take_until(inline=True)
        pipeline.be_slow()
        assert pipeline.take_until(inline=False) > 6  # the first time did not pay in the end
        pipeline.take(COUNT - len(pipeline.found))
        assert pipeline.found == EXPECTED
        with pytest.raises(StopIteration):
            next(pipeline.iterator)
        with pytest.raises(StopIteration):
            next(pipeline.iterator)


@pytest.mark.parametrize("source", [None, unindexed], ids=["indexed", "generator"])
def test_a_state_is_exact_whether_there_is_a_thread_or_not(clock, source):
    pipeline = Pipeline(clock, source and source())
    where = set()
    for number in range(COUNT):
        if number in (3, 120):
            pipeline.be_slow()
        elif number in (20, 140):
            pipeline.be_quick()
        where.add(pipeline.stage.inline)
        resumed = iter(pipeline.dataset)
        resumed.load_state_dict(pipeline.iterator.state_dict())
        for expected in EXPECTED[number : number + 4]:
            if expected == "bad 77":
                with pytest.raises(ValueError, match="bad 77"):
                    next(resumed)
            else:
                assert int(next(resumed)) == expected
        resumed.close()
        pipeline.take(1)
    assert pipeline.found == EXPECTED
    assert where == {False, True}
    pipeline.iterator.close()


def test_one_long_time_is_not_believed(clock):
    pipeline = Pipeline(clock)
    pipeline.be_slow()
    pipeline.take(1)
    pipeline.be_quick()
    pipeline.take(COUNT - 1)
    assert pipeline.stage.inline


def test_bursts_are_worth_a_thread(clock):
    """As of files that are read by the block: most elements are there at once, some take long."""
    pipeline = Pipeline(clock)
    pipeline.use_seconds = LONG
    for number in range(60):
        pipeline.make_seconds = 10 * LONG if number % 8 == 0 else 0.0
        pipeline.take(1)
        if not pipeline.stage.inline:
            break
    assert not pipeline.stage.inline
    pipeline.iterator.close()


def test_the_next_iteration_begins_as_the_last_one_ended(clock):
    pipeline = Pipeline(clock)
    pipeline.be_slow()
    pipeline.take_until(inline=False)
    pipeline.iterator.close()
    pipeline.open()
    pipeline.take(1)
    assert not pipeline.stage.inline
    pipeline.be_quick()
    pipeline.take_until(inline=True)
    pipeline.iterator.close()
    pipeline.open()
    pipeline.take(10)
    assert pipeline.stage.inline
    pipeline.iterator.close()


@pytest.mark.usefixtures("clock")
def test_close_while_the_consumer_waits_for_the_thread_to_leave():
    """Closing waits for the thread as always, and what is left comes out no more."""
    entered, go_on = threading.Event(), threading.Event()

    def block(x):
        if x == 30:
            entered.set()
            go_on.wait(20)
        return x

    with no_leaks():
        data = Dataset.range(COUNT).map(block).prefetch(AUTOTUNE)
        iterator = iter(data)
        iterator._root.warm_start(learned=True)

        def consume():
            with pytest.raises((ClosedError, StopIteration)):
                while True:
                    next(iterator)

        consumer = threading.Thread(target=consume)
        consumer.start()
        assert entered.wait(20)
        closer = threading.Thread(target=iterator.close)
        closer.start()
        go_on.set()
        for thread in (consumer, closer):
            thread.join(20)
            assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="asks the child of a fork")
def test_a_child_of_a_fork_is_told_so(clock):
    pipeline = Pipeline(clock)
    pipeline.be_slow()
    pipeline.take_until(inline=False)
    pipeline.be_quick()
    child = os.fork()
    if not child:
        status = 1
        try:
            for _ in range(COUNT):
                next(pipeline.iterator)
        except ClosedError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pipeline.take(COUNT - len(pipeline.found))
    assert pipeline.found == EXPECTED

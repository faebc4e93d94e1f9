"""interleave by threads: what is read ahead, what is waited for, and that everything is closed.

The order of the elements and resuming are tested in test_interleave_states.py and tests/test_parallel_order.py.
"""

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, TextLineDataset, TFRecordDataset
from dataset.io import write_file
from dataset.ops.interleave import reader_pool
from dataset.ops.interleave.reader_pool import AHEAD_BYTES_MAX, ReaderPool
from dataset.ops.interleave.subdatasets import Subdatasets
from dataset.runtime.choice import INLINE
from dataset.runtime.parallel.controller import Controller
from dataset.testing import check_operator, no_leaks, outcomes
from support.controllers import AlwaysInline, TakingTurns
from support.folders import flip
from support.tfrecord_files import frames

WAIT = 60  # seconds for what must happen; nothing waits that long
pytestmark = pytest.mark.usefixtures("switch_interval")


class Noted:
    """Datasets that note what happens to them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.made, self.opened, self.closed = [], [], []

    def _note(self, where, what):
        with self.changed:
            where.append(what)
            self.changed.notify_all()

    def wait_until(self, condition):
        with self.changed:
            return self.changed.wait_for(condition, WAIT)

    def dataset(self, number, length):
        return Dataset.from_generator(self._generate, args=(number, length))

    def _generate(self, number, length):
        number = int(number)
        self._note(self.opened, number)
        try:
            for i in range(length):
                self._note(self.made, (number, i))
                yield 100 * number + i
        finally:
            self._note(self.closed, number)


def wait_until_at_rest(iterator):
    """Wait until no worker reads or opens anything, because everything that may be held is held."""
    readers = iterator._root.readers

    def at_rest():
        return not (readers._reading or readers._open_tasks() or readers._opening)

    with readers.lock:
        assert readers._stillness.wait_for(at_rest, WAIT)


def test_the_next_inputs_are_opened_and_their_first_elements_read_before_a_place_is_free():
    noted = Noted()
    with iter(Dataset.range(50).interleave(lambda n: noted.dataset(n, 1000), 2, num_parallel_calls=2)) as iterator:
        next(iterator)
        assert noted.wait_until(lambda: {(2, 0), (3, 0)} <= set(noted.made))
        assert next(iterator) == 100
        assert set(noted.opened) == {0, 1, 2, 3}  # the two of the cycle, and two more


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_is_read_ahead_is_bounded_in_elements_and_bytes(deterministic):
    noted, large = Noted(), np.zeros(100_000, np.uint8)

    def held(inner):
        dataset = Dataset.range(9).interleave(inner, 2, num_parallel_calls=2, deterministic=deterministic)
        with iter(dataset) as iterator:
            next(iterator)
            wait_until_at_rest(iterator)
            return iterator._root.buffered()

    elements, nbytes = held(lambda n: noted.dataset(n, 100_000))
    assert len(noted.made) - 1 == elements <= 2 * 2048 + 2
    assert nbytes == 8 * elements
    assert held(lambda n: noted.dataset(n, 1000).map(lambda x: large))[1] <= 2 * AHEAD_BYTES_MAX + 2 * large.nbytes


@pytest.mark.parametrize("deterministic", [True, False])
def test_every_generator_is_closed_once_when_it_ends_and_wherever_it_stops(deterministic):
    def make(noted, count, length):
        return Dataset.range(count).interleave(
            lambda n: noted.dataset(n, length), 3, num_parallel_calls=3, deterministic=deterministic
        )

    for taken in (1, 5, 17):
        noted = Noted()
        with no_leaks(), iter(make(noted, 20, 4)) as iterator:
            for _ in range(taken):
                next(iterator)
        assert sorted(noted.closed) == sorted(noted.opened)
    noted = Noted()
    with iter(make(noted, 3, 2)) as iterator:
        next(iterator)
        assert noted.wait_until(lambda: sorted(noted.closed) == [0, 1, 2])  # while others are read


# Reading by the consumer ----------------------------------------------------------------------------------------------


@pytest.fixture(params=[AlwaysInline, TakingTurns])
def reads_here(request, monkeypatch):
    """Let the consumer read always or from time to time, and check that it has."""
    read_here, done = ReaderPool._read_here, []

    def counted(self):
        done.append(read_here(self))
        return done[-1]

    monkeypatch.setattr(ReaderPool, "_read_here", counted)
    monkeypatch.setattr(reader_pool, "Controller", request.param)
    yield
    assert any(done) or request.param is TakingTurns  # whose workers may have read everything


@pytest.fixture
def damaged_files(tmp_path):
    """Return the paths of files with 400 records each. The fifth record of the second file is damaged."""
    paths = [tmp_path / f"{k}.tfrecord" for k in range(3)]
    for k, path in enumerate(paths):
        path.write_bytes(frames([f"{k}-{i:03}".encode() for i in range(400)]))
    flip(paths[1], 21 * 4 + 13)
    return [str(path) for path in paths]


@pytest.mark.usefixtures("reads_here")
@pytest.mark.parametrize(("cycle", "block", "calls"), [(3, 1, 5), (2, 2, AUTOTUNE), (1, 7, 1)])
def test_a_consumer_that_reads_keeps_the_contract_of_operators(cycle, block, calls):
    lengths = [3, 0, 50, 1, 40, 2]

    def make(calls):
        ranges = Dataset.range(6)
        return ranges.interleave(
            lambda n: Dataset.range(100 * n, 100 * n + lengths[int(n)]), cycle, block, num_parallel_calls=calls
        )

    check_operator(lambda: make(calls), outcomes(iter(make(None))), positions=20)


@pytest.mark.usefixtures("reads_here")
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_consumer_that_reads_raises_failures_in_their_places(damaged_files, deterministic):
    def make(calls):
        names = Dataset.from_tensor_slices(damaged_files)
        return names.interleave(TFRecordDataset, 2, 3, num_parallel_calls=calls, deterministic=deterministic)

    expected, got = (list(map(repr, outcomes(iter(make(calls))))) for calls in (None, 2))
    assert sum("DataLossError" in one for one in expected) == 1
    assert got == expected if deterministic else sorted(got) == sorted(expected)


def test_a_consumer_that_reads_leaves_user_code_to_the_workers(monkeypatch):
    monkeypatch.setattr(reader_pool, "Controller", AlwaysInline)
    threads = set()

    def generate(n):
        for i in range(100):
            threads.add(threading.get_ident())
            yield i + n

    dataset = Dataset.range(4).interleave(
        lambda n: Dataset.from_generator(generate, args=(n,)), 2, num_parallel_calls=2
    )
    assert len(list(dataset)) == 400
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("place", ["", "memory://left/"])
def test_a_consumer_leaves_remote_files_to_the_workers(damaged_files, monkeypatch, place):
    read_here, done = ReaderPool._read_here, []
    monkeypatch.setattr(ReaderPool, "_read_here", lambda self: done.append(read_here(self)) or done[-1])
    paths = damaged_files[::2]
    for path in paths:
        write_file(f"{place}{path}", Path(path).read_bytes())

    class Inline(Controller):
        """Lets the consumer read from the beginning."""

        def __init__(self, *given, **settings):
            super().__init__(*given, **settings)
            self.choice.accept(INLINE)

    monkeypatch.setattr(reader_pool, "Controller", Inline)
    names = Dataset.from_tensor_slices([f"{place}{path}" for path in paths])
    assert len(list(names.interleave(TFRecordDataset, 2, num_parallel_calls=2))) == 800
    assert any(done) == (not place)


def test_an_interrupt_while_the_consumer_reads_loses_nothing(tmp_path, monkeypatch):
    paths = [str(tmp_path / f"{k}.txt") for k in range(2)]
    for k, path in enumerate(paths):
        Path(path).write_text("".join(f"{k} {i}\n" for i in range(5000)))
    names = Dataset.from_tensor_slices(paths)
    expected = list(names.interleave(TextLineDataset, 2))
    read, places = Subdatasets.read, itertools.count(1)

    def interrupted(self, inner, n, *, ahead=False):
        if threading.current_thread() is threading.main_thread() and next(places) % 2:
            raise KeyboardInterrupt
        return read(self, inner, n, ahead=ahead)

    monkeypatch.setattr(reader_pool, "Controller", AlwaysInline)
    monkeypatch.setattr(Subdatasets, "read", interrupted)
    got, interrupts = [], 0
    with iter(names.interleave(TextLineDataset, 2, num_parallel_calls=2)) as iterator:
        while len(got) < len(expected):
            try:
                got.append(next(iterator))
            except KeyboardInterrupt:
                interrupts += 1
    assert got == expected
    assert interrupts

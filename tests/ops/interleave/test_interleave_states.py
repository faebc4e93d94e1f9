"""States of interleave: they are saved without waiting, hold nothing that can be read again, and lose nothing."""

import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, TFRecordDataset, io
from dataset.errors import DataLossError
from dataset.ops.interleave.subdatasets import Inputs
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import advanced, check_every_place, check_stops

WAIT = 60  # seconds for what must happen; nothing waits that long
pytestmark = pytest.mark.usefixtures("switch_interval")


def resumed_at(make, state):
    iterator = iter(make())
    iterator.load_state_dict(pickle.loads(pickle.dumps(state)))
    return iterator


def check_resumes(make, places, resume=None):
    """Check that a run resumed at each place, and one resumed at all of them in turn, continue. Return the outcomes."""
    found = check_every_place(make, places, resume=resume)
    builds = itertools.cycle([make, resume or make, resume or make])

    def build():
        return next(builds)()

    check_stops(build, [place for place in places if place <= len(found)], found)
    return found


# Saving does not wait


class Gate:
    """Function that returns its argument, but waits at some values until the gate is opened."""

    def __init__(self, *held_at):
        self.held_at = held_at
        self.opened = threading.Event()
        self.entered = threading.Semaphore(0)

    def __call__(self, x):
        if int(x) in self.held_at and not self.opened.is_set():
            self.entered.release()
            assert self.opened.wait(WAIT)
        return x

    def wait_until_all_wait(self):
        for _ in self.held_at:
            assert self.entered.acquire(timeout=WAIT)


def in_another_thread(action):
    """The result of ``action``; fails if it does not return."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(WAIT)
    assert found, "it waits for something"
    return found[0]


def ten_after(n):
    return Dataset.range(100 * n, 100 * n + 10)


BLOCKED = {
    "readers": (
        Gate(3, 103, 203, 303),
        lambda gate, how: Dataset.range(4).interleave(lambda n: ten_after(n).map(gate), 4, num_parallel_calls=8, **how),
    ),
    "the function": (
        Gate(3),
        lambda gate, how: Dataset.range(5).interleave(lambda n: ten_after(gate(n)), 2, num_parallel_calls=2, **how),
    ),
    "the source": (
        Gate(3),
        lambda gate, how: Dataset.range(6).map(gate).interleave(ten_after, 2, num_parallel_calls=2, **how),
    ),
}


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("blocked", BLOCKED)
def test_a_state_is_saved_at_once_while_user_code_blocks(blocked, deterministic):
    first, build = BLOCKED[blocked]
    gate = Gate(*first.held_at)

    def make():
        return build(gate, {"deterministic": deterministic})

    iterator = iter(make())
    found = advanced(iterator, 4 if blocked == "readers" else 3)
    gate.wait_until_all_wait()
    state = in_another_thread(iterator.state_dict)
    resumed = resumed_at(make, state)
    again = in_another_thread(resumed.state_dict)
    gate.opened.set()
    expected = outcomes(iter(build(gate, {})))
    for each in (iterator, resumed, resumed_at(make, again)):
        whole = found + outcomes(each)
        assert_elements_equal(
            whole if deterministic else sorted(whole), expected if deterministic else sorted(expected)
        )


def test_a_state_waits_if_the_order_is_not_repeated_and_loses_nothing():
    def in_any_order(dataset, inner):
        return dataset.interleave(inner, 3, num_parallel_calls=3, deterministic=False)

    def make():
        return in_any_order(
            Dataset.range(6),
            lambda n: in_any_order(Dataset.range(5), lambda m: Dataset.range(50 * n + m, 50 * n + 50, 5)),
        )

    for taken in (0, 7, 150, 300):
        iterator = iter(make())
        found = advanced(iterator, taken)
        resumed = resumed_at(make, iterator.state_dict())
        found += advanced(resumed, 40)
        state = resumed.state_dict()
        resumed.close()
        assert sorted(found + outcomes(resumed_at(make, state))) == list(range(300))
        iterator.close()


# Nothing is held that can be read again


@pytest.mark.parametrize("calls", [None, 4])
def test_a_state_holds_no_records_and_no_finished_rounds(tmp_path, calls):
    names = [str(tmp_path / f"{number}.tfrecord") for number in range(4)]
    for name in names:
        with io.TFRecordWriter(name) as writer:
            for i in range(100):
                writer.write(np.random.default_rng(i).bytes(3000))
    with iter(Dataset.from_tensor_slices(names).interleave(TFRecordDataset, 4, num_parallel_calls=calls)) as iterator:
        advanced(iterator, 75)
        assert len(pickle.dumps(iterator.state_dict())) < 4 * 1000
    with iter(Dataset.range(4).interleave(lambda n: Dataset.range(10_000), 4, num_parallel_calls=calls)) as iterator:
        for taken in range(1, 200, 7):
            advanced(iterator, 7)
            state = iterator.state_dict()["operator"]
            assert "outbox" not in state, taken
            assert all(not slot["held"] for slot in state["slots"])


@pytest.mark.parametrize("parallel", [None, 2])
def test_a_dataset_that_has_ended_is_not_opened_again(parallel):
    calls = []

    def open_one(n):
        calls.append(int(n))
        return Dataset.range(1 if n == 0 else 100)

    def make():
        return Dataset.range(2).interleave(open_one, 2, num_parallel_calls=parallel)

    iterator = iter(make())
    advanced(iterator, 20)
    state = iterator.state_dict()
    calls.clear()
    assert_elements_equal(outcomes(resumed_at(make, state)), outcomes(iterator))
    assert calls == [1]


# Files


def test_a_damaged_and_a_missing_file_fail_once_wherever_they_are_resumed(tmp_path):
    names = [str(tmp_path / f"{number}.plain") for number in range(5)]
    for number, (name, length) in enumerate(zip(names, (7, 0, 12, 3, 7), strict=True)):
        with io.TFRecordWriter(name) as writer:
            writer.write_all([f"{number}.{i}-{'x' * (i * 5 % 11)}".encode() for i in range(length)])
    content = bytearray((tmp_path / "2.plain").read_bytes())
    content[100] ^= 1
    (tmp_path / "2.plain").write_bytes(content)
    names[3] += ".gone"
    files = Dataset.from_tensor_slices(names)
    found = check_resumes(lambda: files.interleave(TFRecordDataset, 3, num_parallel_calls=3), range(20))
    assert [type(x) for x in found if isinstance(x, Exception)] == [FileNotFoundError, DataLossError]
    assert_elements_equal(outcomes(iter(files.interleave(TFRecordDataset, 3))), found)
    assert_elements_equal(outcomes(iter(TFRecordDataset(names, num_parallel_reads=3))), found)


# Plans around it and in it


@st.composite
def cases(draw):
    return {
        "lengths": draw(st.lists(st.integers(0, 40), max_size=7)),
        "cycle": draw(st.integers(1, 5)),
        "block": draw(st.integers(1, 4)),
        "user_code": draw(st.booleans()),
        "bad": draw(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 40)), max_size=4)),
        "bad_inputs": draw(st.sets(st.integers(0, 6), max_size=2)),
        "deterministic": draw(st.booleans()),
        "prefetched": draw(st.booleans()),
    }


def build_case(case, calls):
    def element(i, j):
        if (i, int(j)) in case["bad"]:
            raise ValueError(f"bad {i}.{j}")
        return np.int64(100 * i + j)

    def open_one(i):
        i = int(i)
        if i in case["bad_inputs"]:
            raise KeyError(f"no dataset {i}")
        numbers = Dataset.range(100 * i, 100 * i + case["lengths"][i])
        return Dataset.range(case["lengths"][i]).map(lambda j: element(i, j)) if case["user_code"] else numbers

    dataset = Dataset.range(len(case["lengths"])).interleave(
        open_one, case["cycle"], case["block"], num_parallel_calls=calls, deterministic=case["deterministic"]
    )
    return dataset.prefetch(3) if case["prefetched"] else dataset


@settings(max_examples=60, deadline=None)
@given(
    case=cases(),
    stops=st.lists(st.tuples(st.integers(0, 50), st.sampled_from([None, 1, 2, 6])), min_size=1, max_size=4),
)
def test_however_often_it_stops_each_element_is_returned_once_and_in_order(case, stops):
    expected = outcomes(iter(build_case(case, None)))
    iterator, found = iter(build_case(case, 3)), []
    for stop, calls in stops:
        found += advanced(iterator, stop)
        state = iterator.state_dict()
        iterator.close()
        iterator = resumed_at(lambda calls=calls: build_case(case, calls), state)
    found += outcomes(iterator)
    if case["deterministic"]:
        assert_elements_equal(found, expected)
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_state_in_any_order_names_no_elements_by_their_number_even_without_workers():
    """With workers, the elements that follow a number are others."""
    ranges = Dataset.range(40).interleave(lambda i: Dataset.range(i, i + 9), 3, deterministic=False)
    iterator = iter(ranges.prefetch(8))
    advanced(iterator, 13)
    assert iterator.state_dict()["operator"]["behind"] == 0


def test_readers_may_finish_while_the_source_is_saved(monkeypatch):
    """The source may wait for its workers, which may need the thread of a reader that is about to finish."""
    source = Dataset.range(20).map(int, num_parallel_calls=2, deterministic=False)
    dataset = source.interleave(lambda x: Dataset.range(x, x + 2), cycle_length=2, num_parallel_calls=2)
    was_free = []
    with iter(dataset) as iterator:
        advanced(iterator, 3)
        lock = iterator._root.readers.lock

        def save(inputs, *arguments, original=Inputs.save, **keywords):
            def finish():
                was_free.append(lock.acquire(timeout=5))
                if was_free[-1]:
                    lock.release()

            reader = threading.Thread(target=finish)
            reader.start()
            reader.join()
            return original(inputs, *arguments, **keywords)

        monkeypatch.setattr(Inputs, "save", save)
        iterator.state_dict()
    assert was_free == [True]

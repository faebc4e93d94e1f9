"""States of interleave: by place. They wait for nobody, hold nothing that can be read again, and lose nothing."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import AUTOTUNE, Dataset, Options, TextLineDataset, TFRecordDataset, io
from dataset.errors import DataLossError
from dataset.testing import assert_elements_equal, outcomes
from support.combinations import diagonals
from support.resuming import advanced

WAIT = 60  # for what must come; nothing waits that long
pytestmark = pytest.mark.usefixtures("switch_interval")


def resumed_at(make, state):
    iterator = iter(make())
    iterator.load_state_dict(pickle.loads(pickle.dumps(state)))
    return iterator


def check_every_place(make, expected, places=None):
    """From every place, and from a state of the run that was resumed there, the rest comes."""
    walking = iter(make())
    for place in range(len(expected) + 1):
        if places is None or place in places:
            state = walking.state_dict()
            first = resumed_at(make, state)
            at_once = first.state_dict()
            assert_elements_equal(advanced(first, 2), expected[place : place + 2])
            later = first.state_dict()
            assert_elements_equal(outcomes(first), expected[place + 2 :])
            for saved, start in ((at_once, place), (later, min(place + 2, len(expected)))):
                assert_elements_equal(outcomes(resumed_at(make, saved)), expected[start:])
        advanced(walking, 1)
    walking.close()


class Held:
    """Datasets whose generators stop in user code until they are let go."""

    def __init__(self, held_at):
        self.held_at = held_at
        self.changed = threading.Condition()
        self.inside = set()
        self.gate = threading.Event()

    def dataset(self, number, length=100):
        return Dataset.from_generator(self._generate, args=(number, length), output_signature=_NUMBER)

    def _generate(self, number, length):
        for i in range(length):
            if i == self.held_at and not self.gate.is_set():
                with self.changed:
                    self.inside.add(int(number))
                    self.changed.notify_all()
                assert self.gate.wait(WAIT)
            yield 1000 * int(number) + i

    def wait_until_inside(self, *numbers):
        with self.changed:
            assert self.changed.wait_for(lambda: self.inside >= set(numbers), WAIT)


_NUMBER = Dataset.range(1).element_spec


# Nobody is waited for


def in_another_thread(action):
    """The result of ``action``; fails where it does not come."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(WAIT)
    assert found, "it waits for something"
    return found[0]


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_state_is_there_at_once_while_all_readers_are_in_user_code(deterministic):
    held = Held(3)

    def make():
        return Dataset.range(4).interleave(held.dataset, 4, num_parallel_calls=8, deterministic=deterministic)

    iterator = iter(make())
    found = advanced(iterator, 4)  # the first of each, which are read alone
    held.wait_until_inside(0, 1, 2, 3)
    state = in_another_thread(iterator.state_dict)
    resumed = resumed_at(make, state)
    again = in_another_thread(resumed.state_dict)
    held.gate.set()
    expected = sorted(1000 * n + i for n in range(4) for i in range(100))
    for each in (iterator, resumed, resumed_at(make, again)):
        assert sorted(found + list(each)) == expected


def test_a_state_is_there_at_once_while_the_function_is_called():
    inside, gate = threading.Event(), threading.Event()

    def open_one(n):
        if n == 3 and not gate.is_set():
            inside.set()
            assert gate.wait(WAIT)
        return Dataset.range(10 * n, 10 * n + 4)

    def make():
        return Dataset.range(5).interleave(open_one, 2, num_parallel_calls=2)

    iterator = iter(make())
    found = advanced(iterator, 3)
    assert inside.wait(WAIT)
    state = in_another_thread(iterator.state_dict)
    gate.set()
    expected = [int(x) for x in make()]
    assert found + [int(x) for x in iterator] == expected
    assert found + [int(x) for x in resumed_at(make, state)] == expected


def test_a_state_is_there_at_once_while_the_source_makes_the_next_name():
    held = Held(3)

    def make():
        return held.dataset(0, 6).interleave(lambda n: Dataset.range(10 * n, 10 * n + 4), 2, num_parallel_calls=2)

    iterator = iter(make())
    found = advanced(iterator, 3)
    held.wait_until_inside(0)
    state = in_another_thread(iterator.state_dict)
    held.gate.set()
    expected = [int(x) for x in make()]
    assert found + [int(x) for x in iterator] == expected
    assert found + [int(x) for x in resumed_at(make, state)] == expected


def in_any_order(count):
    """The numbers below ``count``, in an order that chance decides on."""
    return Dataset.range(5).interleave(
        lambda n: Dataset.range(count).filter(lambda x: x % 5 == n), 3, num_parallel_calls=3, deterministic=False
    )


def test_a_state_waits_where_an_inner_dataset_does_not_repeat_its_order_and_loses_nothing():
    def inner(n):
        return in_any_order(50).map(lambda x: 50 * n + x)

    def make():
        return Dataset.range(6).interleave(inner, 3, num_parallel_calls=3, deterministic=False)

    for taken in (0, 1, 7, 60, 150, 299, 300):
        iterator = iter(make())
        found = advanced(iterator, taken)
        resumed = resumed_at(make, iterator.state_dict())
        found += advanced(resumed, 40)
        state = resumed.state_dict()
        resumed.close()
        assert sorted(found + outcomes(resumed_at(make, state))) == list(range(300))
        iterator.close()


def test_a_source_that_does_not_repeat_its_order_loses_nothing():
    def make():
        return in_any_order(20).interleave(lambda n: Dataset.range(10 * n, 10 * n + 10), 3, num_parallel_calls=3)

    for taken in (0, 1, 33, 120, 199, 200):
        iterator = iter(make())
        found = advanced(iterator, taken)
        resumed = resumed_at(make, iterator.state_dict())
        found += advanced(resumed, 9)
        state = resumed.state_dict()
        resumed.close()
        assert sorted(found + outcomes(resumed_at(make, state))) == list(range(200))
        iterator.close()


# Nothing is held that can be read again


@pytest.mark.parametrize("calls", [None, 8])
def test_the_state_of_open_files_has_no_records(tmp_path, calls):
    for number in range(16):
        with io.TFRecordWriter(tmp_path / f"{number}.tfrecord") as writer:
            for i in range(200):
                writer.write(np.random.default_rng([number, i]).bytes(3000))
    names = [str(tmp_path / f"{number}.tfrecord") for number in range(16)]
    iterator = iter(Dataset.from_tensor_slices(names).interleave(TFRecordDataset, 16, num_parallel_calls=calls))
    advanced(iterator, 300)
    assert len(pickle.dumps(iterator.state_dict())) < 16 * 1000
    iterator.close()


@pytest.mark.parametrize("calls", [None, 4])
def test_rounds_that_were_put_in_order_are_not_held(calls):
    iterator = iter(Dataset.range(4).interleave(lambda n: Dataset.range(10_000), 4, num_parallel_calls=calls))
    for taken in range(1, 200, 7):
        advanced(iterator, 7)
        state = iterator.state_dict()["operator"]
        assert not state["pending"], taken
        assert all(not slot["held"] for slot in state["slots"])
    iterator.close()


@pytest.mark.parametrize("calls", [None, 2])
def test_every_place_of_many_datasets_of_all_lengths(calls):
    lengths = np.random.default_rng(3).integers(0, 90, 40)

    def make():
        return Dataset.range(40).interleave(
            lambda n: Dataset.range(1000 * n, 1000 * n + lengths[n]), 20, 2, num_parallel_calls=calls
        )

    expected = outcomes(iter(make()))
    assert len(expected) == lengths.sum()
    check_every_place(make, expected, {*range(0, 100, 9), *range(100, len(expected) + 1, 331), len(expected)})


def test_rounds_of_datasets_with_large_states_are_saved_by_value():
    def inner(n):
        return Dataset.range(1000 * n, 1000 * n + 150).batch(3).unbatch().shuffle(5, seed=int(n))

    def make():
        return Dataset.range(5).interleave(inner, 3)

    expected = outcomes(iter(make()))
    iterator = iter(make())
    advanced(iterator, 100)
    assert iterator.state_dict()["operator"]["pending"]
    check_every_place(make, expected, range(0, len(expected), 97))


def test_of_a_dataset_that_is_used_up_nothing_is_made_again():
    calls = []

    def open_one(n):
        calls.append(int(n))
        return Dataset.range(1 if n == 0 else 100)

    def make(calls):
        return Dataset.range(2).interleave(open_one, 2, num_parallel_calls=calls)

    for parallel in (None, 2):
        iterator = iter(make(parallel))
        advanced(iterator, 20)
        state = iterator.state_dict()
        calls.clear()
        resumed = iter(make(parallel))
        resumed.load_state_dict(state)
        assert_elements_equal(outcomes(resumed), outcomes(iterator))
        assert calls == [1]


def test_what_was_opened_ahead_is_opened_again_when_its_turn_is_near():
    calls = []

    def open_one(n):
        calls.append(int(n))
        return Dataset.range(10 * n, 10 * n + 3)

    def make():
        return Dataset.range(8).interleave(open_one, 2, num_parallel_calls=2)

    iterator = iter(make())
    found = advanced(iterator, 2)
    with iterator._root.readers.lock:
        assert iterator._root.readers._stillness.wait_for(lambda: len(iterator._root.readers._opened) == 2, WAIT)
    state = iterator.state_dict()
    calls.clear()
    resumed = iter(make())
    resumed.load_state_dict(state)
    assert calls == [0, 1]  # those of the cycle
    again = resumed.state_dict()
    assert calls == [0, 1]
    expected = outcomes(iter(make()))
    assert_elements_equal(found + outcomes(resumed), expected)
    assert_elements_equal(found + outcomes(resumed_at(make, again)), expected)
    iterator.close()


# Files


def write_files(folder, kind, count):
    """Files of different lengths, one of them empty, and the class that reads them."""
    names = []
    for number in range(count):
        length = (7, 0, 12, 3)[number % 4]
        texts = [f"{number}.{i}-{'x' * (i * 5 % 11)}".encode() for i in range(length)]
        name = str(folder / f"{number}.{kind}")
        if kind == "text":
            (folder / f"{number}.{kind}").write_bytes(b"".join(text + b"\n" for text in texts))
        else:
            with io.TFRecordWriter(name, "GZIP" if kind == "gzip" else None) as writer:
                for text in texts:
                    writer.write(text)
        names.append(name)
    return names


KINDS = ["plain", "gzip", "text"]


def reader_of(kind):
    return {
        "plain": TFRecordDataset,
        "gzip": lambda name, **how: TFRecordDataset(name, compression_type="GZIP", **how),
        "text": TextLineDataset,
    }[kind]


SHAPES = [(1, 1, 1), (3, 2, 1), (3, 5, 3), (10, 3, 2), (10, 4, 1)]


@pytest.mark.parametrize(("kind", "shape", "calls"), diagonals(3, KINDS, SHAPES, [None, 3, AUTOTUNE]))
def test_every_place_in_open_files(tmp_path, kind, shape, calls):
    files, cycle, block = shape
    names, reader = write_files(tmp_path, kind, files), reader_of(kind)

    def make():
        return Dataset.from_tensor_slices(names).interleave(reader, cycle, block, num_parallel_calls=calls)

    expected = outcomes(iter(make()))
    assert len(expected) == sum((7, 0, 12, 3)[number % 4] for number in range(files))
    places = None if files < 10 else {*range(0, len(expected), 5), len(expected)}
    check_every_place(make, expected, places)


@pytest.mark.parametrize(("kind", "reads"), diagonals(3, KINDS, [1, 2, AUTOTUNE]))
def test_every_place_of_parallel_reads(tmp_path, kind, reads):
    names, reader = write_files(tmp_path, kind, 5), reader_of(kind)
    check_every_place(
        lambda: reader(names, num_parallel_reads=reads),
        outcomes(iter(reader(names, num_parallel_reads=reads))),
    )


def test_a_damaged_file_fails_once_wherever_it_is_resumed(tmp_path):
    names = write_files(tmp_path, "plain", 4)
    content = bytearray((tmp_path / "2.plain").read_bytes())
    content[100] ^= 1
    (tmp_path / "2.plain").write_bytes(content)

    def make():
        return Dataset.from_tensor_slices(names).interleave(TFRecordDataset, 3, num_parallel_calls=3)

    expected = outcomes(iter(make()))
    assert sum(isinstance(outcome, DataLossError) for outcome in expected) == 1
    check_every_place(make, expected)


# Plans around it and in it


def shuffled(n):
    return Dataset.range(10 * n, 10 * n + 8).shuffle(4, seed=int(n)).repeat(2)


def sharing(calls):
    """All inner datasets are one, whose epochs are counted."""
    shared = Dataset.range(6).shuffle(6, seed=3)
    return Dataset.range(5).interleave(lambda _: shared, 2, num_parallel_calls=calls)


PLANS = {
    "shuffles inside": lambda calls: Dataset.range(5).interleave(shuffled, 2, 3, num_parallel_calls=calls),
    "a shared shuffle": sharing,
    "batches": lambda calls: (
        Dataset.range(6).interleave(lambda n: Dataset.range(n, n + 9), 3, num_parallel_calls=calls).batch(4)
    ),
    "prefetch": lambda calls: (
        Dataset.range(6).interleave(lambda n: Dataset.range(n, n + 9), 3, num_parallel_calls=calls).prefetch(3)
    ),
    "repeat": lambda calls: (
        Dataset.range(4).shuffle(4, seed=5).interleave(shuffled, 3, num_parallel_calls=calls).repeat(2)
    ),
    "endless": lambda calls: (
        Dataset.range(3)
        .interleave(lambda n: Dataset.range(2).repeat(None if n == 1 else 3), 2, num_parallel_calls=calls)
        .take(30)
    ),
    "nested": lambda calls: Dataset.range(3).interleave(
        lambda n: Dataset.range(3).interleave(
            lambda m: Dataset.range(4).map(lambda x: 100 * n + 10 * m + x), 2, num_parallel_calls=calls
        ),
        2,
        2,
        num_parallel_calls=calls,
    ),
    "flat_map of zip": lambda calls: Dataset.range(4).flat_map(
        lambda n: Dataset.zip((shuffled(n), Dataset.range(4).interleave(shuffled, num_parallel_calls=calls)))
    ),
    "windows": lambda calls: (
        Dataset.range(20).window(4, 3).interleave(lambda w: w.map(lambda x: x + 1), 3, num_parallel_calls=calls)
    ),
    "mapped datasets": lambda calls: (
        Dataset.range(5)
        .map(lambda n: Dataset.range(n, n + 6).map(lambda x: 2 * x))
        .interleave(lambda d: d.filter(lambda x: x % 3 != 0), 2, num_parallel_calls=calls)
    ),
    "a generator as source": lambda calls: Dataset.from_generator(
        lambda: iter(range(5)), output_signature=_NUMBER
    ).interleave(Dataset.range, 3, num_parallel_calls=calls),
    "threads inside": lambda calls: Dataset.range(4).interleave(
        lambda n: Dataset.range(9).map(lambda x: 10 * n + x, num_parallel_calls=2).prefetch(2),
        2,
        num_parallel_calls=calls,
    ),
}


@pytest.mark.parametrize("calls", [None, 3])
@pytest.mark.parametrize("plan", PLANS)
def test_every_place_of_a_plan(plan, calls):
    make = lambda: PLANS[plan](calls)
    expected = outcomes(iter(make()))
    check_every_place(make, expected, {*range(0, len(expected), 1 + len(expected) // 12), len(expected)})


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan != "a shared shuffle"])
def test_states_go_between_reading_in_turn_and_reading_ahead(plan):
    expected = outcomes(iter(PLANS[plan](None)))
    for saver, loader in ((None, 3), (3, None)):
        iterator = iter(PLANS[plan](saver))
        for place in range(0, len(expected) + 1, 8):
            resumed = resumed_at(lambda loader=loader: PLANS[plan](loader), iterator.state_dict())
            assert_elements_equal(advanced(resumed, 1), expected[place : place + 1])
            back = resumed_at(lambda saver=saver: PLANS[plan](saver), resumed.state_dict())
            assert_elements_equal(outcomes(back), expected[place + 1 :])
            resumed.close()
            advanced(iterator, 8)
        iterator.close()


@st.composite
def cases(draw):
    return {
        "lengths": draw(st.lists(st.integers(0, 40), max_size=7)),
        "cycle": draw(st.integers(1, 5)),
        "block": draw(st.integers(1, 4)),
        "calls": draw(st.sampled_from([None, 1, 2, 6])),
        "user_code": draw(st.booleans()),
        "bad": draw(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 40)), max_size=4)),
        "bad_inputs": draw(st.sets(st.integers(0, 6), max_size=2)),
        "deterministic": draw(st.booleans()),
        "batch": draw(st.sampled_from([None, 3])),
    }


def build_case(case):
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

    return Dataset.range(len(case["lengths"])).interleave(
        open_one,
        case["cycle"],
        case["block"],
        num_parallel_calls=case["calls"],
        deterministic=case["deterministic"],
    )


@settings(max_examples=60, deadline=None)
@given(case=cases(), stops=st.lists(st.integers(0, 50), min_size=1, max_size=4))
def test_however_often_it_stops_each_element_comes_once_and_in_order(case, stops):
    expected = outcomes(iter(build_case({**case, "calls": None})))
    iterator, found = iter(build_case(case)), []
    for stop in stops:
        found += advanced(iterator, stop)
        state = iterator.state_dict()
        iterator.close()
        iterator = resumed_at(lambda: build_case(case), state)
    found += outcomes(iterator)
    if case["deterministic"]:
        assert_elements_equal(found, expected)
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_with_the_option_for_any_order_each_element_comes_once_across_many_stops():
    options = Options()
    options.deterministic = False

    def make():
        numbers = Dataset.range(9).interleave(lambda n: Dataset.range(100 * n, 100 * n + 70), 4, num_parallel_calls=4)
        return numbers.with_options(options)

    iterator, found = iter(make()), []
    while step_found := advanced(iterator, 37):
        found += step_found
        state = iterator.state_dict()
        iterator.close()
        iterator = resumed_at(make, state)
    assert sorted(found) == [100 * n + i for n in range(9) for i in range(70)]


def test_going_on_does_not_change_a_state():
    dataset = Dataset.range(4).interleave(lambda n: Dataset.range(50).shuffle(9, seed=1), 3, num_parallel_calls=3)
    iterator = iter(dataset)
    advanced(iterator, 20)
    state = iterator.state_dict()
    before = pickle.dumps(state)
    outcomes(iterator)
    assert pickle.dumps(state) == before

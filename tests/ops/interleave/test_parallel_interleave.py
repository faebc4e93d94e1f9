"""interleave in the background: the same order as without, a bounded number of reads at once, no leaks."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import AUTOTUNE, Dataset, Options, TFRecordDataset, io
from dataset.errors import ClosedError, DataLossError, SpecError
from dataset.ops.interleave.reader_pool import AHEAD_BYTES
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes
from support.op_cases import fail_at, ints

WAIT = 60  # for what must come; nothing waits that long
pytestmark = pytest.mark.usefixtures("switch_interval")


def small_pool(size):
    options = Options()
    options.threading.private_threadpool_size = size
    return options


class Gated:
    """Datasets whose elements come when they are allowed, and that count who is inside."""

    def __init__(self):
        self.changed = threading.Condition()
        self.made, self.opened, self.closed = [], [], []
        self.inside = self.inside_max = 0
        self.gates = {}

    def hold(self, *numbers):
        self.gates |= {number: threading.Event() for number in numbers}
        return self

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
                with self.changed:
                    self.inside += 1
                    self.inside_max = max(self.inside_max, self.inside)
                    self.changed.notify_all()
                gate = self.gates.get(number)
                passed = gate is None or gate.wait(WAIT)
                with self.changed:
                    self.inside -= 1
                assert passed
                self._note(self.made, (number, i))
                yield 100 * number + i
        finally:
            self._note(self.closed, number)


def wait_until_at_rest(iterator):
    """Until nobody reads or opens any more, because all that may be held is held."""
    readers = iterator._root.readers

    def at_rest():
        return not (readers._reading or readers._open_tasks() or readers._opening)

    with readers.lock:
        assert readers._stillness.wait_for(at_rest, WAIT)


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.integers(0, 9), max_size=9))
    elements = [f"{i}.{j}" for i, length in enumerate(lengths) for j in range(length)]
    bad = draw(st.sets(st.sampled_from(elements))) if elements else set()
    return {
        "lengths": lengths,
        "bad": bad,
        "bad_inputs": draw(st.sets(st.integers(0, 8), max_size=3)),
        "cycle": draw(st.integers(1, 5)),
        "block": draw(st.integers(1, 4)),
        "calls": draw(st.integers(1, 6)),
        "batch": draw(st.integers(1, 20)),
        "delays": draw(st.lists(st.integers(0, 3), min_size=1, max_size=7)),
        "user_code": draw(st.booleans()),
    }


def build_case(case, calls, deterministic=None):
    """Numbers, some of which fail, from datasets of which some cannot be opened."""

    def spin(place):
        for _ in range(case["delays"][place % len(case["delays"])] * 300):
            pass

    def element(i, j):
        spin(i * 7 + j)
        if f"{i}.{j}" in case["bad"]:
            raise ValueError(f"bad {i}.{j}")
        return np.int64(100 * i + j)

    def open_one(i):
        i = int(i)
        if i in case["bad_inputs"]:
            raise KeyError(f"no dataset {i}")
        if not case["user_code"]:
            return Dataset.range(100 * i, 100 * i + case["lengths"][i])
        return Dataset.range(case["lengths"][i]).map(lambda j: element(i, int(j)))

    return Dataset.range(len(case["lengths"])).interleave(
        open_one, case["cycle"], case["block"], num_parallel_calls=calls, deterministic=deterministic
    )


@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_in_order_it_gives_what_reading_one_at_a_time_gives(case):
    expected = outcomes(iter(build_case(case, None)))
    assert_elements_equal(outcomes(iter(build_case(case, case["calls"]))), expected)
    assert_elements_equal(outcomes(iter(build_case(case, case["calls"]).prefetch(3))), expected)
    if not any(isinstance(outcome, Exception) for outcome in expected):
        together = [x for batch in build_case(case, case["calls"]).batch(case["batch"]) for x in batch]
        assert_elements_equal(together, expected)


@settings(max_examples=25, deadline=None)
@given(case=cases(), stop=st.integers(0, 60))
def test_in_any_order_it_gives_each_element_once_across_stop_and_resume(case, stop):
    def key(outcome):
        return repr(outcome)

    iterator, found = iter(build_case(case, case["calls"], deterministic=False)), []
    for _ in range(stop):
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except Exception as error:
            found.append(error)
    state = iterator.state_dict()
    expected = sorted(map(key, outcomes(iter(build_case(case, None)))))
    assert sorted(map(key, found + outcomes(iterator))) == expected
    for calls in (case["calls"], None):
        resumed = iter(build_case(case, calls, deterministic=False))
        resumed.load_state_dict(state)
        assert sorted(map(key, found + outcomes(resumed))) == expected


@pytest.mark.parametrize(("cycle", "block", "calls"), [(3, 1, 5), (2, 2, AUTOTUNE)])
def test_it_is_held_to_all_that_is_promised_of_ops(cycle, block, calls):
    lengths = [3, 0, 5, 1, 4, 2]

    def make(inner):
        return Dataset.range(6).interleave(inner, cycle, block, num_parallel_calls=calls)

    check_operator(lambda: make(lambda n: Dataset.range(10 * n, 10 * n + lengths[int(n)])), positions=8)
    check_operator(lambda: make(lambda n: Dataset.range(lengths[int(n)]).map(fail_at(2))), positions=8)


def test_a_state_loads_whatever_the_number_of_calls():
    def make(calls):
        return Dataset.range(9).interleave(lambda n: Dataset.range(5).map(fail_at(3)), 3, 2, num_parallel_calls=calls)

    expected = outcomes(iter(make(None)))
    for saver, loader in ((None, 4), (4, None), (2, 8), (8, 1)):
        for position in (0, 1, 7, 20, len(expected)):
            iterator = iter(make(saver))
            for _ in range(position):
                try:
                    next(iterator)
                except ValueError:
                    continue
            with iter(make(loader)) as resumed:
                resumed.load_state_dict(iterator.state_dict())
                assert_elements_equal(outcomes(resumed), expected[position:])
            iterator.close()


def test_as_many_datasets_are_read_at_once_as_there_are_calls():
    barrier = threading.Barrier(4)

    def meet(x):
        barrier.wait(WAIT)  # of four, all must be inside at the same time
        return x

    dataset = Dataset.range(8).interleave(lambda n: Dataset.range(1).map(meet), 4, num_parallel_calls=4)
    assert len(list(dataset)) == 8


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("deterministic", [True, False])
def test_never_more_datasets_are_read_at_once_than_there_are_calls(calls, deterministic):
    gated = Gated()
    dataset = Dataset.range(20).interleave(
        lambda n: gated.dataset(n, 6), 6, num_parallel_calls=calls, deterministic=deterministic
    )
    assert len(list(dataset)) == 120
    assert gated.inside_max <= calls


def test_the_next_inputs_are_opened_and_their_first_elements_read_before_a_place_is_free():
    gated = Gated()
    with iter(Dataset.range(50).interleave(lambda n: gated.dataset(n, 1000), 2, num_parallel_calls=2)) as iterator:
        next(iterator)
        assert gated.wait_until(lambda: {(2, 0), (3, 0)} <= set(gated.made))
        assert next(iterator) == 100
        assert set(gated.opened) == {0, 1, 2, 3}  # the two of the cycle, and two more


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_is_read_ahead_is_bounded(deterministic):
    gated = Gated()
    dataset = Dataset.range(50).interleave(
        lambda n: gated.dataset(n, 100_000), 2, num_parallel_calls=2, deterministic=deterministic
    )
    with iter(dataset) as iterator:
        next(iterator)
        wait_until_at_rest(iterator)
        held, nbytes = iterator._root.buffered()
        assert len(gated.made) - 1 == held <= 2 * 2048 + 2
        assert nbytes == 8 * held


def test_what_is_read_ahead_is_bounded_in_bytes_too():
    gated = Gated()
    large = np.zeros(100_000, np.uint8)
    dataset = Dataset.range(9).interleave(
        lambda n: gated.dataset(n, 1000).map(lambda x: large), 3, num_parallel_calls=3
    )
    with iter(dataset) as iterator:
        next(iterator)
        wait_until_at_rest(iterator)
        assert iterator._root.buffered()[1] <= 3 * AHEAD_BYTES + 3 * large.nbytes


def test_nothing_is_read_before_the_first_element_is_asked_for():
    gated, before = Gated(), threading.active_count()
    iterator = iter(Dataset.range(5).interleave(lambda n: gated.dataset(n, 3), num_parallel_calls=2))
    iterator.state_dict()
    assert not gated.opened
    assert threading.active_count() == before


def test_a_slow_dataset_holds_up_nobody_whose_elements_may_come_first():
    gated = Gated().hold(0)
    dataset = Dataset.range(4).interleave(lambda n: gated.dataset(n, 3), 2, num_parallel_calls=2, deterministic=False)
    iterator = iter(dataset)
    found = [int(next(iterator)) for _ in range(9)]
    assert sorted(found) == [100, 101, 102, 200, 201, 202, 300, 301, 302]
    gated.gates[0].set()
    assert [int(x) for x in iterator] == [0, 1, 2]


def test_in_order_a_slow_dataset_is_waited_for_while_the_others_are_read():
    gated = Gated().hold(1)
    iterator = iter(Dataset.range(3).interleave(lambda n: gated.dataset(n, 2), 3, num_parallel_calls=3))
    assert next(iterator) == 0
    assert gated.wait_until(lambda: {(0, 1), (2, 0), (2, 1)} <= set(gated.made))
    gated.gates[1].set()
    assert [int(x) for x in iterator] == [100, 200, 1, 101, 201]


def test_a_function_that_blocks_does_not_hold_back_what_is_ready():
    gate = threading.Event()

    def open_one(n):
        if n == 2:
            assert gate.wait(WAIT)
        return Dataset.range(10 * n, 10 * n + 3)

    iterator = iter(Dataset.range(3).interleave(open_one, 2, num_parallel_calls=2))
    assert [int(next(iterator)) for _ in range(6)] == [0, 10, 1, 11, 2, 12]
    gate.set()
    assert [int(x) for x in iterator] == [20, 21, 22]


def test_the_function_is_called_once_for_each_element_in_order():
    calls = []

    def open_one(n):
        calls.append(int(n))
        return Dataset.range(3)

    list(Dataset.range(30).interleave(open_one, 4, num_parallel_calls=8))
    assert calls == list(range(30))


def test_exceptions_have_the_users_frames_and_notes():
    dataset = Dataset.range(3).interleave(lambda n: Dataset.range(fail_at(1)(n), 3), num_parallel_calls=2)
    errors = [outcome for outcome in outcomes(iter(dataset)) if isinstance(outcome, Exception)]
    (error,) = errors
    assert "interleave(<lambda>" in error.__notes__[0]
    assert error.__notes__[0].endswith("element 1")
    frames, traceback = [], error.__traceback__
    while traceback:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames[-1] == "check"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_worker_reaches_the_consumer_and_loses_nothing(interrupt):
    armed = [True]

    def check(x):
        if x == 1 and armed:
            armed.clear()
            raise interrupt
        return x

    iterator = iter(Dataset.range(1).interleave(lambda n: Dataset.range(3).map(check), num_parallel_calls=2))
    assert next(iterator) == 0
    with pytest.raises(interrupt):
        next(iterator)
    assert [int(x) for x in iterator] == [1, 2]


def test_a_dataset_of_another_structure_is_an_error_for_each_of_its_elements():
    def open_one(n):
        return Dataset.range(2) if n != 1 else Dataset.range(2).map(lambda x: (x, x))

    found = outcomes(iter(Dataset.range(3).interleave(open_one, 3, num_parallel_calls=3)))
    assert [type(outcome) for outcome in found] == [np.int64, SpecError, SpecError, np.int64, np.int64, np.int64]


@pytest.mark.parametrize("deterministic", [True, False])
def test_every_generator_is_closed_once_wherever_it_stops(deterministic):
    for taken in (1, 5, 17, 40):
        gated = Gated()
        with no_leaks():
            dataset = Dataset.range(20).interleave(
                lambda n, gated=gated: gated.dataset(n, 4), 3, num_parallel_calls=3, deterministic=deterministic
            )
            iterator = iter(dataset)
            for _ in range(taken):
                next(iterator)
            iterator.close()
        assert sorted(gated.closed) == sorted(gated.opened)


def test_a_dataset_that_has_ended_is_closed_while_the_others_are_read():
    gated = Gated()
    with iter(Dataset.range(3).interleave(lambda n: gated.dataset(n, 2), 3, num_parallel_calls=3)) as iterator:
        next(iterator)
        assert gated.wait_until(lambda: sorted(gated.closed) == [0, 1, 2])


def test_closing_waits_for_a_read_in_user_code():
    gated = Gated().hold(0)
    iterator = iter(Dataset.range(2).interleave(lambda n: gated.dataset(n, 3), 2, 1, 2, deterministic=False))
    assert next(iterator) == 100
    closer = threading.Thread(target=iterator.close)
    closer.start()
    assert not gated.closed.count(0)
    gated.gates[0].set()
    closer.join(WAIT)
    assert sorted(gated.closed) == [0, 1]
    with pytest.raises(ClosedError):
        next(iterator)


def test_a_consumer_that_waits_is_told_when_another_thread_closes():
    gated = Gated().hold(0)
    iterator, found = iter(Dataset.range(1).interleave(lambda n: gated.dataset(n, 3), num_parallel_calls=2)), []

    def consume():
        try:
            next(iterator)
        except ClosedError as error:
            found.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert gated.wait_until(lambda: gated.inside == 1)
    closer = threading.Thread(target=iterator.close)
    closer.start()
    consumer.join(WAIT)
    gated.gates[0].set()
    closer.join(WAIT)
    assert len(found) == 1


@pytest.mark.parametrize("deterministic", [True, False])
def test_abandoned_in_the_middle_it_leaves_nothing(deterministic):
    with no_leaks():
        for taken in range(12):
            dataset = Dataset.range(9).interleave(
                lambda n: Dataset.range(1000).map(fail_at(3)), 3, num_parallel_calls=3, deterministic=deterministic
            )
            iterator = iter(dataset)
            for _ in range(taken):
                try:
                    next(iterator)
                except ValueError:
                    continue
            del iterator
            gc.collect()


def test_datasets_inside_with_background_work_of_their_own_share_the_workers():
    def make(calls):
        def inner(n):
            deeper = Dataset.range(3).interleave(lambda m: Dataset.range(4).prefetch(1), 2, num_parallel_calls=calls)
            return deeper.map(lambda x: x + 100 * n).prefetch(2)

        return Dataset.range(6).interleave(inner, 3, num_parallel_calls=calls).with_options(small_pool(1))

    check_operator(lambda: make(4), outcomes(iter(make(None))), positions=1)


def test_two_of_them_in_one_pipeline_share_one_worker():
    numbers = Dataset.range(5).interleave(Dataset.range, 2, num_parallel_calls=2)
    twice = numbers.interleave(Dataset.range, 2, num_parallel_calls=3)
    expected = list(Dataset.range(5).interleave(Dataset.range, 2).interleave(Dataset.range, 2))
    assert_elements_equal(list(twice.with_options(small_pool(1))), expected)


def test_a_thread_that_the_system_refuses_is_an_error_if_there_is_no_other_and_loses_nothing(monkeypatch):
    start, started = threading.Thread.start, []

    def refuse(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    with no_leaks():
        dataset = Dataset.range(6).interleave(lambda n: Dataset.range(3).map(lambda x: x), 3, num_parallel_calls=3)
        expected = outcomes(iter(dataset))
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            # The one thread may be on its way back from its last job, when a second one is asked for.
            found = [outcome for outcome in outcomes(iter(dataset)) if not isinstance(outcome, RuntimeError)]
            assert_elements_equal(found, expected)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                next(iter(dataset))
        iterator = iter(dataset)
        assert_elements_equal(outcomes(iterator), expected)


def test_options_tell_whether_the_order_is_kept():
    options = Options()
    options.deterministic = False
    gated = Gated().hold(0)
    dataset = Dataset.range(2).interleave(lambda n: gated.dataset(n, 1), 2, num_parallel_calls=2)
    iterator = iter(dataset.with_options(options))
    assert next(iterator) == 100
    gated.gates[0].set()
    assert next(iterator) == 0


def test_the_plan_shows_the_calls_and_the_fingerprint_does_not():
    def make(**keywords):
        return Dataset.range(2).interleave(Dataset.range, 2, **keywords).plan

    assert make().annotation() == ""
    assert make(num_parallel_calls=4).annotation() == "4 parallel calls"
    shown = make(num_parallel_calls=AUTOTUNE, deterministic=False).annotation()
    assert shown == "AUTOTUNE parallel calls, in any order"
    assert make(num_parallel_calls=4).parameters() == make().parameters()


def test_many_more_places_than_inputs_and_inputs_than_places():
    for inputs, cycle in ((2, 500), (500, 2)):

        def make(calls, inputs=inputs, cycle=cycle):
            return Dataset.range(inputs).interleave(lambda n: Dataset.range(n, n + 3), cycle, num_parallel_calls=calls)

        assert_elements_equal(list(make(4)), list(make(None)))


def test_twenty_runs_with_many_threads_are_all_the_same():
    def make(calls):
        return Dataset.range(40).interleave(
            lambda n: Dataset.range(n).map(lambda x: x + 100 * n), 8, 3, num_parallel_calls=calls
        )

    expected = np.array(list(make(None)))
    for _ in range(20):
        assert np.array_equal(np.concatenate(list(make(8).batch(17))), expected)


@pytest.fixture
def files(tmp_path):
    paths = []
    for number in range(5):
        paths.append(str(tmp_path / f"{number}.tfrecord"))
        with io.TFRecordWriter(paths[-1]) as writer:
            for i in range(300 * number):
                writer.write(b"%d-%d" % (number, i))
    return paths


@pytest.mark.parametrize("calls", [1, 3, 8])
def test_files_that_are_read_in_parallel_give_their_records_in_turn(files, calls):
    with no_leaks():
        expected = list(Dataset.from_tensor_slices(files).interleave(TFRecordDataset, calls))
        assert list(TFRecordDataset(files, num_parallel_reads=calls)) == expected


def test_a_damaged_file_fails_at_its_place_and_the_others_are_read(files):
    path = Path(files[3])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    expected = outcomes(iter(Dataset.from_tensor_slices(files).interleave(TFRecordDataset, 3)))
    assert sum(isinstance(outcome, DataLossError) for outcome in expected) == 1
    with no_leaks():
        assert_elements_equal(outcomes(iter(TFRecordDataset(files, num_parallel_reads=3))), expected)


def test_a_missing_file_fails_at_its_place(files):
    files[2] += ".gone"
    expected = outcomes(iter(Dataset.from_tensor_slices(files).interleave(TFRecordDataset, 2)))
    assert_elements_equal(outcomes(iter(TFRecordDataset(files, num_parallel_reads=2))), expected)


def test_ints_come_out_as_ints():
    check_operator(
        lambda: Dataset.range(2).interleave(lambda n: Dataset.range(2), num_parallel_calls=2), ints(0, 0, 1, 1)
    )

"""Tests that every way of ending parallel ops leaves no thread, process, descriptor or shared memory."""

import contextlib
import gc
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import test_endings
from dataset import ClosedError, Dataset, TFRecordDataset, io
from dataset.testing import assert_elements_equal, outcomes
from support import overlap
from support.overlap import WAIT, Work, block_for_ever, die, double, fail_at_two, nothing_left, slow_at_first
from test_endings import add, ended, fail_at, needs_fork, stacked

files = test_endings.files
no_collector = test_endings.no_collector


def test_a_cycle_with_the_iterator_in_it_is_collected():
    with nothing_left():
        iterator = iter(stacked(Dataset.range(50)))
        next(iterator)
        holder = {"iterator": iterator}
        holder["self"] = holder
        del iterator, holder


def test_closing_an_iterator_that_a_function_of_its_own_refers_to_lets_go_of_everything():
    """Running threads refer to their functions, and so to this iterator: dropping it is not enough."""

    def use():
        holder = []
        iterator = iter(Dataset.range(50).map(lambda x: x + 0 * len(holder), num_parallel_calls=2))
        holder.append(iterator)
        next(iterator)
        iterator.close()
        return weakref.ref(iterator)

    with nothing_left():
        gone = use()
        gc.collect()
        assert gone() is None


def test_the_iterator_may_be_dropped_by_a_function_of_its_own():
    with nothing_left():
        holder, taken, dropped = [], threading.Event(), threading.Event()

        def drop(x):
            if x == 3:
                taken.wait(WAIT)
                holder.clear()
                dropped.set()
            return x

        holder.append(iter(Dataset.range(50).map(drop, num_parallel_calls=2)))
        assert next(holder[0]) == 0
        taken.set()
        with contextlib.suppress(IndexError):
            while True:
                next(holder[0])
        assert dropped.wait(WAIT)


def test_a_thousand_iterators_opened_and_abandoned(files):
    dataset = stacked(Dataset.list_files(files).interleave(TFRecordDataset, 2, num_parallel_calls=2).map(int))
    with nothing_left():
        for _ in range(1000):
            next(iter(dataset))


# Failing


FAILING = {
    "map": lambda: Dataset.range(9).map(fail_at(2), num_parallel_calls=3),
    "map without order": lambda: Dataset.range(9).map(fail_at(2), num_parallel_calls=3, deterministic=False),
    "map, batch": lambda: Dataset.range(9).map(fail_at(2), num_parallel_calls=2).batch(1),
    "batch": lambda: Dataset.range(18).map(fail_at(2)).batch(2, num_parallel_calls=2),
    "stacking": lambda: Dataset.range(18).map(lambda x: [0] * int(x == 2)).map(np.array).batch(2, num_parallel_calls=2),
    "interleave": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.range(4).map(fail_at(2)), 2, num_parallel_calls=2
    ),
    "interleave without order": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.range(4).map(fail_at(2)), 2, num_parallel_calls=2, deterministic=False
    ),
    "function of interleave": lambda: Dataset.range(9).interleave(
        lambda x: Dataset.range(fail_at(2)(x), x + 1), 2, num_parallel_calls=2
    ),
    "input": lambda: Dataset.range(9).map(fail_at(2)).map(add, num_parallel_calls=2),
    "structure": lambda: Dataset.range(9).map(lambda x: (x, x) if x == 2 else x, num_parallel_calls=2),
    "twice": lambda: stacked(Dataset.range(18).map(fail_at(2), num_parallel_calls=2)),
}


@pytest.mark.parametrize("make", list(FAILING.values()), ids=list(FAILING))
@pytest.mark.usefixtures("no_collector", "switch_interval")
def test_dropping_it_after_an_exception_came_out_without_the_garbage_collector(make):
    before = set(threading.enumerate())
    iterator = iter(make())
    failed = False
    while not failed:
        try:
            next(iterator)
        except StopIteration:
            break
        except Exception:  # the test checks what remains
            failed = True
    assert failed
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert ended(set(threading.enumerate()) - before)


@pytest.mark.usefixtures("no_collector")
def test_dropping_it_while_an_exception_waits_unseen():
    before, failed = set(threading.enumerate()), threading.Event()

    def fail(x):
        if x == 2:
            failed.set()
            raise ValueError("failed")
        return x

    iterator = iter(Dataset.range(9).map(fail, num_parallel_calls=3))
    next(iterator)
    assert failed.wait(WAIT)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert ended(set(threading.enumerate()) - before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("order", [True, False])
def test_an_interrupt_in_a_parallel_function_comes_out(error, order):
    def interrupt(x):
        if x == 3:
            raise error
        return x

    with nothing_left(), pytest.raises(error):
        for _ in Dataset.range(50).map(interrupt, num_parallel_calls=3, deterministic=order).batch(2).prefetch(1):
            pass


@pytest.mark.parametrize("threads", [0, 1, 2, 3])
def test_where_the_system_gives_no_more_threads_it_works_with_those_there_are_or_says_so(monkeypatch, threads):
    start, started, lock = threading.Thread.start, [], threading.Lock()

    def limited(thread):
        with lock:
            if thread.name.startswith("dataset-") and len(started) >= threads:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    dataset = Dataset.range(30).map(Work((0.001,)), num_parallel_calls=4).batch(5)
    with nothing_left(), iter(dataset) as iterator:
        try:
            found = list(iterator)
        except RuntimeError as error:
            assert "thread" in str(error)  # noqa: PT017  # both are correct
        else:
            assert np.concatenate(found).tolist() == list(range(30))


# Blocked


class Gate:
    """Function whose calls wait for all numbers except 0."""

    def __init__(self):
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, x):
        if x > 0:
            self.entered.set()
            self.opened.wait(6 * WAIT)
        return x

    def numbers(self):
        return map(self, range(9))


BLOCKED = {
    "map": lambda gate: Dataset.range(9).map(gate, num_parallel_calls=2),
    "map without order": lambda gate: Dataset.range(9).map(gate, num_parallel_calls=3, deterministic=False),
    "map, prefetch": lambda gate: Dataset.range(9).map(gate, num_parallel_calls=2).prefetch(2),
    "interleave": lambda gate: Dataset.range(9).interleave(
        lambda x: Dataset.range(x, 9, 3).map(gate), 3, num_parallel_calls=3
    ),
    "the function of interleave": lambda gate: Dataset.range(9).interleave(
        lambda x: Dataset.from_tensors(gate(x)), 2, num_parallel_calls=2
    ),
    "a generator below a map": lambda gate: Dataset.from_generator(gate.numbers).map(lambda x: x, num_parallel_calls=2),
    "a generator below a batch": lambda gate: (
        Dataset.from_generator(gate.numbers).batch(1, num_parallel_calls=2).unbatch()
    ),
    "a generator below an interleave": lambda gate: Dataset.from_generator(gate.numbers).interleave(
        Dataset.from_tensors, 2, num_parallel_calls=2
    ),
    "all of them": lambda gate: (
        Dataset.range(9)
        .interleave(lambda x: Dataset.from_tensors(x).map(gate, num_parallel_calls=2), 2, num_parallel_calls=2)
        .map(lambda x: x, num_parallel_calls=2)
        .batch(1, num_parallel_calls=2)
        .prefetch(1)
        .unbatch()
    ),
}
every_blocked = pytest.mark.parametrize("make", list(BLOCKED.values()), ids=list(BLOCKED))


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def stop_waiting(iterator, stopped):
    """Request elements until the end."""
    try:
        for _ in iterator:
            pass
    except ClosedError:
        stopped.set()


@every_blocked
@pytest.mark.usefixtures("no_collector")
def test_dropping_it_while_user_code_is_blocked_comes_back_at_once(make):
    before, gate = set(threading.enumerate()), Gate()
    iterator = iter(make(gate))
    assert next(iterator) == 0
    assert gate.entered.wait(WAIT)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    gate.opened.set()
    assert ended(set(threading.enumerate()) - before)


@every_blocked
def test_closing_it_waits_for_user_code_and_sends_home_who_waits_for_an_element(make):
    gate, stopped = Gate(), threading.Event()
    with nothing_left():
        iterator = iter(make(gate))
        assert next(iterator) == 0
        consumer = in_a_thread(lambda: stop_waiting(iterator, stopped))
        assert gate.entered.wait(WAIT)
        closer = in_a_thread(iterator.close)
        try:
            sent_home = stopped.wait(WAIT)
        finally:
            gate.opened.set()
        consumer.join(WAIT)
        closer.join(WAIT)
        assert not consumer.is_alive()
        assert not closer.is_alive()
        assert sent_home


@every_blocked
def test_the_end_of_the_data_comes_although_user_code_that_nobody_needs_is_blocked(make, monkeypatch):
    monkeypatch.setattr("dataset.runtime.iteration.iterator.PATIENCE_SECONDS", 0.2)
    gate = Gate()
    with nothing_left():
        try:
            assert list(make(gate).take(1)) == [0]
        finally:
            gate.opened.set()


# Worker processes

PROCESSES = {
    "map": lambda: Dataset.range(40).map(double, num_parallel_calls=2, executor="process"),
    "without order": lambda: Dataset.range(40).map(
        slow_at_first, num_parallel_calls=2, executor="process", deterministic=False
    ),
    "stacked": lambda: (
        Dataset.range(40)
        .map(add, num_parallel_calls=2)
        .map(double, num_parallel_calls=2, executor="process")
        .batch(2, num_parallel_calls=2)
        .prefetch(2)
    ),
    "two": lambda: (
        Dataset.range(40)
        .map(fail_at_two, num_parallel_calls=1, executor="process")
        .map(double, num_parallel_calls=2, executor="process")
    ),
    "a slow generator below": lambda: Dataset.from_generator(lambda: map(slow_behind_twenty, range(40))).map(
        double, num_parallel_calls=2, executor="process"
    ),
}


def slow_behind_twenty(x):
    if x >= 20:
        time.sleep(0.05)
    return x


every_process = pytest.mark.parametrize("make", list(PROCESSES.values()), ids=list(PROCESSES))


@pytest.fixture
def warm():
    """Start permanent helper processes, such as a fork server, so that they are not counted."""
    list(Dataset.range(2).map(double, num_parallel_calls=2, executor="process"))


@every_process
@pytest.mark.usefixtures("warm")
def test_exhausting_with_processes(make):
    with nothing_left():
        assert len(outcomes(iter(make()))) in {20, 40}


@every_process
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_closing_with_processes(make, taken):
    with nothing_left():
        iterator = iter(make())
        for _ in range(taken):
            with contextlib.suppress(ValueError):
                next(iterator)
        iterator.close()
        iterator.close()


@every_process
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_dropping_with_processes(make, taken):
    with nothing_left():
        gc.collect()
        gc.disable()
        try:
            iterator = iter(make())
            for _ in range(taken):
                with contextlib.suppress(ValueError):
                    next(iterator)
            gone = weakref.ref(iterator)
            del iterator
            assert gone() is None
        finally:
            gc.enable()


@every_process
@pytest.mark.usefixtures("warm")
def test_an_exception_in_the_consumer_with_processes(make):
    with nothing_left(), pytest.raises(KeyboardInterrupt):
        for _ in make():
            raise KeyboardInterrupt


@pytest.mark.usefixtures("warm")
def test_twenty_iterators_with_processes_opened_and_abandoned():
    dataset = PROCESSES["stacked"]()
    with nothing_left():
        for _ in range(20):
            next(iter(dataset))


@pytest.mark.usefixtures("warm")
def test_closing_while_functions_in_worker_processes_are_blocked_for_ever():
    with nothing_left():
        iterator = iter(Dataset.range(9).map(block_for_ever, num_parallel_calls=2, executor="process"))
        assert next(iterator) == 0
        closer = in_a_thread(iterator.close)
        closer.join(WAIT)
        assert not closer.is_alive()


@pytest.mark.usefixtures("warm")
def test_dropping_while_functions_in_worker_processes_are_blocked_for_ever():
    with nothing_left():
        iterator = iter(Dataset.range(9).map(block_for_ever, num_parallel_calls=2, executor="process"))
        assert next(iterator) == 0
        del iterator


@pytest.mark.usefixtures("warm")
def test_results_of_worker_processes_outlive_the_iterator_and_their_memory_goes_with_them():
    with nothing_left():
        kept = [
            found["array"] for found in Dataset.range(3).map(slow_at_first, num_parallel_calls=2, executor="process")
        ]
        assert [float(array.sum()) for array in kept] == [0.0, 2000.0, 4000.0]
        del kept


def consume_until_it_fails(iterator, found):
    for _ in range(40):
        try:
            found.append(int(next(iterator)))
        except Exception as error:
            found.append(error)
            return


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("how", "signs"), [("exit", ["7"]), ("kill", ["SIGKILL", "9"])])
def test_a_worker_process_that_dies_is_an_error_that_says_how(how, signs):
    dataset, found = Dataset.range(40).map(partial(die, how), num_parallel_calls=2, executor="process"), []
    with nothing_left(), iter(dataset) as iterator:
        consumer = in_a_thread(lambda: consume_until_it_fails(iterator, found))
        consumer.join(WAIT)
        assert not consumer.is_alive()
        assert found[:5] == list(range(5))
        assert isinstance(found[-1], Exception)
        assert any(sign in str(found[-1]) for sign in signs)


# Faults at every operator


def numbers_of(dataset):
    return dataset.map(lambda *parts: sum(int(np.sum(part)) for part in parts))


def vectors(dataset):
    return dataset.map(lambda x: np.full(int(x) % 3 + 1, x))


OPS = {
    "map": lambda d, f: d.map(f),
    "random_map": lambda d, f: d.random_map(lambda rng, x: f(x) + rng.integers(9), seed=1),
    "filter": lambda d, f: d.filter(lambda x: f(x) % 3 > 0),
    "flat_map": lambda d, f: d.flat_map(lambda x: Dataset.range(f(x), x + 2)),
    "flat_map, inside": lambda d, f: d.flat_map(lambda x: Dataset.range(x, x + 2).map(f)),
    "interleave": lambda d, f: d.interleave(lambda x: Dataset.range(f(x), x + 2), 3),
    "interleave, inside": lambda d, f: d.interleave(lambda x: Dataset.range(x, x + 2).map(f), 3),
    "parallel interleave": lambda d, f: d.interleave(lambda x: Dataset.range(x, x + 2).map(f), 3, num_parallel_calls=3),
    "scan": lambda d, f: d.scan(np.int64(0), lambda total, x: (total + x, total + f(x))),
    "take_while": lambda d, f: d.take_while(lambda x: f(x) < 12),
    "group_by_window, key": lambda d, f: d.group_by_window(lambda x: f(x) % 2, lambda key, w: w.batch(3), 3),
    "group_by_window, reduce": lambda d, f: d.group_by_window(lambda x: x % 2, lambda key, w: w.map(f).batch(3), 3),
    "group_by_window, size": lambda d, f: d.group_by_window(
        lambda x: x % 6, lambda key, w: w.batch(3), window_size_func=lambda key: f(key) + 1
    ),
    "bucket_by_sequence_length": lambda d, f: vectors(d).bucket_by_sequence_length(
        lambda row: len(row) if f(row[0]) else 1, [2, 3], [2, 2, 2]
    ),
    "rejection_resample": lambda d, f: d.rejection_resample(lambda x: f(x) % 2, [0.5, 0.5], [0.5, 0.5], seed=1),
    "from_generator": lambda d, f: Dataset.zip(d, Dataset.from_generator(lambda: map(f, range(20)))),
    "apply": lambda d, f: d.apply(lambda dataset: dataset.map(f)),
    "batch": lambda d, f: d.map(f).batch(3),
    "batch that cannot be stacked": lambda d, f: vectors(d).batch(2),
    "padded_batch": lambda d, f: vectors(d.map(f)).padded_batch(3),
    "ragged_batch": lambda d, f: vectors(d.map(f)).ragged_batch(3),
    "unbatch": lambda d, f: d.batch(2).map(lambda b: (f(b[-1]), b)[1]).unbatch(),
    "rebatch": lambda d, f: d.batch(2).map(lambda b: (f(b[-1]), b)[1]).rebatch(3),
    "window": lambda d, f: d.map(f).window(3).flat_map(lambda w: w.batch(3)),
    "shuffle": lambda d, f: d.map(f).shuffle(4, seed=1),
    "cache": lambda d, f: d.map(f).cache(),
    "repeat": lambda d, f: d.map(f).repeat(2),
    "take": lambda d, f: d.map(f).take(9),
    "skip": lambda d, f: d.map(f).skip(3),
    "shard": lambda d, f: d.map(f).shard(2, 1),
    "enumerate": lambda d, f: d.map(f).enumerate(),
    "prefetch": lambda d, f: d.map(f).prefetch(3),
    "unique": lambda d, f: d.map(lambda x: f(x) // 2).unique(),
    "ignore_errors": lambda d, f: d.map(f).ignore_errors(),
    "zip": lambda d, f: Dataset.zip(d.map(f), d),
    "concatenate": lambda d, f: d.map(f).concatenate(d),
    "sample_from_datasets": lambda d, f: Dataset.sample_from_datasets([d.map(f), d], seed=1),
    "choose_from_datasets": lambda d, f: Dataset.choose_from_datasets(
        [d.map(f), d], Dataset.range(20).map(lambda x: f(x) % 2)
    ),
}
THREE, TWO = {"num_parallel_calls": 3}, {"num_parallel_calls": 2}
PARALLEL_MAPS = [(THREE, {}), ({}, THREE), (THREE, TWO)]  # upstream and downstream of the op


def between_maps(op, delays, below, above):
    """Return an op that fails at one element, between two maps."""
    source = Dataset.range(18).map(Work(delays), **below)
    dataset = numbers_of(OPS[op](source, Work(bad=frozenset({5}))))
    return dataset.map(lambda x: Work(delays)(x) + 1, **above)


@pytest.mark.parametrize("op", list(OPS))
def test_a_fault_in_any_op_between_parallel_maps_comes_out_at_its_place(op):
    expected = outcomes(iter(between_maps(op, (0.0,), {}, {})))
    assert any(isinstance(outcome, Exception) for outcome in expected) or op == "ignore_errors"
    with nothing_left():
        for below, above in PARALLEL_MAPS:
            found = outcomes(iter(between_maps(op, (0.0, 0.001, 0.0), below, above)))
            assert_elements_equal(found, expected)


@pytest.mark.parametrize("op", list(OPS))
def test_a_fault_of_the_parallel_map_below_passes_any_op(op):
    def make(work, parallel):
        return numbers_of(OPS[op](Dataset.range(18).map(work, **parallel), Work())).map(add, **parallel)

    work = Work((0.0, 0.001), frozenset({0, 7, 8}))
    expected = outcomes(iter(make(work.at_once(), {})))
    with nothing_left():
        assert_elements_equal(outcomes(iter(make(work, {"num_parallel_calls": 3}))), expected)


def test_every_op_that_takes_a_function_is_among_them():
    taking = set()
    for name, method in inspect.getmembers(Dataset, callable):
        if not name.startswith("_"):
            arguments = inspect.signature(method).parameters
            taking |= {name for argument in arguments if argument.endswith(("_func", "predicate", "generator"))}
    elsewhere = {"reduce", "save", "load", "snapshot"}  # reduce ends a pipeline; file ops are tested below
    assert taking - elsewhere <= {op.partition(",")[0] for op in OPS}


@pytest.mark.parametrize("reads", [1, 3])
@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_file_below_a_parallel_map_fails_at_its_place(tmp_path, damage, reads):
    paths = [tmp_path / f"{number}.tfrecord" for number in range(3)]
    for number, path in enumerate(paths):
        with io.TFRecordWriter(path) as writer:
            for record in range(4):
                writer.write(b"%d %d" % (number, record))
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[:-3] if damage == "cut" else content[:20] + b"?" + content[21:])
    if damage == "missing":
        paths[1].unlink()

    def make(work, parallel):
        records = TFRecordDataset(list(map(str, paths)), num_parallel_reads=reads)
        return records.map(lambda record: (work(int(record[0])), record)[1], **parallel).batch(2).prefetch(1)

    expected = outcomes(iter(make(Work(), {})))
    assert any(isinstance(outcome, Exception) for outcome in expected)
    with nothing_left():
        assert_elements_equal(outcomes(iter(make(Work((0.0, 0.001)), {"num_parallel_calls": 3}))), expected)


@pytest.mark.parametrize("keep", ["cache", "snapshot", "save"])
def test_a_fault_while_elements_are_written_to_files(tmp_path, keep):
    def make(folder, work, parallel):
        dataset = Dataset.range(18).map(work, **parallel)
        path = str(tmp_path / folder)
        if keep == "save":
            dataset.save(path)
            return Dataset.load(path)
        return dataset.cache(path) if keep == "cache" else dataset.snapshot(path)

    def attempt(*arguments):
        try:
            return outcomes(iter(make(*arguments).map(add)))
        except ValueError as error:
            return [error]

    work = Work((0.0, 0.001), frozenset({7}))
    expected = attempt("one", work.at_once(), {})
    with nothing_left():
        assert_elements_equal(attempt("two", work, {"num_parallel_calls": 3}), expected)


def test_a_fault_in_reduce_over_a_parallel_map():
    def fail(total, x):
        if x == 7:
            raise ValueError("failed")
        return total + x

    with nothing_left(), pytest.raises(ValueError, match="failed"):
        Dataset.range(50).map(add, num_parallel_calls=3).reduce(np.int64(0), fail)


# Separate programs


def run(code):
    """Run a program in a separate session; it must end, and leave no process and no shared memory."""
    mark = str(uuid.uuid4())
    before = overlap.shared_memory()
    path = os.pathsep.join([str(Path(overlap.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "faulthandler", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "DATASET_PROGRAM_MARK": mark},
    )
    try:
        output, errors = program.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        pytest.fail("the program did not end")
    finally:
        left = _left(mark, before)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
    assert not left, f"left behind: {sorted(left)}"
    return program.returncode, output, errors


def _left(mark, before):
    deadline = time.monotonic() + WAIT
    while left := overlap.processes_of(mark) | (overlap.shared_memory() - before):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)  # there is no notification when an orphan ends
    return left


EXITS = {
    "a map": "Dataset.range(9).map(block, num_parallel_calls=2)",
    "a map without order": "Dataset.range(9).map(block, num_parallel_calls=2, deterministic=False)",
    "a generator": "Dataset.from_generator(lambda: map(block, range(9))).map(lambda x: x, num_parallel_calls=2)",
    "an interleave": (
        "Dataset.range(9).interleave(lambda x: Dataset.from_tensors(x).map(block), 2, num_parallel_calls=2)"
    ),
    "a batch": "Dataset.from_generator(lambda: map(block, range(9))).batch(1, num_parallel_calls=2).unbatch()",
    "all": (
        "Dataset.from_generator(lambda: map(block, range(9))).map(lambda x: x, num_parallel_calls=2)"
        ".interleave(Dataset.from_tensors, 2, num_parallel_calls=2)"
        ".batch(1, num_parallel_calls=2).prefetch(2).unbatch()"
    ),
    "processes": "Dataset.range(9).map(block_for_ever, num_parallel_calls=2, executor='process')",
    "a generator below processes": (
        "Dataset.from_generator(lambda: map(block, range(9))).map(double, num_parallel_calls=2, executor='process')"
    ),
}
PROGRAM = """
    import threading
    from dataset import Dataset
    from support.overlap import be_impatient, block_for_ever, double
    def block(x):
        if x > 0:
            {how}
        return x
    {patience}
    it = iter({pipeline})
    print(next(it))
"""


@pytest.mark.parametrize("held", [True, False], ids=["held", "dropped"])
@pytest.mark.parametrize("pipeline", list(EXITS))
def test_the_interpreter_exits_while_user_code_is_blocked_for_ever(pipeline, held):
    program = PROGRAM.format(how="threading.Event().wait()", patience="be_impatient()", pipeline=EXITS[pipeline])
    assert run(program + ("" if held else "    del it\n") + "    print('done')") == (0, "0\ndone\n", "")


@pytest.mark.parametrize("pipeline", ["a map", "all"])
def test_the_interpreter_exits_while_user_code_computes_for_ever(pipeline):
    program = PROGRAM.format(how="while True: pass", patience="", pipeline=EXITS[pipeline])
    assert run(program + "    print('done')") == (0, "0\ndone\n", "")


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_the_interpreter_exits_cleanly_with_many_busy_iterators(executor):
    count = 5 if executor == "thread" else 2
    program = f"""
        from dataset import Dataset
        from support.overlap import double
        def make():
            numbers = Dataset.range(10**9).map(double, num_parallel_calls=2, executor={executor!r})
            return numbers.batch(10, num_parallel_calls=2).prefetch(4)
        kept = [iter(make()) for _ in range({count})]
        for iterator in kept:
            next(iterator)
        print("done")
    """
    assert run(program) == (0, "done\n", "")


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_the_interpreter_exits_with_the_users_exception(executor):
    program = f"""
        from dataset import Dataset
        from support.overlap import double
        for x in Dataset.range(10**9).map(double, num_parallel_calls=2, executor={executor!r}).prefetch(4):
            raise SystemExit(7)
    """
    assert run(program) == (7, "", "")


INTERRUPTED = {
    "a map": "Dataset.range(9).map(interrupt_all, num_parallel_calls=2)",
    "a map without order": "Dataset.range(9).map(interrupt_all, num_parallel_calls=2, deterministic=False)",
    "a map, to a batch": "Dataset.range(9).map(interrupt_all, num_parallel_calls=2).batch(1, num_parallel_calls=2)",
    "a map below a prefetch": "Dataset.range(9).map(interrupt_all, num_parallel_calls=2).prefetch(1)",
    "an interleave": (
        "Dataset.range(9).interleave(lambda x: Dataset.from_tensors(x).map(interrupt_all), 2, num_parallel_calls=2)"
    ),
    "a generator below": (
        "Dataset.from_generator(lambda: map(interrupt_all, range(9))).map(double, num_parallel_calls=2)"
    ),
    "a map in processes": "Dataset.range(9).map(interrupt_all, num_parallel_calls=2, executor='process')",
}


@pytest.mark.parametrize("reaction", ["raise", "close", "go"])
@pytest.mark.parametrize("pipeline", list(INTERRUPTED))
def test_ctrl_c_while_the_consumer_waits_for_an_element(pipeline, reaction):
    """All processes of the program get the signal, as from a terminal, while the consumer waits for an element."""
    reactions = {"raise": "raise SystemExit(130) from None", "close": "closing.start()", "go": "del it"}
    program = f"""
        import os, threading
        from dataset import Dataset
        from support.overlap import be_impatient, double, heed_interrupts, interrupt_all
        be_impatient()
        heed_interrupts()
        os.environ["MAIN_PID"] = str(os.getpid())
        it = iter({INTERRUPTED[pipeline]})
        closing = threading.Thread(target=it.close, daemon=True)
        try:
            for x in it:
                pass
        except KeyboardInterrupt:
            print("interrupted")
            {reactions[reaction]}
    """
    assert run(program) == (130 if reaction == "raise" else 0, "interrupted\n", "")


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_program_that_is_killed_leaves_no_worker(executor):
    program = f"""
        import os, signal
        from dataset import Dataset
        from support.overlap import slow_at_first
        iterator = iter(Dataset.range(10**9).map(slow_at_first, num_parallel_calls=2, executor={executor!r}))
        next(iterator)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    code, output, _ = run(program)
    assert (code, output) == (-signal.SIGKILL, "")


FORKED = {
    "map": "Dataset.range(100).map(lambda x: x + 0, num_parallel_calls=3)",
    "stacked": (
        "Dataset.range(10).interleave(lambda x: Dataset.range(x * 10, x * 10 + 10), 1, 10, num_parallel_calls=1)"
        ".map(lambda x: x + 0, num_parallel_calls=2).batch(3, num_parallel_calls=2).prefetch(2).unbatch()"
    ),
    "processes": "Dataset.range(50).map(double, num_parallel_calls=2, executor='process').map(lambda x: x // 2)",
}
FORK = """
    import faulthandler, gc, os, signal, sys
    from dataset import ClosedError, Dataset
    from support.overlap import double
    def make():
        return {pipeline}
    expected = [int(x) for x in make()]
    iterator = iter(make())
    assert next(iterator) == 0
    for _ in range({times}):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs is killed
            code = 1
            try:
                {in_child}
                code = 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
    assert [int(x) for x in iterator] == expected[1:]
"""
REFUSES = """
                for use in (lambda: next(iterator), iterator.state_dict, lambda: list(iterator)):
                    try:
                        use()
                    except ClosedError as error:
                        assert "parent" in str(error)
                    else:
                        raise AssertionError("it was used")
"""
IN_CHILD = {
    "the parent's iterator refuses": REFUSES.strip(),
    "a new one works": "assert [int(x) for x in make()] == expected",
    "the old one can be closed": "iterator.close(); iterator.close()",
    "the old one can be dropped": "del iterator; gc.collect()",
    "it exits": "assert next(iter(make())) == 0; import atexit; atexit._run_exitfuncs()",
}


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("pipeline", list(FORKED))
@pytest.mark.parametrize("in_child", list(IN_CHILD))
def test_fork_while_workers_are_running(pipeline, in_child):
    code, output, errors = run(FORK.format(pipeline=FORKED[pipeline], in_child=IN_CHILD[in_child], times=1))
    assert (code, output) == (0, "0\n"), errors


@needs_fork
def test_many_forks_while_workers_are_busy_never_leave_a_lock_taken_in_the_child():
    pipeline = "Dataset.range(2000).map(lambda x: x + 0, num_parallel_calls=3).prefetch(2)"
    program = FORK.format(pipeline=pipeline, in_child="assert len(list(make().take(20))) == 20", times=30)
    code, output, errors = run(program)
    assert (code, output) == (0, "0\n" * 30), errors


# Quick endings

HASTY = "shared_by_threads or never_wait or slow_element or comes_out_at_its_place or dropping_the_last or exhausting"


@pytest.mark.timeout(240)
def test_a_selection_passes_where_threads_switch_a_thousand_times_as_often():
    here = Path(__file__).parent
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-k",
        f"({HASTY}) and not processes",
    ]
    command += [str(here / "test_parallel_order.py"), str(here / "test_parallel_endings.py")]
    environment = {**os.environ, "SWITCH_INTERVAL": "1e-6"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-5000:]

"""Tests that every way of ending leaves no thread or descriptor; for parallel ops see test_parallel_endings.py."""

import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

from dataset import ClosedError, Dataset, TFRecordDataset, io
from dataset.testing import no_leaks, outcomes
from support.overlap import Work, nothing_left

WAIT = 60  # seconds to wait for an event; tests normally wait much less
ENDING = 5  # seconds for threads that were told to end
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def files(tmp_path):
    for number in range(4):
        with io.TFRecordWriter(tmp_path / f"{number}.tfrecord") as writer:
            for record in range(5):
                writer.write(b"%d" % record)
    return str(tmp_path / "*.tfrecord")


def numbers():
    """Yield numbers forever."""
    number = 0
    while True:
        yield number
        number += 1


def add(x):
    return x + 1


def stacked(dataset):
    return dataset.map(add, num_parallel_calls=3).batch(2, num_parallel_calls=2).prefetch(2)


PIPELINES = {
    "plain": lambda files: Dataset.range(20).prefetch(2),
    "deep": lambda files: Dataset.range(20).prefetch(2).map(lambda x: x + 0).prefetch(1).batch(1).prefetch(3),
    "files": lambda files: TFRecordDataset(Dataset.list_files(files, shuffle=False)).prefetch(2),
    "interleave": lambda files: (
        Dataset.list_files(files, seed=1).interleave(TFRecordDataset, cycle_length=3).prefetch(2)
    ),
    "inner": lambda files: Dataset.range(2, 9).flat_map(lambda x: Dataset.range(x).prefetch(2)).prefetch(1),
    "side by side": lambda files: Dataset.range(2, 9).interleave(
        lambda x: Dataset.range(x).prefetch(2), cycle_length=4
    ),
    "repeat": lambda files: Dataset.range(3).prefetch(1).repeat(8).prefetch(2),
    "endless": lambda files: Dataset.from_generator(numbers).prefetch(2).take(9),
    "zip": lambda files: Dataset.zip(Dataset.from_generator(numbers).prefetch(2), Dataset.range(20).prefetch(1)),
    "shuffle": lambda files: Dataset.range(20).prefetch(3).shuffle(5, seed=1).prefetch(2),
    "parallel map": lambda files: Dataset.range(40).map(add, num_parallel_calls=3),
    "parallel map without order": lambda files: Dataset.range(40).map(add, num_parallel_calls=3, deterministic=False),
    "parallel slow map": lambda files: Dataset.range(20).map(Work((0.002, 0.0, 0.0)), num_parallel_calls=3),
    "parallel random_map": lambda files: Dataset.range(20).random_map(lambda rng, x: x, num_parallel_calls=2),
    "parallel batch": lambda files: Dataset.range(40).batch(3, num_parallel_calls=2),
    "parallel map, batch": lambda files: Dataset.range(40).map(add, num_parallel_calls=3).batch(4),
    "parallel interleave": lambda files: Dataset.list_files(files, seed=1).interleave(
        TFRecordDataset, 3, num_parallel_calls=3
    ),
    "parallel interleave without order": lambda files: Dataset.list_files(files, seed=1).interleave(
        TFRecordDataset, 2, 2, num_parallel_calls=2, deterministic=False
    ),
    "parallel reads": lambda files: TFRecordDataset(Dataset.list_files(files), num_parallel_reads=3),
    "parallel stacked": lambda files: stacked(
        Dataset.range(6).interleave(lambda x: Dataset.range(x, x + 5).map(add), 3, num_parallel_calls=3)
    ),
    "parallel stacked inside": lambda files: Dataset.range(5).interleave(
        lambda x: stacked(Dataset.range(9)), 2, num_parallel_calls=2
    ),
    "parallel inside": lambda files: Dataset.range(9).flat_map(
        lambda x: Dataset.range(3).map(add, num_parallel_calls=2)
    ),
    "parallel endless": lambda files: stacked(Dataset.from_generator(numbers)).take(9),
    "parallel endless inner": lambda files: (
        Dataset.range(10**9)
        .interleave(lambda x: Dataset.from_generator(numbers).map(add, num_parallel_calls=2), 3, num_parallel_calls=3)
        .take(9)
    ),
    "parallel repeat": lambda files: Dataset.range(3).map(add, num_parallel_calls=2).repeat(8).prefetch(2),
    "parallel zip": lambda files: Dataset.zip(
        Dataset.from_generator(numbers).map(add, num_parallel_calls=2), Dataset.range(20).map(add, num_parallel_calls=3)
    ),
    "parallel shuffle": lambda files: Dataset.range(20).map(add, num_parallel_calls=2).shuffle(5, seed=1),
}
every_pipeline = pytest.mark.parametrize("make", list(PIPELINES.values()), ids=list(PIPELINES))


def library_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("dataset-")}


def fail_at(position):
    def function(x):
        if x == position:
            raise ValueError("failed")
        return x

    return function


@every_pipeline
@pytest.mark.usefixtures("switch_interval")
def test_exhausting(make, files):
    before = library_threads()
    with nothing_left():
        iterator = iter(make(files))
        assert outcomes(iterator)
        assert library_threads() <= before


@every_pipeline
@pytest.mark.usefixtures("switch_interval")
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_closing(make, files, taken):
    before = library_threads()
    with nothing_left():
        iterator = iter(make(files))
        for _ in range(taken):
            next(iterator)
        iterator.close()
        iterator.close()
        assert library_threads() <= before
        with pytest.raises(ClosedError):
            next(iterator)


@every_pipeline
def test_leaving_a_with_block(make, files):
    with nothing_left(), iter(make(files)) as iterator:
        next(iterator)


@every_pipeline
@pytest.mark.usefixtures("switch_interval")
def test_breaking_out_of_a_loop(make, files):
    with nothing_left():
        for _ in make(files):
            break


@every_pipeline
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_an_exception_in_the_consumer(make, files, error):
    with nothing_left(), pytest.raises(error):
        for _ in make(files):
            raise error


@pytest.fixture
def no_collector():
    """The garbage collector is disabled: objects are freed only when their last reference is dropped."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ended(threads):
    for thread in threads:
        thread.join(ENDING)
    return not any(thread.is_alive() for thread in threads)


@every_pipeline
@pytest.mark.usefixtures("no_collector", "switch_interval")
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_dropping_the_last_reference_without_the_garbage_collector(make, files, taken):
    before = set(threading.enumerate())
    iterator = iter(make(files))
    for _ in range(taken):
        next(iterator)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert ended(set(threading.enumerate()) - before)


FAILING = {
    "map": lambda: Dataset.range(9).map(fail_at(2)),
    "map in a thread": lambda: Dataset.range(9).map(fail_at(2)).prefetch(3),
    "twice": lambda: Dataset.range(9).map(fail_at(2)).prefetch(3).prefetch(2),
    "above a thread": lambda: Dataset.range(9).prefetch(3).map(fail_at(2)),
    "batch": lambda: Dataset.range(9).map(fail_at(2)).batch(2).prefetch(2),
    "shuffle": lambda: Dataset.range(9).map(fail_at(2)).prefetch(2).shuffle(3, seed=1),
    "generator": lambda: Dataset.from_generator(lambda: map(fail_at(2), range(9))).prefetch(2),
    "flat_map": lambda: Dataset.range(9).flat_map(lambda x: Dataset.range(3).map(fail_at(2)).prefetch(2)).prefetch(1),
    "interleave": lambda: Dataset.range(9).interleave(lambda x: Dataset.range(3).map(fail_at(2)).prefetch(2)).batch(4),
    "inner function": lambda: Dataset.range(9).flat_map(lambda x: (fail_at(2)(x), Dataset.range(2).prefetch(1))[1]),
    "zip": lambda: Dataset.zip(Dataset.range(9).prefetch(2), Dataset.range(9).map(fail_at(2)).prefetch(2)),
    "cache": lambda: Dataset.range(9).map(fail_at(2)).prefetch(2).cache().prefetch(1),
    "filter": lambda: Dataset.range(9).prefetch(1).filter(lambda x: fail_at(2)(x) >= 0).prefetch(2),
    "unbatch": lambda: Dataset.range(9).map(fail_at(2)).batch(1).prefetch(2).unbatch(),
    "structure": lambda: Dataset.range(9).map(lambda x: (x, x) if x == 2 else x).prefetch(4),
    "stacking": lambda: Dataset.range(9).map(lambda x: [0] * int(x)).batch(2).prefetch(2),
    "vectorized": lambda: Dataset.range(9).map(_vectorized_fail()).prefetch(3),
}


def _vectorized_fail():
    from dataset import vectorized

    @vectorized
    def fail(x):
        if (x == 2).any():
            raise ValueError("failed")
        return x

    return fail


@pytest.mark.parametrize("make", list(FAILING.values()), ids=list(FAILING))
@pytest.mark.usefixtures("no_collector", "switch_interval")
def test_dropping_it_after_an_exception_came_out_without_the_garbage_collector(make):
    before = set(threading.enumerate())
    iterator = iter(make())
    failed = 0
    for _ in range(6):
        try:
            next(iterator, None)
        except Exception:  # the test checks what remains
            failed += 1
    assert failed
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert ended(set(threading.enumerate()) - before)


@pytest.mark.usefixtures("no_collector")
def test_dropping_it_while_an_exception_waits_unseen():
    before = set(threading.enumerate())
    iterator = iter(Dataset.range(9).map(fail_at(2)).prefetch(4))
    next(iterator)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert ended(set(threading.enumerate()) - before)


@pytest.mark.usefixtures("no_collector")
def test_an_exception_that_is_kept_keeps_no_thread_once_it_is_let_go():
    before = set(threading.enumerate())
    iterator = iter(Dataset.range(9).map(fail_at(0)).prefetch(4))
    try:
        next(iterator)
    except ValueError as error:
        kept = error
    del iterator
    assert str(kept) == "failed"
    del kept
    assert ended(set(threading.enumerate()) - before)


@pytest.mark.usefixtures("no_collector")
def test_dropping_it_while_the_thread_is_inside_the_users_code():
    before, gate, inside, closed = set(threading.enumerate()), threading.Event(), threading.Event(), threading.Event()

    def generate():
        try:
            yield 0
            inside.set()
            gate.wait(WAIT)
            yield 1
        finally:
            closed.set()

    iterator = iter(Dataset.from_generator(generate).prefetch(1))
    next(iterator)
    assert inside.wait(WAIT)
    del iterator  # returns immediately, although the generator does not
    gate.set()
    assert closed.wait(WAIT)  # closed by the thread that ended last
    assert ended(set(threading.enumerate()) - before)


def test_a_cycle_with_the_iterator_in_it_is_collected():
    with no_leaks():
        iterator = iter(Dataset.range(9).prefetch(2))
        next(iterator)
        holder = {"iterator": iterator}
        holder["self"] = holder
        del iterator, holder


def test_the_iterator_may_be_dropped_by_its_own_function():
    with no_leaks():
        holder, dropped = [], threading.Event()

        def drop(x):
            if x == 3:
                holder.clear()
                dropped.set()
            return x

        iterator = iter(Dataset.range(50).map(drop).prefetch(1))
        holder.append(iterator)
        for _ in range(2):
            next(iterator)
        del iterator
        with contextlib.suppress(IndexError):
            next(holder[0])
        assert dropped.wait(WAIT)


def test_keyboard_interrupt_in_the_function_of_a_thread():
    def interrupt(x):
        if x == 1:
            raise KeyboardInterrupt
        return x

    with no_leaks(), pytest.raises(KeyboardInterrupt):
        for _ in Dataset.range(9).map(interrupt).prefetch(2):
            pass


def test_take_over_an_endless_prefetched_source():
    before = library_threads()
    with no_leaks():
        iterator = iter(Dataset.from_generator(numbers).prefetch(4).take(3))
        assert [int(x) for x in iterator] == [0, 1, 2]
        assert library_threads() <= before


def test_two_iterators_over_one_dataset_in_two_threads():
    dataset, found = Dataset.range(300).shuffle(10, seed=1).prefetch(3).cache().prefetch(2), [[], []]
    barrier = threading.Barrier(2)

    def consume(k):
        barrier.wait(WAIT)
        found[k].extend(int(x) for x in dataset)

    with no_leaks():
        threads = [threading.Thread(target=consume, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [sorted(part) for part in found] == [list(range(300))] * 2


def test_a_thousand_iterators_opened_and_abandoned(files):
    dataset = TFRecordDataset(Dataset.list_files(files, shuffle=False)).prefetch(2)
    with no_leaks():
        for _ in range(1000):
            next(iter(dataset))


@every_pipeline
def test_looking_at_the_spec_leaves_nothing(make, files):
    with nothing_left():
        assert make(files).element_spec


def test_looking_at_the_spec_behind_functions_leaves_nothing(files):
    with no_leaks():
        dataset = TFRecordDataset(Dataset.list_files(files)).prefetch(2).map(lambda x: x).prefetch(2)
        assert dataset.element_spec
        dataset = Dataset.from_generator(numbers).prefetch(2).map(fail_at(-1)).prefetch(1)
        assert dataset.element_spec


@every_pipeline
def test_loading_a_state_leaves_nothing_of_what_was_before(make, files):
    with nothing_left():
        iterator = iter(make(files))
        next(iterator)
        state = iterator.state_dict()
        for _ in range(5):
            next(iterator)
            iterator.load_state_dict(state)
        iterator.close()


# Other processes.


def run(code, timeout=30):
    """Run ``code`` in a separate interpreter; a hang is a failure."""
    command = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", textwrap.dedent(code)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        pytest.fail("the interpreter did not exit")


BLOCKED = {
    "event": "threading.Event().wait()",
    "sleep": "time.sleep(1e6)",
    "busy": "while True: pass",
}


@pytest.mark.parametrize("how", list(BLOCKED))
@pytest.mark.parametrize("held", ["iterator = ", ""])
def test_the_interpreter_exits_while_a_generator_is_blocked_for_ever(how, held):
    result = run(f"""
        import threading, time
        from dataset import Dataset
        def generate():
            yield 1
            {BLOCKED[how]}
        it = iter(Dataset.from_generator(generate).prefetch(2))
        print(next(it))
        {held}it
        print("done")
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "1\ndone\n", "")


def test_the_interpreter_exits_cleanly_with_many_busy_iterators():
    result = run("""
        from dataset import Dataset
        kept = [iter(Dataset.range(10**9).map(lambda x: [x] * 10).prefetch(100).prefetch(10)) for _ in range(10)]
        for iterator in kept:
            next(iterator)
        print("done")
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_the_interpreter_exits_with_the_users_exception():
    result = run("""
        from dataset import Dataset
        for x in Dataset.range(10**9).prefetch(10):
            raise SystemExit(7)
    """)
    assert (result.returncode, result.stderr) == (7, "")


FORK = """
    import os, sys, threading
    from dataset import ClosedError, Dataset
    dataset = Dataset.range(100).map(lambda x: x + 0).prefetch(4)
    {before}
    iterator = iter(dataset)
    assert next(iterator) == 0
    child = os.fork()
    if child == 0:
        code = 1
        try:
            {in_child}
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert [int(x) for x in iterator] == list(range(1, 100))
    print("parent", os.waitstatus_to_exitcode(status))
"""


@needs_fork
@pytest.mark.parametrize("before", ["", "dataset = Dataset.range(100)"], ids=["threads", "no threads"])
@pytest.mark.parametrize(
    "in_child",
    [
        "next(iterator)",
        "iterator.state_dict()",
        "list(iterator)",
    ],
)
def test_in_a_forked_child_the_parents_iterator_refuses(before, in_child):
    body = f"""
            try:
                {in_child}
            except ClosedError as error:
                assert "parent" in str(error)
            else:
                raise AssertionError("it was used")
    """
    result = run(FORK.format(before=before, in_child=body.strip()))
    assert (result.returncode, result.stdout) == (0, "parent 0\n"), result.stderr


@needs_fork
@pytest.mark.parametrize(
    "in_child",
    [
        "assert [int(x) for x in dataset] == list(range(100))",
        "iterator.close(); iterator.close()",
        "del iterator; import gc; gc.collect()",
        "assert [int(x) for x in dataset.take(3)] == [0, 1, 2]; import atexit; atexit._run_exitfuncs()",
    ],
)
def test_in_a_forked_child_a_new_iterator_works_and_the_old_one_can_be_let_go(in_child):
    result = run(FORK.format(before="", in_child=in_child))
    assert (result.returncode, result.stdout) == (0, "parent 0\n"), result.stderr


@needs_fork
def test_a_fork_while_another_thread_waits_for_an_element_does_not_hang_the_child():
    result = run("""
        import os, threading
        from dataset import ClosedError, Dataset
        inside, gate = threading.Event(), threading.Event()
        def generate():
            inside.set()
            gate.wait(60)
            yield 1
        iterator = iter(Dataset.from_generator(generate))
        consumer = threading.Thread(target=lambda: next(iterator))
        consumer.start()
        inside.wait(60)  # the consumer holds the iterator's lock
        child = os.fork()
        if child == 0:
            code = 0
            for use in (lambda: next(iterator), iterator.state_dict):
                try:
                    use()
                    code = 1
                except ClosedError:
                    pass
            iterator.close()
            os._exit(code)
        import time
        deadline = time.monotonic() + 10
        done, status = os.waitpid(child, os.WNOHANG)
        while not done and time.monotonic() < deadline:
            time.sleep(0.05)
            done, status = os.waitpid(child, os.WNOHANG)
        if not done:
            os.kill(child, 9)
            os.waitpid(child, 0)
        gate.set()
        consumer.join()
        print("hung" if not done else os.waitstatus_to_exitcode(status))
    """)
    assert (result.returncode, result.stdout) == (0, "0\n"), result.stderr

"""Tests that a fault of the library in any of its threads is raised, and never treated as the end of the data."""

import threading
import time

import numpy as np
import pytest

from dataset import Dataset, TFRecordDataset
from dataset.errors import ClosedError
from support.fault_injection import POINTS, covering, injected
from support.tfrecord_files import write_records

DEADLINE = 5  # seconds until the consumer must get a result
COUNT = 24
BATCH = 4


def array(number):
    return np.full(1200, number)  # 9,600 bytes: written into the array of the batch


def plain(element):
    """Return the numbers in the results, in any form."""
    if isinstance(element, bytes):
        return [int(element)]
    found = np.atleast_1d(element)
    return found.tolist() if found.ndim == 1 and found.size < 1200 else np.atleast_2d(found)[:, 0].tolist()


def numbers():
    return Dataset.range(COUNT)


def inner(number):
    return Dataset.range(number * 8, number * 8 + 8).map(array)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    paths = [str(folder / f"{index}.tfrecord") for index in range(3)]
    for index, path in enumerate(paths):
        write_records(path, [b"%d" % number for number in range(index * 8, index * 8 + 8)])
    return paths


PIPELINES = {
    "map threads": lambda order, _: numbers().map(array, num_parallel_calls=3, deterministic=order),
    "map threads, batch": lambda order, _: numbers().map(array, num_parallel_calls=3, deterministic=order).batch(BATCH),
    "two maps": lambda order, _: (
        numbers().map(array, num_parallel_calls=2, deterministic=order).prefetch(2).map(lambda x: x + 0, 2, order)
    ),
    "map processes": lambda order, _: numbers().map(
        array, num_parallel_calls=2, deterministic=order, executor="process"
    ),
    "parallel interleave": lambda order, _: Dataset.range(3).interleave(
        inner, 2, num_parallel_calls=2, deterministic=order
    ),
    "parallel batch": lambda order, _: numbers().map(array).batch(BATCH, num_parallel_calls=2, deterministic=order),
    "prefetch": lambda order, _: numbers().map(array).prefetch(3),
    "cache": lambda order, _: numbers().map(array, num_parallel_calls=2, deterministic=order).cache().prefetch(2),
    "shuffle": lambda order, _: (
        numbers().map(array, num_parallel_calls=2, deterministic=order).shuffle(5, seed=1).prefetch(2)
    ),
    "TFRecord": lambda order, files: TFRecordDataset(files, num_parallel_reads=2).prefetch(2),
}
PROCESSES, PROCESS_POINTS = "map processes", {"Chunk", "Thread.start"}
UNITS = {"map threads, batch": BATCH, "parallel batch": BATCH, "parallel interleave": 8, "TFRecord": 8}
"""How many elements one error may replace: those of a batch, of a dataset that was not opened, of a file."""


class Run:
    """Outcomes of an iterator in a separate thread, up to the end or the third error in a row."""

    def __init__(self, dataset, seconds=DEADLINE):
        self.found, self.errors, self.first_error_at, self.iterator = [], [], None, None
        self.ended = False
        thread = threading.Thread(target=self.consume, args=(dataset,), daemon=True)
        thread.start()
        thread.join(seconds)
        assert not thread.is_alive(), "next() hangs"

    def consume(self, dataset):
        in_a_row = 0
        try:
            self.iterator = iter(dataset)
        except MemoryError as error:
            self.errors, self.first_error_at = [error], 0
            return
        while in_a_row < 3:
            try:
                self.found += plain(next(self.iterator))
                in_a_row = 0
            except StopIteration:
                self.ended = True
                return
            except Exception as error:  # it is checked later
                if self.first_error_at is None:
                    self.first_error_at = len(self.found)
                self.errors.append(error)
                in_a_row += 1

    def dropped(self):
        return sum(operator.skipped_elements for operator in self.iterator.stats().operators)


def check(result, fault, expected, *, in_order, ignores, unit):
    assert len(set(result.found)) == len(result.found), "an element came twice"
    assert set(result.found) <= set(expected)
    lost = len(expected) - len(result.found)
    if result.ended:
        explained = len(result.errors) + (result.dropped() if ignores else 0)
        assert lost <= unit * explained, f"{lost} elements are lost, and {explained} errors say so"
    else:
        assert result.errors
        if any(isinstance(error, ClosedError) for error in result.errors):
            first = next(error for error in result.errors if isinstance(error, type(fault.error)))
            assert fault.error in {first, first.__cause__}
            assert any("the iteration cannot continue" in note for note in first.__notes__)
            with pytest.raises(ClosedError, match="cannot continue"):
                result.iterator.state_dict()
    before = result.found if result.first_error_at is None else result.found[: result.first_error_at]
    if in_order and not ignores:
        assert before == expected[: len(before)]
    for error in result.errors:
        assert isinstance(error, (type(fault.error), ClosedError)) or error.__cause__ is fault.error


def try_all(dataset, point, *, in_order, ignores, unit, step, most, seconds):
    """Let the k-th use of a point fail, for every ``step``-th k until no fault occurs."""
    others = set(threading.enumerate())  # an iterator of another test may wait for the garbage collector
    expected = [number for element in dataset for number in plain(element)]
    for k in range(1, most * step, step):
        with injected(point, k) as fault:
            result = Run(dataset, seconds)
            if result.iterator is not None:
                result.iterator.close()
        if not fault.has_fired:
            assert result.found == expected or not in_order
            assert sorted(result.found) == sorted(expected)
            assert not result.errors
            break
        check(result, fault, expected, in_order=in_order, ignores=ignores, unit=unit)
    deadline = time.monotonic() + DEADLINE
    while left := [
        thread for thread in threading.enumerate() if thread not in others and thread.name.startswith("dataset-")
    ]:
        left[0].join(max(0.0, deadline - time.monotonic()))
        assert time.monotonic() < deadline, left


# In the others, processes behave as threads do, and each run starts processes, which takes long.
TRIED = [(name, point) for name in PIPELINES for point in POINTS if name != PROCESSES or point in PROCESS_POINTS]
GATE = covering(TRIED, "worker faults")


@pytest.mark.parametrize(
    ("order", "ignores"), [(True, False), (False, True)], ids=["ordered", "any order, ignore_errors"]
)
@pytest.mark.parametrize(
    ("name", "point"),
    [pytest.param(*pair, marks=[pytest.mark.explore] * (pair not in GATE)) for pair in TRIED],
)
def test_a_fault_is_raised_and_loses_nothing_silently(name, point, order, ignores, files):
    dataset = PIPELINES[name](order, files)
    if ignores:
        dataset = dataset.ignore_errors()
    # Only some of the many calls are tried here, and only some runs that take long.
    step, most = (97, 12) if point == "any call in a thread" else (1, 40)
    if name == PROCESSES:
        step, most = 3, 3
    in_order, unit = order and name != "shuffle", UNITS.get(name, 1)
    seconds = 60 if name == PROCESSES else DEADLINE  # restarting processes takes long on a busy machine
    try_all(dataset, point, in_order=in_order, ignores=ignores, unit=unit, step=step, most=most, seconds=seconds)

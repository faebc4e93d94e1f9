"""Tests of arrays to and from worker processes: complete, writable, and not changed while they are held."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dataset.runtime.processes.transport.segments import IN_HAND_MAX
from dataset.testing import assert_elements_equal
from support.process_helpers import BIG, exit_code_of, fork, numbers, one, plain

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_arrays_arrive_writable_and_whole(start):
    def make(x):
        return {
            "big": np.full(BIG, x, np.float32),
            "small": np.arange(3),
            "turned": np.arange(60_000).reshape(300, 200).T,
            "text": np.array([b"a" * 50_000, b""], object),
        }

    [outcome] = start(make).run(numbers(1, 7), 0)
    assert_elements_equal(outcome.rows(), [make(7)])
    assert all(array.flags.writeable for array in outcome.rows()[0].values())


def test_inputs_arrive_whole_and_those_that_the_function_keeps_do_not_change(start):
    kept = []

    def keep(row):
        kept.append(row)
        return [((array == array.flat[0]).all() and int(array.flat[0]), len(data), text) for array, data, text in kept]

    processes = start(keep)
    for number in range(1, 5):
        [outcome] = processes.run(one((np.full(BIG, number, np.float32), b"x" * 100_000, "text")), 0)
    assert outcome.rows()[0] == [(number, 100_000, "text") for number in range(1, 5)]


@pytest.mark.parametrize("count", [5, 2 * IN_HAND_MAX])
def test_arrays_that_are_held_never_change(start, count):
    processes = start(lambda x: np.full(BIG, x, np.float32))
    held = [plain(processes.run(numbers(1, number), 0))[0] for number in range(count)]
    for number, array in enumerate(held):
        assert array[0, 0] == array[-1, -1] == number
        array[...] += 1000  # workers may change it
    later = plain(processes.run(numbers(1), 0))[0]
    assert not later.any()


def test_holding_many_arrays_holds_few_descriptors_and_dropped_arrays_give_their_memory_back(start):
    def descriptors():
        return len(list(Path("/proc/self/fd").iterdir()))

    processes = start(lambda x: np.full(BIG, x, np.float32))
    addresses = [plain(processes.run(numbers(1), 0))[0].ctypes.data for _ in range(30)]
    assert len(set(addresses)) <= 3
    before = descriptors()
    held = [processes.run(numbers(1), 0) for _ in range(2 * IN_HAND_MAX)]
    assert descriptors() < before + IN_HAND_MAX + 10
    held.clear()
    for _ in range(2):
        processes.run(numbers(1), 0)
    assert descriptors() < before + 10


def test_arrays_outlive_the_processes(start):
    processes = start(lambda x: np.full(BIG, x, np.float32))
    [outcome] = processes.run(numbers(1, 5), 0)
    processes.close()
    assert outcome.rows()[0].sum() == 5 * np.prod(BIG)


def test_large_arrays_of_the_function_are_shared_until_written_to(start):
    table = np.arange(1_000_000)

    def look_up(x):
        table[0] += 1  # in this worker only
        return int(table[x] + table[0])

    processes = start(look_up)
    assert plain(processes.run(numbers(2, 10), 0)) == [11, 13]
    assert table[0] == 0


def test_a_forked_child_has_arrays_of_its_own(start):
    processes = start(lambda x: np.full(BIG, x, np.float32))
    [outcome] = processes.run(numbers(1, 5), 0)
    held = [outcome.rows()[0]]
    del outcome
    assert exit_code_of(fork(lambda: held[0].fill(-1))) == 0
    assert (held[0] == 5).all()
    ours, theirs = os.pipe()

    def look():
        os.read(ours, 1)
        return bool((held[0] == 5).all())

    child = fork(look)
    held[0] += 1
    assert (held[0] == 6).all()
    held.clear()
    for number in range(5):  # none of these may be written to the child's array
        processes.run(numbers(1, number), 0)
    os.write(theirs, b"x")
    assert exit_code_of(child) == 0
    os.close(ours)
    os.close(theirs)

"""Tests that a failed allocation within a file is raised once, and that the next read continues after it."""

import sys

import numpy as np
import pytest

from dataset.io.csv.layout import layout_of
from dataset.io.csv.reader import CsvFile
from dataset.io.tfrecord.reader import TFRecordFile
from support.fault_injection import injected
from support.tfrecord_files import frames

COUNT = 200
ALLOCATIONS = "any array"


def tfrecords(path):
    path.write_bytes(frames([b"%05d" % number * 1000 for number in range(COUNT)]))
    file = TFRecordFile(path, buffer_size=1 << 18)
    return lambda: [int(record[:5]) for record in file.records(7) or []]


def rows(path):
    path.write_bytes(b"number,half\n" + b"".join(b"%d,%d.5\n" % (number, number) for number in range(COUNT)))
    file = CsvFile(path, layout_of("test", [np.int64, np.float64]), buffer_size=250, header=True)

    def read():
        columns = file.columns(7)
        return columns[0].tolist() if columns else []

    return read


def read_all(read):
    found, some, failures = [], [None], 0
    while some and failures < 3:
        try:
            some = read()
            found += some
        except MemoryError:
            failures += 1
    return found, failures


@pytest.mark.parametrize("make", [tfrecords, rows])
def test_nothing_is_lost_in_a_file(make, tmp_path):
    with injected(ALLOCATIONS, sys.maxsize) as none:
        assert read_all(make(tmp_path / "undisturbed")) == (list(range(COUNT)), 0)
    assert none.calls > 2
    for call in range(1, none.calls + 1):
        read = make(tmp_path / f"{call}")
        with injected(ALLOCATIONS, call) as fault:
            assert read_all(read) == (list(range(COUNT)), 1), call
        assert fault.has_fired

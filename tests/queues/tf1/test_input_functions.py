"""Tests of the input functions and file readers of TensorFlow 1."""

import struct

import numpy as np
import pytest

from dataset import TensorSpec, queues
from support.overlap import nothing_left
from support.tfrecord_files import write_records


def read_all(reader, files, count=None):
    names = queues.string_input_producer([str(file) for file in files], num_epochs=1, shuffle=False)
    found = []
    with queues.start_queue_runners():
        while True:
            try:
                found.append(reader.read(names) if count is None else reader.read_up_to(names, count))
            except queues.OutOfRangeError:
                return found


@pytest.fixture
def folder(tmp_path):
    for name in "ab":
        write_records(tmp_path / f"{name}.tfrecord", [f"{name}{number}".encode() for number in range(2)])
        (tmp_path / f"{name}.txt").write_bytes(f"{name}1\n{name}2\r\n{name}3".encode())
        (tmp_path / f"{name}.bin").write_bytes(b"HHabcdefT")
    return tmp_path


@pytest.mark.parametrize(
    ("make", "ending", "expected"),
    [
        (queues.TFRecordReader, "tfrecord", [("a:0", "a0"), ("a:18", "a1"), ("b:0", "b0"), ("b:18", "b1")]),
        (lambda: queues.TextLineReader(1), "txt", [("a:2", "a2"), ("a:3", "a3"), ("b:2", "b2"), ("b:3", "b3")]),
        (
            lambda: queues.FixedLengthRecordReader(3, 2, 1),
            "bin",
            [("a:0", "abc"), ("a:1", "def"), ("b:0", "abc"), ("b:1", "def")],
        ),
        (queues.WholeFileReader, "bin", [("a", "HHabcdefT"), ("b", "HHabcdefT")]),
    ],
)
def test_readers_give_the_keys_and_values_of_tensorflow(folder, make, ending, expected):
    """The expected values are those of the readers of TensorFlow 2.21 in a graph."""
    reader = make()
    files = [folder / f"{name}.{ending}" for name in "ab"]
    whole = [(f"{folder / key[0]}.{ending}{key[1:]}".encode(), value.encode()) for key, value in expected]
    assert read_all(reader, files) == whole
    assert reader.num_records_produced() == len(expected)
    assert reader.num_work_units_completed() == 2
    reader.reset()
    assert reader.num_records_produced() == 0
    pairs = read_all(reader, files, 3)
    assert [key for keys, _ in pairs for key in keys] == [key for key, _ in whole]
    assert len(pairs[0][1]) == min(3, len(whole))


def test_a_damaged_record_is_reported(folder):
    path = folder / "a.tfrecord"
    path.write_bytes(path.read_bytes()[:-1] + struct.pack("B", 0))
    with pytest.raises(OSError, match=r"a.tfrecord, record 1"):
        read_all(queues.TFRecordReader(), [path])


def test_epochs_are_whole_and_in_different_orders():
    names = queues.range_input_producer(20, num_epochs=3, seed=1)
    with queues.start_queue_runners():
        epochs = [names.dequeue_many(20).tolist() for _ in range(3)]
        with pytest.raises(queues.OutOfRangeError):
            names.dequeue()
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again = queues.range_input_producer(20, num_epochs=3, seed=1)
    with queues.start_queue_runners():
        assert again.dequeue_many(60).tolist() == [number for epoch in epochs for number in epoch]


def test_without_a_number_of_epochs_there_is_no_end():
    with nothing_left():
        rows = queues.input_producer(np.arange(6).reshape(3, 2), shuffle=False, capacity=2)
        with queues.start_queue_runners():
            assert rows.dequeue_many(7)[-1].tolist() == [0, 1]


def test_slices_belong_together():
    row = queues.slice_input_producer([np.arange(50), np.arange(50) * 10], num_epochs=1)
    with queues.start_queue_runners():
        found = [row() for _ in range(50)]
    assert all(b == 10 * a for a, b in found)
    assert sorted(int(a) for a, _ in found) == list(range(50))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: queues.string_input_producer([]), r"string_input_producer\(\): there are no rows"),
        (lambda: queues.range_input_producer(0), "limit must be at least 1"),
        (lambda: queues.range_input_producer(3, num_epochs=0), "num_epochs must be at least 1"),
        (lambda: queues.batch(int, 0), "batch_size must be at least 1"),
        (lambda: queues.batch(3, 2), "tensors must be a function"),
        (lambda: queues.batch(int, 1, num_threads=0), "num_threads must be at least 1"),
        (lambda: queues.batch(int, 1, dynamic_pad=True), "dynamic_pad=True needs element_spec"),
        (lambda: queues.shuffle_batch(int, 1, 3, 3), "min_after_dequeue must be at most 2"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
    with queues.start_queue_runners():  # nothing was registered
        pass


@pytest.mark.parametrize("allow", [False, True])
def test_the_last_elements_are_a_batch_if_that_is_allowed(allow):
    numbers = queues.range_input_producer(7, num_epochs=1, shuffle=False)
    batches = queues.batch(numbers.dequeue, 3, allow_smaller_final_batch=allow)
    with queues.start_queue_runners():
        found = [one.tolist() for one in batches]
    assert found == [[0, 1, 2], [3, 4, 5], [6]][: 2 + allow]


def test_functions_join():
    first = queues.range_input_producer(10, num_epochs=1)
    second = queues.range_input_producer(10, num_epochs=1)
    batches = queues.shuffle_batch_join(
        [first.dequeue, lambda: second.dequeue() + 100], 4, capacity=9, min_after_dequeue=3
    )
    with queues.start_queue_runners():
        found = np.concatenate(list(batches))
    assert sorted(found.tolist()) == [*range(10), *range(100, 110)]


def test_several_elements_at_once_and_padding():
    numbers = queues.range_input_producer(3, num_epochs=1, shuffle=False)
    batches = queues.batch(lambda: np.full(2, numbers.dequeue()), 6, enqueue_many=True)
    padded = queues.range_input_producer(3, num_epochs=1, shuffle=False)
    rows = queues.batch(
        lambda: np.arange(padded.dequeue()), 3, dynamic_pad=True, element_spec=TensorSpec((None,), np.int64)
    )
    with queues.start_queue_runners():
        assert batches().tolist() == [0, 0, 1, 1, 2, 2]
        assert rows().tolist() == [[0, 0], [0, 0], [0, 1]]


def test_the_classic_pipeline(folder):
    """File names, a reader in two threads, a shuffled batch; the loop ends with the data."""
    with nothing_left():
        names = queues.string_input_producer([str(folder / f"{name}.tfrecord") for name in "ab"], num_epochs=5)
        reader = queues.TFRecordReader()
        batches = queues.shuffle_batch(
            lambda: reader.read(names)[1], 4, capacity=12, min_after_dequeue=6, num_threads=2, seed=1
        )
        steps = []
        with queues.start_queue_runners() as coordinator:
            try:
                while not coordinator.should_stop():
                    steps.append(batches().tolist())
            except queues.OutOfRangeError:
                pass
    assert sorted(record for step in steps for record in step) == sorted([b"a0", b"a1", b"b0", b"b1"] * 5)

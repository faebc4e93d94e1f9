"""Tests of from_queue(log=): what was taken can be read again, exactly, also after the process was killed."""

import itertools
import json
import os
import queue as stdlib
import re
import signal
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from dataset import DataLossError, Dataset, SpecError, StateError, TensorSpec, TFRecordDataset, checkpoint
from dataset.io.elements.element_log import ElementLog
from dataset.io.tfrecord.frames import framed
from dataset.queues import FIFOQueue
from dataset.testing import outcomes
from support.pipelines import Pair
from support.process_helpers import run_code
from support.resuming import advanced, loaded, to_json
from support.states import rest_of, state_after

ELEMENTS = [
    {"number": n, "text": f"text {n}", "row": np.arange(n % 3, dtype=np.float32), "pair": (n, [n, n])} for n in range(9)
]


def filled(values, *, closed=True):
    queue = FIFOQueue(1000)
    for value in values:
        queue.enqueue(value)
    if closed:
        queue.close()
    return queue


def shown(found):
    return [
        f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value) for value in list(found)
    ]


def logged(values, path, **arguments):
    return Dataset.from_queue(filled(values, **arguments), log=path)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "taken.log")


def test_the_log_repeats_what_was_taken(path):
    values = [*ELEMENTS[:3], ValueError("bad"), *ELEMENTS[3:]]
    dataset = logged(values, path)
    first = shown(outcomes(iter(dataset)))
    assert first == shown(outcomes(iter(Dataset.from_queue(filled(values)))))
    assert shown(outcomes(iter(dataset))) == first, "each iteration begins with the first element"
    again = logged([ELEMENTS[0]], path)
    assert shown(outcomes(iter(again))) == [*first, shown([next(iter(Dataset.from_queue(filled(ELEMENTS))))])[0]]
    notes = [error.__notes__ for error in outcomes(iter(again)) if isinstance(error, ValueError)]
    assert re.fullmatch(r"in from_queue\(FIFOQueue\) from test_queue_log.py:\d+, element 3", notes[0][0])
    assert len(list(TFRecordDataset(path))) == 1 + len(values) + 1


@pytest.mark.parametrize("make", [stdlib.Queue, stdlib.SimpleQueue, lambda: FIFOQueue(10)])
def test_an_end_is_not_logged(path, make):
    queue = make()
    put = getattr(queue, "enqueue", queue.put if hasattr(queue, "put") else None)
    for value in [1, 2, StopIteration(), 3, StopIteration()]:
        put(value)
    dataset = Dataset.from_queue(queue, log=path)
    assert list(dataset) == [1, 2]
    assert list(dataset) == [1, 2, 3]


STEPS = {
    "nothing": lambda d: d,
    "map": lambda d: d.map(lambda x: x + 1, num_parallel_calls=2),
    "prefetch": lambda d: d.prefetch(3),
    "shuffle": lambda d: d.shuffle(4, seed=1).batch(2).prefetch(1),
    "filter": lambda d: d.filter(lambda x: x % 3 != 1),
    "batch": lambda d: d.batch(3),
    "repeat": lambda d: d.repeat(2),
    "window": lambda d: d.window(3).flat_map(lambda w: w),
}


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("steps", STEPS)
def test_a_state_continues_in_another_process_with_another_queue(path, steps, place):
    values = [0, 1, 2, 3, ValueError("bad"), *range(4, 12)]
    expected = shown(outcomes(iter(STEPS[steps](logged(values, f"{path}.whole")))))
    with iter(STEPS[steps](logged(values, path, closed=False))) as iterator:
        found = advanced(iterator, place)
        state = to_json(iterator.state_dict())
    kept = len(outcomes(iter(logged([], path))))  # what is in the log; the producers send the rest again
    resumed = loaded(STEPS[steps](logged(values[kept:], path)), state)
    assert shown(found) + shown(outcomes(resumed)) == expected


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("steps", STEPS)
def test_without_a_log_a_state_holds_what_was_taken_and_not_delivered(steps, place):
    def dataset(queue):
        return STEPS[steps](Dataset.from_queue(queue))

    queue, expected = filled(range(20)), shown(dataset(filled(range(20))))
    state = state_after(dataset(queue), place)
    assert shown(rest_of(dataset(queue), state)) == expected[place:]


def test_a_state_holds_a_position_and_no_elements(path):
    for number in (1, 50):
        dataset = logged([np.zeros(10_000)] * 60, f"{path}{number}", closed=False).prefetch(8)
        assert len(to_json(state_after(dataset, number))) < 3000


def test_what_is_taken_together_is_one_record_and_a_state_may_be_within_it(path):
    dataset = logged(range(10), path)
    whole = [batch.tolist() for batch in dataset.batch(4)]
    assert len(list(TFRecordDataset(path))) < 1 + 10
    for place in range(10):
        assert rest_of(logged([], path), state_after(dataset, place)) == list(range(place, 10))
    assert [batch.tolist() for batch in dataset.batch(4)] == whole


CONSUMER = """
import os, signal, sys
from dataset import Dataset, checkpoint
from dataset.queues import FIFOQueue

log, saved, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
queue = FIFOQueue(1000)
for number in range(100):
    queue.enqueue((number, b"x" * number))
iterator = iter(Dataset.from_queue(queue, log=log).map(lambda n, x: n).shuffle(5, seed=1).batch(3).prefetch(2))
for number in range(20):
    if number == after:
        checkpoint.save(saved, iterator)
    print(next(iterator).tolist(), flush=True)
    if number == after + int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("after", "more"), [(0, 0), (3, 0), (3, 5), (7, 9)])
def test_a_killed_consumer_resumes_exactly(path, tmp_path, after, more):
    saved = str(tmp_path / "state")
    done = run_code(CONSUMER, path, saved, after, more, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    delivered = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(delivered) == after + more + 1
    kept = len(list(logged([], path)))
    assert kept >= 3 * len(delivered)

    def pipeline(path, values):
        dataset = logged([(n, b"x" * n) for n in values], path)
        return iter(dataset.map(lambda n, _: n).shuffle(5, seed=1).batch(3).prefetch(2))

    resumed = pipeline(path, range(kept, 100))
    checkpoint.restore(saved, resumed)
    rest = [batch.tolist() for batch in resumed]
    assert rest[: more + 1] == delivered[after:], "what was delivered after the state is delivered again"
    whole = [batch.tolist() for batch in pipeline(path + ".whole", range(100))]
    assert delivered[:after] + rest == whole


def test_a_record_that_was_being_written_is_cut_off(path, tmp_path):
    dataset = logged(ELEMENTS[:3], path)
    whole = shown(outcomes(iter(dataset)))
    content = Path(path).read_bytes()
    sizes = list(itertools.accumulate((len(record) + 16 for record in TFRecordDataset(path)), initial=0))
    assert sizes[-1] == len(content)
    near = {end + more for end in sizes for more in (-1, 0, 1, 5, 12, 40)}
    for size in sorted(size for size in near if 0 <= size <= len(content)):
        copy = str(tmp_path / "cut.log")
        Path(copy).write_bytes(content[:size])
        kept = max(sum(end <= size for end in sizes) - 2, 0)
        found = shown(outcomes(iter(logged(ELEMENTS[kept:3], copy))))
        assert found == whole, size
        assert shown(outcomes(iter(logged([], copy)))) == whole


def test_damage_is_an_error_and_nothing_is_taken_or_appended(path):
    whole = shown(outcomes(iter(logged(range(4), path))))
    content = Path(path).read_bytes()
    for place in [*range(30), *range(30, len(content), 37), *range(len(content) - 5, len(content))]:
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        Path(path).write_bytes(damaged)
        queue = filled([7], closed=False)
        iterator = iter(Dataset.from_queue(queue, log=path))
        *found, error = outcomes(iterator)
        assert isinstance(error, DataLossError)
        assert re.search(r"taken.log, record \d+, at byte \d+", str(error))
        assert shown(found) == whole[: len(found)]
        iterator.close()
        assert queue.size() == 1
        assert Path(path).read_bytes() == damaged


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff\xff\xff\xff",
        b"\x02\x00\x00\x00[]",
        b"\x02\x00\x00\x00{}",
        b"\x04\x00\x00\x00[{}]",
        b"\x04\x00\x00\x00null",
        *(
            len(text).to_bytes(4, "little") + text
            for text in (
                b'[{"length": 1000000000000, "structure": null, "columns": []}]',
                b'[{"length": 1, "structure": "x", "columns": [{"$array": [0, 9], "dtype": "<i8", "shape": [1]}]}]',
                b"[" * 5000 + b"]" * 5000,
            )
        ),
    ],
)
def test_a_forged_record_is_an_error(path, record):
    list(logged([1], path))
    forged = Path(path).read_bytes() + b"".join(framed(record))
    Path(path).write_bytes(forged)
    one, error = outcomes(iter(logged([2], path)))
    assert one == 1
    assert isinstance(error, DataLossError)
    assert "record 2, at byte" in str(error)
    assert Path(path).read_bytes() == forged


def test_another_file_is_not_overwritten(tmp_path):
    for name, content in (("a.txt", b"a text that somebody else has written"), ("b", b"".join(framed(b"{}")))):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataLossError):
            next(iter(logged([1], str(path))))
        assert path.read_bytes() == content
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="link"):
        next(iter(logged([1], str(tmp_path / "link"))))
    assert not (tmp_path / "target").exists()
    with pytest.raises(ValueError, match=r"from_queue\(\): the path must be a local file"):
        logged([1], "s3://bucket/log")


def test_a_state_is_refused_by_another_or_a_shorter_log(path, tmp_path):
    state = state_after(logged(range(9), path), 5)
    other = str(tmp_path / "other.log")
    list(logged(range(9), other))
    for name in other, str(tmp_path / "new.log"):
        with pytest.raises(StateError, match="is not the log that the state was saved with"):
            iter(logged([], name)).load_state_dict(state)
    os.truncate(path, 300)
    with pytest.raises(StateError, match=r"has only 300.*power failure"):
        iter(logged([], path)).load_state_dict(state)
    with pytest.raises(StateError, match=r"another pipeline|fingerprint|different"):
        iter(Dataset.from_queue(filled([]))).load_state_dict(state)


def test_one_iterator_takes_and_others_read(path):
    queue = filled(range(6), closed=False)
    dataset = Dataset.from_queue(queue, log=path)
    first, second = iter(dataset), iter(dataset)
    assert [next(first) for _ in range(3)] == [0, 1, 2]
    assert [next(second) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(BlockingIOError, match=r"belongs to another iterator.*close that one first"):
        next(second)
    assert next(first) == 3
    assert next(second) == 3
    first.close()
    assert next(second) == 4
    second.close()
    assert queue.size() == 1


def test_an_element_is_kept_until_it_can_be_written(path, monkeypatch):
    write, failures = ElementLog.append, itertools.count()

    def append(self, outcomes):
        if next(failures) in {1, 2}:
            raise OSError(28, "No space left on device")
        write(self, outcomes)

    monkeypatch.setattr(ElementLog, "append", append)
    iterator = iter(logged(range(4), path))
    found = outcomes(iterator)
    assert shown(found) == shown(
        [np.int64(0), *[OSError(28, "No space left on device")] * 2, np.int64(1), np.int64(2), np.int64(3)]
    )
    assert list(logged([], path)) == list(range(4))


def test_a_full_disk_leaves_the_log_as_it_was(path, monkeypatch):
    log = ElementLog(path, list)
    assert log.read() is None
    log.append([])
    size = Path(path).stat().st_size

    def write(content, write=log._file.write):
        if len(content) < 200:
            raise OSError(28, "No space left on device")
        return write(content[:100])

    monkeypatch.setattr(log, "_file", Mock(wraps=log._file, write=write))
    with pytest.raises(OSError, match="No space"):
        log.append([b"x" * 500])
    assert Path(path).stat().st_size == size
    log.close()


def test_elements_of_a_class_are_logged_only_if_they_can_be_read_again(path):
    spec = Pair(TensorSpec((), np.int64), TensorSpec((), bytes))
    values = [Pair(1, b"a"), ValueError("bad"), Pair(2, b"b")]
    refused = iter(Dataset.from_queue(queue := filled(values), log=path))
    with pytest.raises(SpecError, match="which a log does not name; pass element_spec"):
        next(refused)
    assert refused.state_dict()
    refused.close()
    assert (queue.size(), len(list(TFRecordDataset(path)))) == (2, 1)
    first = shown(outcomes(iter(Dataset.from_queue(filled(values), spec, log=path))))
    assert first == shown(outcomes(iter(Dataset.from_queue(filled([]), spec, log=path))))
    assert first[0].startswith("Pair(x=np.int64(1)")


def test_an_object_cannot_be_logged_and_is_not_lost(path):
    iterator = iter(logged([1], path))
    assert next(iterator) == 1
    iterator.close()
    iterator = iter(Dataset.from_queue(filled([object()]), log=path))
    assert next(iterator) == 1
    for _ in range(2):
        with pytest.raises(StateError, match="cannot be saved as plain data"):
            next(iterator)
    iterator.close()

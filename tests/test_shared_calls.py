"""Tests of calls that a library function makes for all current inputs at once: here, parsing in a user's function."""

import functools
import gc
import os
import threading

import numpy as np
import pytest

from dataset import Dataset, ParseError, TFRecordDataset, io
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.tfrecord_files import frame, write_records

FEATURES = {
    "number": io.FixedLenFeature((), np.int64),
    "floats": io.FixedLenFeature((2,), np.float32),
    "word": io.FixedLenFeature((), bytes, b"none"),
    "words": io.FixedLenFeature((2,), bytes, [b"a", b"b"]),
    "sparse": io.VarLenFeature(np.int64),
    "ragged": io.RaggedFeature(np.int64),
    "sequence": io.FixedLenSequenceFeature((), np.float32, allow_missing=True),
}
COUNT = 50
RECORDS = [
    io.encode_example(
        {
            "number": [i],
            "floats": [float(i), i / 2],
            "sparse": list(range(i % 3)),
            "ragged": list(range(i % 4)),
            "sequence": [float(i)] * (i % 2),
            **({"word": [b"%d" % i]} if i % 2 else {}),
        }
    )
    for i in range(COUNT)
]


def records():
    return Dataset.from_tensor_slices(RECORDS)


def parses(function):
    """Return the records that ``function`` passes to single calls of the parser, and the outcomes of a map."""
    found = []
    dataset = records().map(lambda record: found.append(function(record)) or np.int64(0)).batch(COUNT)
    list(dataset)
    return found


@pytest.mark.parametrize(
    "parse", [lambda record: io.parse_single_example(record, FEATURES), io.ExampleParser(FEATURES)]
)
@pytest.mark.usefixtures("native")
def test_elements_are_those_of_single_calls(parse):
    assert_elements_equal(parses(parse), [parse(record) for record in RECORDS])


@pytest.fixture
def batches(monkeypatch):
    """The numbers of records that are parsed at once."""
    found, original = [], io.ExampleParser._parse_many

    def counted(self, serialized, *arguments):
        found.append(len(serialized))
        return original(self, serialized, *arguments)

    monkeypatch.setattr(io.ExampleParser, "_parse_many", counted)
    return found


def test_elements_share_no_memory_and_no_dict():
    parser = io.ExampleParser(FEATURES)

    def twice(record):
        first, second = parser(record), parser(record)
        first["floats"][:] = -1
        first["ragged"][:] = -1
        first["number"] = None
        return second

    assert_elements_equal(parses(twice), [parser(record) for record in RECORDS])
    for element in parses(parser):
        arrays = [element["floats"], element["words"], element["ragged"], element["sequence"]]
        assert all(array.base is None and array.flags.writeable for array in arrays)


def test_a_parser_made_in_the_function_is_its_own():
    """A new parser may have the address of one that was dropped."""

    def parse(record):
        names = ["number", "ragged"]
        found = [io.ExampleParser({name: FEATURES[name]})(record) for name in names]
        gc.collect(0)
        return found

    for i, (number, ragged) in enumerate(parses(parse)):
        assert number == {"number": i}
        assert list(ragged) == ["ragged"]


def test_other_records_are_parsed_alone():
    """A function may parse something else than its argument, or iterate another dataset."""
    other = io.encode_example({"number": [777], "floats": [1.0, 2.0]})
    parser = io.ExampleParser(FEATURES)
    inner = Dataset.from_tensor_slices([other] * 20).map(lambda record: parser(record)["number"]).batch(20)

    def parse(record):
        return int(parser(other)["number"]), next(iter(inner)).tolist(), int(parser(record)["number"])

    assert parses(parse) == [(777, [777] * 20, i) for i in range(COUNT)]


@pytest.mark.parametrize("parallel", [{"num_parallel_calls": 2}, {"num_parallel_calls": 1, "executor": "process"}])
def test_in_workers(parallel):
    dataset = records().map(_number, **parallel).batch(COUNT)
    assert next(iter(dataset)).tolist() == [2 * i for i in range(COUNT)]


def _number(record):
    return io.parse_single_example(record, FEATURES)["number"] * 2


# Records that are read ahead for the sake of shared calls ------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    write_records(tmp_path / "records", RECORDS)
    return tmp_path / "records"


def _ragged(record):
    example = io.parse_single_example(record, FEATURES)
    return example["ragged"], example["number"] + 1


def _called(function, record):
    """Call another function, so that the names in the code of this one say nothing."""
    return function(record)


def _bucketed(dataset):
    return dataset.bucket_by_sequence_length(lambda ids, number: sum([len(ids)]), [1, 2, 3], [4, 3, 2, 5])


def _bucketed_by_length(dataset):
    return dataset.bucket_by_sequence_length(lambda ids, number: len(ids), [1, 2, 3], [4, 3, 2, 5])


SOURCES = {
    "interleaved": lambda file: Dataset.from_tensor_slices([str(file)] * 2).interleave(TFRecordDataset),
    "file": TFRecordDataset,
    "shuffled": lambda file: TFRecordDataset(file).shuffle(7, seed=1),
    "skipping": lambda file: TFRecordDataset(file).skip(3).repeat(2),
}


def _numbers(dataset):
    return dataset.map(lambda ids, number: number)


@pytest.mark.parametrize(
    ("source", "downstream"),
    [
        ("file", _bucketed),
        ("shuffled", _numbers),
        ("skipping", _bucketed),
        ("interleaved", _bucketed_by_length),
    ],
)
def test_elements_and_places_are_those_of_single_calls(file, source, downstream):
    def make(function):
        return downstream(SOURCES[source](file).map(function))

    expected = outcomes(iter(make(functools.partial(_called, _ragged))))
    check_operator(lambda: make(_ragged), expected, positions=12)


def test_a_broken_record_fails_in_its_place(tmp_path):
    broken = [*RECORDS[:20], b"not an Example", *RECORDS[20:]]
    write_records(tmp_path / "records", broken)
    found = check_operator(lambda: TFRecordDataset(tmp_path / "records").map(_number), positions=24)
    assert [type(outcome) for outcome in found] == [
        ParseError if record == b"not an Example" else np.int64 for record in broken
    ]


def test_many_records_are_parsed_at_once_and_the_function_is_called_for_requested_elements_only(file, batches):
    called = []

    def parse(record):
        called.append(record)
        return io.parse_single_example(record, FEATURES)["number"]

    with iter(TFRecordDataset(file).map(parse)) as iterator:
        for i in range(COUNT):
            assert next(iterator) == i
            assert called == RECORDS[: i + 1]
    assert sum(batches) >= COUNT // 2
    assert max(batches) > 8


def test_records_that_arrive_one_by_one_do_not_wait_for_others(tmp_path):
    """A program may write a record to a pipe only after it has seen the answer to the one before."""
    pipe, answered, in_time = tmp_path / "pipe", threading.Semaphore(0), []
    os.mkfifo(pipe)

    def write():
        with pipe.open("wb", buffering=0) as file:
            for _ in range(40):
                file.write(frame(RECORDS[1]))
                in_time.append(answered.acquire(timeout=60))

    thread = threading.Thread(target=write)
    thread.start()
    for number in TFRecordDataset(pipe, buffer_size=0).map(_number):
        assert number == 2
        answered.release()
    thread.join()
    assert in_time == [True] * 40

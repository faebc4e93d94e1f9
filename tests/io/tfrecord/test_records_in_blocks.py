"""Records that stay in the blocks they were read in until a parser reads them: the same elements as from objects."""

import functools
import pickle
import random

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, TFRecordDataset, io
from dataset.errors import ParseError
from dataset.io.tfrecord.frames import framed_all
from dataset.native.library import kernels
from dataset.ops.elementwise import Elementwise
from dataset.ops.shuffle import shuffle
from dataset.optimize.vectorization import parsers
from dataset.plan.packed import BytesColumn
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import advanced, check_every_place
from support.states import rest_of

pytestmark = [
    pytest.mark.skipif(kernels() is None, reason="records stay in blocks only if the kernels are in use"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # if these are errors, functions never run on columns
]

FEATURES = {
    "number": io.FixedLenFeature((), np.int64),
    "text": io.FixedLenFeature((), bytes, b"none"),
    "list": io.RaggedFeature(np.float32),
}
FILES, RECORDS = 3, 1500


def record(number):
    text = {"text": random.Random(number).randbytes(number % 70)} if number % 7 else {}
    return io.encode_example({"number": number, **text, "list": np.arange(number % 5, dtype=np.float32)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    paths = [folder / f"{name}.tfrecord" for name in "abc"[:FILES]]
    for start, path in enumerate(paths):
        records = [record(RECORDS * start + i) for i in range(RECORDS)]
        records[700] += io.encode_example({"unused": bytes(300_000)})  # larger than what is read at once
        records[701:703] = [b"", b""]  # Examples without features
        path.write_bytes(framed_all(records))
    return list(map(str, paths))


def computed(record):
    example = io.parse_single_example(record, FEATURES)
    return example["number"] * 2 + 1


def parsed(record):
    example = io.parse_single_example(record, FEATURES)
    return example["text"], example["number"]


NUMBERS = {"number": io.FixedLenFeature((), np.int64, -1)}


def number(record):
    return io.parse_single_example(record, NUMBERS)["number"] - 1


def by_batch(records):
    return io.parse_example(records, NUMBERS)["number"] - 1


def texts_by_batch(records):
    examples = io.parse_example(records, FEATURES)
    if len(examples["number"]) < 3:
        raise ValueError("too few")
    return examples["text"], examples["list"].flat_values


def divides(record):
    return io.parse_single_example(record, NUMBERS)["number"] % 3 == 1


def shuffled(dataset, size):
    return dataset.shuffle(size, seed=1, reshuffle_each_iteration=False)


def of_each(files, **kwargs):
    def read(path):
        return TFRecordDataset(path, buffer_size=8000)  # the first blocks are read for few elements

    return Dataset.from_tensor_slices(files).interleave(read, cycle_length=2, block_length=3, **kwargs)


def run(dataset):
    """Return the elements, with exceptions in their places."""
    return outcomes(iter(dataset))


PIPELINES = {
    "map": lambda files: TFRecordDataset(files).map(number).batch(20),
    "shuffle, parser": lambda files: shuffled(TFRecordDataset(files), 900).map(io.ExampleParser(NUMBERS)).batch(50),
    "skip, shard, take": lambda files: TFRecordDataset(files).skip(33).shard(3, 1).take(1100).map(number).batch(9),
    "shuffle, repeat": lambda files: shuffled(TFRecordDataset(files[:1]), 5000).repeat(2).map(number).batch(31),
    "prefetch": lambda files: TFRecordDataset(files).prefetch(50).map(number).batch(64),
    "parallel interleave": lambda files: of_each(files, num_parallel_calls=2).map(number).batch(41),
    "autotune": lambda files: (
        shuffled(TFRecordDataset(files, num_parallel_reads=AUTOTUNE), 2000)
        .map(number, num_parallel_calls=AUTOTUNE)
        .batch(32)
        .prefetch(AUTOTUNE)
    ),
    "filter, batch": lambda files: TFRecordDataset(files).filter(divides).batch(12),
    "values": lambda files: TFRecordDataset(files[:1]).skip(800).map(parsed).batch(16),
    "batch": lambda files: TFRecordDataset(files).batch(33).map(by_batch),
    "interleave, batch": lambda files: shuffled(of_each(files), 300).batch(40, drop_remainder=True).map(by_batch),
    "parallel batch": lambda files: TFRecordDataset(files).batch(50, num_parallel_calls=2).map(by_batch),
    "batch, partial": lambda files: (
        TFRecordDataset(files).batch(21).map(functools.partial(io.parse_example, features=NUMBERS))
    ),
    "batched features": lambda files: io.make_batched_features_dataset(
        files, 20, NUMBERS, num_epochs=1, shuffle=False, label_key="number"
    ),
    "batch, failures": lambda files: TFRecordDataset(files).batch(32).map(texts_by_batch),
    "failures": lambda files: shuffled(TFRecordDataset(files), 300).map(computed).batch(23),
    "failures, parsed": lambda files: (
        TFRecordDataset(files).map(io.ExampleParser(FEATURES)).ignore_errors().padded_batch(9)
    ),
}


def without_blocks(monkeypatch):
    monkeypatch.setattr(Elementwise, "parses_blocks", False)
    monkeypatch.setattr(parsers, "batch_parsing_function", lambda function: None)


@pytest.fixture
def seen(monkeypatch):
    """The number of records in each column of blocks that a parser gets."""
    lengths = []
    copy = BytesColumn.copy

    def copied(column):
        lengths.append(len(column))
        return copy(column)

    monkeypatch.setattr(BytesColumn, "copy", copied)
    return lengths


@pytest.mark.parametrize("name", PIPELINES)
def test_gives_the_same_elements_and_resumes_exactly(name, files, seen, monkeypatch):
    found = run(PIPELINES[name](files))
    # The first records decide; workers may have read all by then. On a slow machine, a prefetch pulls few records at
    # once, and parsed values are not worth a trial.
    if name not in {"autotune", "prefetch", "values"}:
        assert (sum(seen) > 0) == (name != "filter, batch")
    check_every_place(lambda: PIPELINES[name](files), (1, len(found) // 3, len(found) - 2))
    seen.clear()
    without_blocks(monkeypatch)
    assert_elements_equal(found, run(PIPELINES[name](files)))
    assert not seen


def test_states_hold_the_records_of_batches_that_cannot_be_read_again(files, seen):
    records = of_each(files, num_parallel_calls=2, deterministic=False)
    dataset = records.batch(20).map(by_batch, num_parallel_calls=2).prefetch(3)
    expected = sorted(np.concatenate(run(dataset)))
    for count in (1, 20, 150):
        iterator = iter(dataset)
        found = advanced(iterator, count)
        state = pickle.loads(pickle.dumps(iterator.state_dict()))
        iterator.close()
        assert sorted(np.concatenate([*found, *rest_of(dataset, state)])) == expected
    assert sum(seen) > 0


@pytest.mark.parametrize("bytes_max", [12_000, 1 << 20])  # copied to new blocks, or not
def test_a_buffer_drops_blocks_that_it_does_not_need(bytes_max, tmp_path, monkeypatch):
    path = tmp_path / "many.tfrecord"
    path.write_bytes(framed_all([record(i) for i in range(60_000)]))
    monkeypatch.setattr(shuffle, "_BLOCKS_MIN", 1000)
    monkeypatch.setattr(shuffle, "_BLOCKS_MAX", bytes_max)
    sizes, add = [], shuffle._Buffer._add_blocks

    def added(buffer, index, blocks):
        add(buffer, index, blocks)
        sizes.append(BytesColumn(buffer.columns[index], buffer.blocks[index]).block_bytes)

    monkeypatch.setattr(shuffle._Buffer, "_add_blocks", added)
    dataset = TFRecordDataset(path, buffer_size=8000).shuffle(100, seed=1).map(number).batch(64).unbatch()
    assert sorted(dataset) == list(range(-1, 59_999))
    assert max(sizes) < 250_000  # with those of the last pull; the file has 5 MB


@pytest.mark.parametrize("position", [0, 1200, 1950])
def test_damaged_records_fail_in_their_places(position, tmp_path, seen, monkeypatch):
    records = [record(i) for i in range(2000)]
    records[position] = records[position][:-3]
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(framed_all(records))
    dataset = TFRecordDataset(path, buffer_size=8000).map(computed).batch(50).unbatch()
    found = run(dataset)
    assert [index for index, outcome in enumerate(found) if isinstance(outcome, ParseError)] == [position]
    assert sum(seen) > 0 or not position
    without_blocks(monkeypatch)
    expected = run(dataset)
    assert str(found[position]) == str(expected[position])
    assert_elements_equal(found[position + 1 :], expected[position + 1 :])

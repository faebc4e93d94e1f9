"""Tests that a shuffle over files saves the positions of its elements instead of the elements."""

import copy
import gzip
import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset import CsvDataset, Dataset, FixedLengthRecordDataset, StateError, TextLineDataset, TFRecordDataset
from dataset.runtime.state.saved_chunks import digest
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.pipelines import unoptimized
from support.resuming import check_stops, from_json, interrupted, loaded, resealed
from support.tfrecord_files import COMPRESS, frames


def write_records(folder, counts, compression="", size=40):
    paths = []
    for number, count in enumerate(counts):
        records = [f"{number}-{index}-".encode().ljust(size + index % 7, b"x") for index in range(count)]
        paths.append(write(folder, f"{number}.tfrecord", COMPRESS[compression](frames(records))))
    return paths


def write(folder, name, content):
    (folder / name).write_bytes(content)
    return str(folder / name)


def states_in(state):
    """Return the parts of a state in which a shuffle saved its elements."""
    if isinstance(state, dict):
        if isinstance(found := state.get("elements"), dict) and "files" in found:
            yield found
        state = list(state.values())
    if isinstance(state, list):
        for value in state:
            yield from states_in(value)


def holds_bytes(value):
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(holds_bytes, value)) if isinstance(value, list) else isinstance(value, bytes)


def parts_of(state):
    return [part for elements in states_in(state) for part in elements["parts"]]


def by_value(state):
    """Return whether the state contains any element by value."""
    return any(part is not None and ("columns" in part or part.get("others")) for part in parts_of(state))


def resumed_everywhere(make, every=1):
    """Resume at places, once and from the last one to the next; return the states."""
    expected = list(make())
    places = [*range(0, len(expected), every), len(expected)]
    found, states = interrupted(make(), places)
    assert_elements_equal(found, expected)
    for place, state in states.items():
        with loaded(make(), state) as iterator:
            assert_elements_equal(outcomes(iterator), expected[place:])
    check_stops(make, places, expected)
    return [from_json(state) for state in states.values()]


SMALL = 128  # the size of a block in bytes: a few records


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [2, 20, 100])
def test_records(tmp_path, size, compression):
    paths = write_records(tmp_path, [11, 0, 1, 23], compression)
    states = resumed_everywhere(lambda: TFRecordDataset(paths, compression, SMALL).shuffle(size, seed=1), 3)
    assert not any(map(by_value, states))


LINES = b"".join(b"line %d\n" % index for index in range(60))
ROWS = b"x,y\n" + b"".join(b'%d,"a\n%d"\n' % (i, i) if i % 5 else b"%d,b\n" % i for i in range(50))
FORMATS = {
    "lines": (LINES, lambda path: TextLineDataset([path, path], buffer_size=50)),
    "lines with CRLF": (LINES.replace(b"\n", b"\r\n"), lambda path: TextLineDataset(path, buffer_size=50)),
    "compressed lines": (gzip.compress(LINES), lambda path: TextLineDataset(path, "GZIP", 50)),
    "records of one length": (
        b"H" + bytes(range(200)) + b"F",
        lambda path: FixedLengthRecordDataset(path, 2, 1, 1, 9),
    ),
    "rows": (ROWS, lambda path: CsvDataset(path, [np.int64, bytes], header=True, buffer_size=40)),
    "rows beside rows that fail": (
        b"".join(b"%d\n" % i if i % 4 else b"bad\n" for i in range(24)),
        lambda path: CsvDataset(path, [np.int64], buffer_size=30).ignore_errors(),
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_elements_of_other_formats(tmp_path, name):
    content, read = FORMATS[name]
    path = write(tmp_path, "a", content)
    states = resumed_everywhere(lambda: read(path).shuffle(25, seed=1), 6)
    assert not any(map(by_value, states))


def test_rows_that_fail_keep_their_places(tmp_path):
    path = write(tmp_path, "a.csv", FORMATS["rows beside rows that fail"][0])
    check_operator(lambda: CsvDataset(path, [np.int64], buffer_size=30).shuffle(10, seed=1))


def test_rows_of_parquet_files(tmp_path):
    table = pa.table({"x": np.arange(90), "s": [f"text {index}" for index in range(90)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    read = lambda: Dataset.from_parquet(str(tmp_path / "a.parquet"))
    states = resumed_everywhere(lambda: read().shuffle(40, seed=1), 11)
    assert not any(by_value(state) for state in states if list(states_in(state)))
    resumed_everywhere(lambda: read().skip(25).shuffle(40, seed=1), 20)


PASSED_ON = {
    "take and skip": lambda d: d.skip(5).take(30),
    "shard": lambda d: d.shard(3, 1),
    "filter": lambda d: d.filter(lambda record: len(record) % 2 == 0),
    "take_while": lambda d: d.take_while(lambda record: not record.startswith(b"1-20")),
    "repeat": lambda d: d.repeat(2),
    "ignore_errors": lambda d: d.ignore_errors(),
    "shuffle": lambda d: d.shuffle(5, seed=9),
    "unique": lambda d: d.unique(),
    "prefetch": lambda d: d.prefetch(4),
}


@pytest.mark.parametrize("optimized", [True, False], ids=["optimized", "as written"])
@pytest.mark.parametrize("op", PASSED_ON)
def test_ops_between_that_pass_elements_on(tmp_path, op, optimized):
    paths = write_records(tmp_path, [20, 25])

    def make():
        dataset = PASSED_ON[op](TFRecordDataset(paths, buffer_size=SMALL)).shuffle(13, seed=1)
        return dataset if optimized else unoptimized(dataset)

    (outer, *_) = states_in(resumed_everywhere(make, 8)[1])
    assert outer["files"] is not None
    assert not holds_bytes(outer)


MIXED = {
    "concatenate": lambda a, b: a.concatenate(b),
    "sample_from_datasets": lambda a, b: Dataset.sample_from_datasets([a, b], seed=3),
    "choose_from_datasets": lambda a, b: Dataset.choose_from_datasets([a, b], Dataset.range(2).repeat()),
}


@pytest.mark.parametrize("op", MIXED)
def test_elements_of_two_sources_of_files_and_of_files_among_others(tmp_path, op):
    paths, line = write_records(tmp_path, [20, 25]), write(tmp_path, "a", LINES)
    make = lambda: MIXED[op](TFRecordDataset(paths), TextLineDataset(line)).shuffle(30, seed=1)
    assert not any(map(by_value, resumed_everywhere(make, 7)))
    words = [b"word %d" % index for index in range(20)]
    made = Dataset.from_generator(lambda: iter(words), output_signature=Dataset.from_tensors(b"").element_spec)
    for first, second in ((TFRecordDataset(paths), made), (made, TFRecordDataset(paths))):
        states = resumed_everywhere(lambda first=first, second=second: MIXED[op](first, second).shuffle(30, seed=1), 7)
    assert any(part and part.get("others") for state in states for part in parts_of(state))


@pytest.mark.parametrize("arguments", [{}, {"num_parallel_calls": 3}, {"block_length": 3}], ids=str)
def test_files_side_by_side(tmp_path, arguments):
    paths = write_records(tmp_path, [20, 5, 0, 25])

    def make():
        names = Dataset.from_tensor_slices(paths)
        return names.interleave(TFRecordDataset, 3, **arguments).shuffle(17, seed=1)

    (refers,) = states_in(resumed_everywhere(make, 6)[3])
    assert refers["files"]["openings"]
    resumed_everywhere(lambda: TFRecordDataset(paths, num_parallel_reads=2).shuffle(17, seed=1).repeat(2), 12)


def test_datasets_inside_of_datasets(tmp_path):
    paths = write_records(tmp_path, [6, 5, 7, 8])

    def make():
        pairs = Dataset.from_tensor_slices(([paths[:2], paths[2:]], [3, 4]))
        inner = lambda name: TFRecordDataset(name).take(5).concatenate(TFRecordDataset(name).skip(5))
        middle = lambda names, k: Dataset.from_tensor_slices(names).interleave(inner).shuffle(k, seed=4)
        return pairs.flat_map(middle).shuffle(9, seed=1)

    states = resumed_everywhere(make, 4)
    outer = states[2]["operator"]["elements"]
    assert not holds_bytes([outer["parts"], outer["files"]["paths"]])
    assert [parent for parent, *_ in outer["files"]["openings"]][:2] == [-1, 0]


def test_a_state_is_small_and_does_not_change_with_what_comes_after_it(tmp_path):
    paths = write_records(tmp_path, [3000], size=3000)
    make = lambda: TFRecordDataset(paths).shuffle(1000, seed=1).repeat(2)
    iterator = iter(make())
    list(itertools.islice(iterator, 2500))
    state = iterator.state_dict()
    before = digest(state["operator"])
    assert len(pickle.dumps(state)) < 30_000
    again = iter(make())
    again.load_state_dict(state)
    assert list(again) == list(iterator)
    assert digest(state["operator"]) == before
    assert not holds_bytes([elements["parts"] for elements in states_in(state)])


def test_elements_that_are_made_are_saved_by_value(tmp_path):
    paths = write_records(tmp_path, [30])
    make = lambda: TFRecordDataset(paths).map(bytes.upper).shuffle(10, seed=1)
    states = resumed_everywhere(make, 5)
    assert all(elements["files"] is None for state in states for elements in states_in(state))


# What downstream ops are told


# Changed files


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Path.unlink, ["FileNotFoundError", "Restore the file", "TFRecordDataset"]),
        (lambda path: os.truncate(path, path.stat().st_size // 8), ["byte"]),
        (lambda path: os.truncate(path, 0), ["ends before"]),
        (lambda path: path.write_bytes(path.read_bytes()[: 300 * 60 : -1]), ["byte"]),
    ],
    ids=["gone", "cut short", "empty", "other bytes"],
)
def test_a_file_that_changed_is_refused_and_the_iterator_goes_on_as_before(tmp_path, compression, change, words):
    (path,) = write_records(tmp_path, [300], compression)
    make = lambda: TFRecordDataset(path, compression, SMALL).shuffle(100, seed=1)
    saved, iterator, other = (iter(make()) for _ in range(3))
    for each in (saved, saved, saved, iterator, other):
        next(each)
    state = saved.state_dict()
    content = Path(path).read_bytes()
    change(Path(path))
    with pytest.raises(StateError) as caught:
        iterator.load_state_dict(state)
    assert all(word in str(caught.value) for word in [path, *words])
    Path(path).write_bytes(content)
    assert outcomes(iterator) == outcomes(other)
    iterator.load_state_dict(state)
    assert outcomes(iterator) == outcomes(saved)


def test_a_file_with_another_content_is_refused(tmp_path):
    path = write(tmp_path, "a", LINES * 5)
    make = lambda: TextLineDataset(path, buffer_size=64).shuffle(100, seed=1)
    iterator = iter(make())
    next(iterator)
    state = iterator.state_dict()
    write(tmp_path, "a", b"a line more\n" + LINES * 5)
    with pytest.raises(StateError, match=f"{path}.*a different element is there now"):
        iter(make()).load_state_dict(state)


# States of another pipeline


@pytest.fixture
def saved(tmp_path):
    """Return the state of a shuffle over two files, and a pipeline that loads it."""
    paths = write_records(tmp_path, [40, 40])

    def make():
        names = Dataset.from_tensor_slices(paths)
        return names.flat_map(lambda name: TFRecordDataset(name, buffer_size=SMALL)).shuffle(60, seed=1)

    iterator = iter(make())
    next(iterator)
    state = iterator.state_dict()
    iterator.close()

    def load(change):
        changed = copy.deepcopy(state)
        change(changed["operator"]["elements"])
        changed = resealed(changed)
        fresh = iter(make())
        fresh.load_state_dict(changed)
        return list(fresh)

    assert len(load(lambda _: None)) == 79
    return load


HUGE = 1 << 60


def put(*path):
    *steps, last, value = path

    def change(elements):
        for step in steps:
            elements = elements[step]
        elements[last] = value(elements[last]) if callable(value) else value

    return change


WRONG = {
    "no files": put("files", None),
    "no paths": put("files", "paths", []),
    "another path": put("files", "paths", 0, 2, "/nowhere/to/be/found"),
    "a path that is no text": put("files", "paths", 0, 2, 7),
    "another node": put("files", "paths", 0, 1, 5),
    "another dataset": put("files", "paths", 0, 0, 99),
    "a dataset before the first": put("files", "paths", 0, 0, -7),
    "a dataset inside of itself": put("files", "openings", 0, 0, 0),
    "another function": put("files", "openings", 0, 1, 3),
    "no argument": put("files", "openings", 0, 2, None),
    "more elements": put("parts", 0, "referred", HUGE),
    "fewer elements": put("parts", 0, "referred", 3),
    "no elements": put("parts", 0, "referred", 0),
    "elements that are no number": put("parts", 0, "referred", "9"),
    "no marks": put("files", "marks", {}),
    "marks of nothing": put(
        "files", "marks", {key: np.zeros(0, int) for key in ("file", "element", "offset", "number")}
    ),
    "marks far behind": put("files", "marks", "element", lambda v: v.astype(np.int64) + HUGE),
    "marks before the beginning": put("files", "marks", "offset", lambda v: v.astype(np.int64) - HUGE),
    "marks behind the end": put("files", "marks", "offset", lambda v: v.astype(np.int64) + HUGE),
    "marks between records": put("files", "marks", "offset", lambda v: v.astype(np.int64) + 1),
    "marks in no order": put("files", "marks", "file", lambda v: v[::-1].copy()),
    "elements before": put("files", "element", lambda v: v.astype(np.int64) - 1000),
    "elements behind": put("files", "element", lambda v: v.astype(np.int64) + 1000),
    "elements far behind": put("files", "element", lambda v: v.astype(np.int64) + HUGE),
    "other elements": put("files", "element", lambda v: v[::-1].copy()),
    "elements that are fractions": put("files", "element", lambda v: v.astype(float)),
    "elements in a table": put("files", "element", lambda v: v[:, None]),
    "files that are not there": put("files", "file", lambda v: v + 9),
    "a digest of another": put("files", "digests", 0, 1, "00"),
    "a digest of none": put("files", "digests", 0, 0, HUGE),
    "no digests": put("files", "digests", None),
    "no parts": put("parts", None),
    "an exception for a buffer": put("parts", 0, {"error": "OSError"}),
    "no part": put("parts", lambda v: v[:0]),
}


@pytest.mark.parametrize("what", WRONG)
def test_references_that_are_wrong(saved, what):
    with pytest.raises(StateError):
        saved(WRONG[what])

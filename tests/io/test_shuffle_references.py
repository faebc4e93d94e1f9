"""Tests that a shuffle over files saves the positions of its elements instead of the elements."""

import copy
import itertools
import os
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dataset import CsvDataset, Dataset, FixedLengthRecordDataset, StateError, TextLineDataset, TFRecordDataset
from dataset.runtime.state.saved_chunks import digest
from dataset.testing import outcomes
from support.pipelines import unoptimized
from support.resuming import assert_from, from_json, interrupted, loaded, resealed
from support.states import rest_of, state_after
from support.tfrecord_files import COMPRESS, frames

SMALL = 128  # the size of a block in bytes: a few records


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


def records(files, kind="plain", **how):
    return TFRecordDataset(files.parts(kind), {"plain": ""}.get(kind, kind.upper()), SMALL, **how)


def lines(files):
    return TextLineDataset(files.parts("text"), buffer_size=20)


def rows(files):
    return CsvDataset(files.parts("named"), [np.int64, np.float64, bytes], buffer_size=40)  # the header of each fails


def names(files):
    return Dataset.from_tensor_slices(files.parts("plain"))


def inside_of_each_other(files):
    pairs = Dataset.from_tensor_slices(([files.parts("plain")[:2], files.parts("plain")[1:]], [3, 4]))
    inner = lambda name: TFRecordDataset(name).take(5).concatenate(TFRecordDataset(name).skip(5))
    return pairs.flat_map(lambda some, k: Dataset.from_tensor_slices(some).interleave(inner).shuffle(k, seed=4))


JOINS = {
    "concatenate": lambda a, b: a.concatenate(b),
    "sample_from_datasets": lambda a, b: Dataset.sample_from_datasets([a, b], seed=3),
    "choose_from_datasets": lambda a, b: Dataset.choose_from_datasets([a, b], Dataset.range(2).repeat()),
}
REFERRED = {
    **{kind: partial(records, kind=kind) for kind in ("plain", "gzip", "zlib")},
    "lines": lines,
    "compressed lines": lambda files: TextLineDataset(files.parts("packed"), "GZIP", 20),
    "records of one length": lambda files: FixedLengthRecordDataset(files.parts("fixed"), 4, 4, buffer_size=5),
    "rows": lambda files: CsvDataset(files.parts("csv"), [np.int64, np.float64, bytes], buffer_size=40),
    "rows beside rows that fail": rows,
    "rows of Parquet files": lambda files: Dataset.from_parquet(files.parts("table")).skip(4),
    "take and skip": lambda files: records(files).skip(2).take(13),
    "shard": lambda files: records(files).shard(3, 1),
    "filter": lambda files: records(files).filter(lambda record: len(record) % 2 == 0),
    "take_while": lambda files: records(files).take_while(lambda record: not record.startswith(b"record 24")),
    "repeat": lambda files: records(files).repeat(2),
    "ignore_errors": lambda files: rows(files).ignore_errors(),
    "shuffle": lambda files: records(files).shuffle(5, seed=9),
    "unique": lambda files: records(files).unique(),
    "prefetch": lambda files: records(files).prefetch(4),
    **{name: lambda files, join=join: join(records(files), lines(files)) for name, join in JOINS.items()},
    "interleave": lambda files: names(files).interleave(TFRecordDataset, 3, block_length=2),
    "parallel interleave": lambda files: names(files).interleave(TFRecordDataset, 3, num_parallel_calls=3),
    "files side by side": partial(records, num_parallel_reads=2),
    "datasets inside of datasets": inside_of_each_other,
}


def resumed_everywhere(make):
    """Resume at places; return the parts of the states in which shuffles saved their elements."""
    found, states = interrupted(make(), range(0, 60, 4))
    for place, state in states.items():
        with loaded(make(), state) as iterator:
            assert_from(place, outcomes(iterator), found)
    return [part for state in states.values() for part in states_in(from_json(state))]


@pytest.mark.parametrize("optimized", [True, False], ids=["optimized", "as written"])
@pytest.mark.parametrize("name", REFERRED)
def test_elements_are_saved_as_references_to_files(files, name, optimized):
    def make():
        dataset = REFERRED[name](files).shuffle(9, seed=1)
        return dataset if optimized else unoptimized(dataset)

    states = resumed_everywhere(make)
    assert any(state["files"] for state in states)
    for state in states:
        assert not any(part is not None and ("columns" in part or part.get("others")) for part in state["parts"])
        assert not holds_bytes([state["parts"], (state["files"] or {}).get("paths")])


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_elements_of_files_among_others(tmp_path, join):
    path = write(tmp_path, "a", b"".join(b"line %d\n" % index for index in range(30)))
    words = [b"word %d" % index for index in range(20)]
    made = Dataset.from_generator(lambda: iter(words), output_signature=Dataset.from_tensors(b"").element_spec)
    for first, second in ((TextLineDataset(path), made), (made, TextLineDataset(path))):
        make = lambda first=first, second=second: join(first, second).shuffle(30, seed=1)
        assert any(part and part.get("others") for state in resumed_everywhere(make) for part in state["parts"])


def test_a_state_is_small_and_does_not_change_with_what_comes_after_it(tmp_path):
    paths = write_records(tmp_path, [3000], size=3000)
    make = lambda: TFRecordDataset(paths).shuffle(1000, seed=1).repeat(2)
    iterator = iter(make())
    list(itertools.islice(iterator, 2500))
    state = iterator.state_dict()
    before = digest(state["operator"])
    assert len(pickle.dumps(state)) < 30_000
    assert rest_of(make(), state) == list(iterator)
    assert digest(state["operator"]) == before


def test_elements_that_are_made_are_saved_by_value(files):
    make = lambda: records(files).map(bytes.upper).shuffle(10, seed=1)
    assert all(state["files"] is None for state in resumed_everywhere(make))


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


LINES = b"".join(b"line %d\n" % index for index in range(300))


def test_a_file_with_another_content_is_refused(tmp_path):
    path = write(tmp_path, "a", LINES)
    make = lambda: TextLineDataset(path, buffer_size=64).shuffle(100, seed=1)
    state = state_after(make(), 1)
    write(tmp_path, "a", b"a line more\n" + LINES)
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

    state = state_after(make(), 1)

    def load(change):
        changed = copy.deepcopy(state)
        change(changed["operator"]["held"]["elements"])
        return rest_of(make(), resealed(changed))

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
    "no elements": put("parts", 0, "referred", 0),
    "elements that are no number": put("parts", 0, "referred", "9"),
    "no marks": put("files", "marks", {}),
    "marks of nothing": put(
        "files", "marks", {key: np.zeros(0, int) for key in ("file", "element", "offset", "number")}
    ),
    "marks far behind": put("files", "marks", "element", lambda v: v.astype(np.int64) + HUGE),
    "marks before the beginning": put("files", "marks", "offset", lambda v: v.astype(np.int64) - HUGE),
    "marks between records": put("files", "marks", "offset", lambda v: v.astype(np.int64) + 1),
    "marks in no order": put("files", "marks", "file", lambda v: v[::-1].copy()),
    "elements before": put("files", "element", lambda v: v.astype(np.int64) - 1000),
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
}


@pytest.mark.parametrize("what", WRONG)
def test_references_that_are_wrong(saved, what):
    with pytest.raises(StateError):
        saved(WRONG[what])

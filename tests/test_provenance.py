"""Tests of provenance: the reported records are those that each element was made from.

The elements contain their own names: a record of a file is the text ``path:number``, and an element that is made from
several records is an array of such texts, in any pipeline.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataset
from chains.draw import draw_chain
from dataset import (
    CsvDataset,
    Dataset,
    Provenance,
    SourceRecord,
    SqlDataset,
    TFRecordDataset,
    checkpoint,
)
from dataset.dataset import tracing_iterator
from dataset.testing import assert_elements_equal, outcomes
from support.folders import flip
from support.pipelines import with_options
from support.resuming import advanced, examples, from_json, to_json
from support.states import rest_of, state_after
from support.tfrecord_files import write_records

COUNT = 12  # records in each file


@pytest.fixture(scope="session")
def paths(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("records")
    found = [str(folder / f"{part}.tfrecord") for part in range(3)]
    for path in found:
        write_records(path, [f"{path}:{number}".encode() for number in range(COUNT)])
    return found


def traced(data: Dataset[Any], state: Any = None) -> Any:
    """Return an iterator that records provenance, from the start or from a state."""
    iterator = iter(with_options(data, provenance=True))
    if state is not None:
        iterator.load_state_dict(state)
    return iterator


def names_in(element: Any) -> list[str]:
    return [name.decode() for name in np.atleast_1d(np.asarray(element, object)).ravel()]


def names_of(provenance: Provenance) -> list[str]:
    return [f"{record.file}:{record.number}" for record in provenance]


def check(iterator: Any, *, limit: int = 10**6, shown: Callable[[list[str]], list[str]] = list) -> int:
    """Check the provenance of all elements, and return how many there were. ``shown`` says what of the names counts."""
    elements = 0
    for element in itertools.islice(iterator, limit):
        assert shown(names_of(iterator.provenance())) == shown(names_in(element))
        elements += 1
    return elements


# Random pipelines


def same(x: Any) -> Any:
    return x


def failing(x: Any) -> Any:
    if names_in(x)[0].endswith(("3", "7")):
        raise ValueError("bad")
    return x


def is_even(x: Any) -> bool:
    return int(names_in(x)[0][-1]) % 2 == 0


Step = Callable[[random.Random, Any], Any]

ANY: list[Step] = [
    lambda r, d: d.shuffle(r.choice([1, 2, 5, 40]), seed=r.randrange(9)),
    lambda r, d: d.map(same, num_parallel_calls=r.choice([None, 1, 3])),
    lambda r, d: d.filter(is_even),
    lambda r, d: d.map(failing, num_parallel_calls=r.choice([None, 2])).ignore_errors(),
    lambda r, d: d.map(same).map(same).filter(is_even),
    lambda r, d: d.take(r.randrange(40)),
    lambda r, d: d.skip(r.randrange(5)),
    lambda r, d: d.take_while(lambda x: not names_in(x)[0].endswith("11")),
    lambda r, d: d.repeat(2),
    lambda r, d: d.prefetch(r.choice([1, 4])),
    lambda r, d: d.shard(2, r.randrange(2)),
    lambda r, d: d.enumerate().map(lambda i, x: x),
    lambda r, d: d.scan(0, lambda state, x: (state + 1, x)),
    lambda r, d: d.random_map(lambda generator, x: x, seed=1),
    lambda r, d: d.map(lambda x: {"a": x, "b": 1}).select("a"),
]
CACHES: list[Step] = [
    lambda r, d: d.cache().repeat(2),
    lambda r, d: d.shuffle(5, seed=2).cache().shuffle(7, seed=1).repeat(2),
]
TWICE: list[Step] = [  # which of two passes over one cache is kept may be left to chance
    lambda r, d: d.concatenate(d.take(3)),
    lambda r, d: Dataset.sample_from_datasets([d, d.skip(2)], seed=r.randrange(9)),
    lambda r, d: Dataset.choose_from_datasets([d, d.skip(1)], Dataset.range(2).repeat(9), stop_on_empty_dataset=False),
]
SINGLE: list[Step] = [
    lambda r, d: d.batch(r.choice([1, 2, 5]), drop_remainder=r.random() < 0.5),
    lambda r, d: d.map(same).batch(3, num_parallel_calls=2),
    lambda r, d: d.padded_batch(3),
    lambda r, d: d.window(3, shift=r.choice([1, 3, 4]), drop_remainder=True).flat_map(lambda w: w.batch(3)),
    lambda r, d: d.group_by_window(lambda x: int(x[-1:]) % 3, lambda key, window: window.batch(4), 4),
    lambda r, d: d.bucket_by_sequence_length(lambda x: int(x[-1:]), [3, 6], [2, 3, 4]),
]
MANY: list[Step] = [
    lambda r, d: d.unbatch(),
    lambda r, d: d.unbatch().batch(4),
    lambda r, d: d.rebatch(r.choice([1, 3, 4])),
]


def draw(rng: random.Random, paths: list[str]) -> Dataset[Any]:
    """Return a random pipeline over the files."""
    files = Dataset.from_tensor_slices(paths)
    calls = rng.choice([None, 2])
    found: Any = rng.choice(
        [
            lambda: TFRecordDataset(paths),
            lambda: TFRecordDataset(paths, index=True),
            lambda: TFRecordDataset(paths, num_parallel_reads=2),
            lambda: files.shuffle(3, seed=1).interleave(TFRecordDataset, cycle_length=2, num_parallel_calls=calls),
        ]
    )()
    single, may_read_twice = True, True
    for _ in range(rng.randint(1, 5)):
        grouping = SINGLE if single else MANY
        table = rng.choice([ANY, CACHES, grouping, grouping, TWICE if may_read_twice else ANY])
        step = rng.choice(table)
        found = step(rng, found)
        may_read_twice = may_read_twice and table is not CACHES
        single = step is MANY[0] if table is grouping else single
    return found


Draw = Callable[[random.Random, list[str]], Dataset[Any]]


def check_resumed(draw: Draw, check: Callable[..., int], seed: int, paths: list[str]) -> None:
    """Check the records of a random pipeline, and those after a state at a random place."""
    made = lambda state=None: traced(draw(random.Random(seed), paths), state)
    count = check(made())
    place = random.Random(-seed).randint(0, count)
    stopped = made()
    check(stopped, limit=place)
    assert check(made(from_json(to_json(stopped.state_dict())))) == count - place


@examples(25)
@given(seed=st.integers(0, 10**6))
def test_the_records_are_those_in_the_elements_before_and_after_a_resume(paths, seed):
    check_resumed(draw, check, seed, paths)


@examples(20)
@given(seed=st.integers(0, 10**6))
def test_records_lists_those_of_the_steps_after_any_state(paths, seed):
    elements = list(draw(random.Random(seed), paths))
    place = random.Random(-seed).randint(0, len(elements))
    stopped = iter(draw(random.Random(seed), paths))
    advanced(stopped, place)
    found = checkpoint.records(stopped.state_dict(), draw(random.Random(seed), paths), 10**6)
    assert list(found) == list(range(place, len(elements)))
    for step, records in found.items():
        if records.is_complete:
            assert names_of(records) == names_in(elements[step])


@examples(12)
@given(seed=st.integers(0, 10**6))
def test_recording_changes_no_element_and_no_state(built, seed):
    rng = random.Random(seed)
    chain = draw_chain(rng)
    if not chain.is_repeatable:
        return

    made = lambda: built(chain)
    expected = outcomes(iter(made()))
    assert_elements_equal(outcomes(tracing_iterator(made())), expected)
    place = rng.randint(0, len(expected))
    for save, load in ((iter, tracing_iterator), (tracing_iterator, iter)):
        stopped, resumed = save(made()), load(made())
        advanced(stopped, place)
        resumed.load_state_dict(from_json(to_json(stopped.state_dict())))
        assert_elements_equal(outcomes(resumed), expected[place:])


# Rows of tokens


def sequence(x: Any) -> Any:
    """Return 1 to 7 tokens, all the name of the record."""
    return np.array([x] * (1 + int(x.rpartition(b":")[2]) * 5 % 7), object)


TOKENS: list[Step] = [
    lambda r, d: d.pack(r.choice([3, 5, 20]), window=r.choice([1, 6, 50])).select(0),
    lambda r, d: d.pack(9, window=10, shuffle=True, seed=r.randrange(9), max_sequences=2).select(0),
    lambda r, d: d.pack(3, window=10, too_long=r.choice(["drop", "truncate"]), boundaries="lengths").select(0),
    lambda r, d: d.concat_split(r.choice([1, 4, 5, 40]), drop_remainder=r.random() < 0.5),
    lambda r, d: d.map(same, num_parallel_calls=2, deterministic=False).concat_split(4),
    lambda r, d: d.batch_by_tokens(r.choice([7, 20]), window=r.choice([3, 20]), seed=r.randrange(9)),
    lambda r, d: d.batch_by_tokens(20, layout="packed", length=len, seed=r.randrange(9)).select(0),
    lambda r, d: d.batch_by_tokens(20, layout="ragged", shuffle=False).map(lambda rows: rows.values),
    # Any order gives as many rows of one sequence each; of several, it depends on the order.
    lambda r, d: d.map(same, num_parallel_calls=2, deterministic=False).pack(8, window=5, max_sequences=1).select(0),
]


def drawn_rows(rng: random.Random, paths: list[str]) -> Dataset[Any]:
    data: Any = TFRecordDataset(paths)
    if rng.random() < 0.5:
        data = data.shuffle(rng.choice([5, 40]), seed=1).repeat(rng.choice([1, 2]))
    if rng.random() < 0.3:
        data = data.map(failing).ignore_errors()
    data = rng.choice(TOKENS)(rng, data.map(sequence))
    if rng.random() < 0.3:
        data = data.prefetch(2)
    return data


def distinct(names: list[str]) -> list[str]:
    """Return the names without their order and without that of padding."""
    return sorted(set(names) - {""})


@examples(25)
@given(seed=st.integers(0, 10**6))
def test_the_records_of_a_row_are_those_whose_tokens_it_holds_before_and_after_a_resume(paths, seed):
    check_resumed(drawn_rows, partial(check, shown=distinct), seed, paths)


def test_the_records_of_a_row_are_in_its_order_and_come_once(paths):
    data = TFRecordDataset(paths[:1]).map(lambda x: {"ids": np.zeros(3, np.int64), "name": x})
    iterator = traced(data.pack(8, window=5))
    for row in iterator:
        assert names_of(iterator.provenance()) == names_in(row["name"])
    batches = traced(data.batch_by_tokens(9))
    for batch in batches:
        assert names_of(batches.provenance()) == names_in(batch["name"])
    rows = traced(data.select("ids").concat_split(5, separator=1))
    found = [[record.number for record in rows.provenance()] for _ in rows]
    assert found[:4] == [[0, 1], [1, 2], [2, 3], [3, 4]]  # the separator is the fourth token of each record
    assert sorted({number for row in found for number in row}) == list(range(COUNT))


def test_rows_after_a_state_without_provenance_are_known_but_for_tokens_that_it_holds(paths):
    data = TFRecordDataset(paths).map(sequence)
    for made, unknown in ((data.pack(9, window=5), 0), (data.batch_by_tokens(9), 0), (data.concat_split(6), 1)):
        found = checkpoint.records(state_after(made, 4), made, 10**6)
        assert len(found) == len(list(made)) - 4
        assert sum(not records.is_complete for records in found.values()) == unknown


# What each source reports


def only(data: Dataset[Any], index: int = 0) -> SourceRecord:
    """Return the record of the element at an index."""
    iterator = traced(data)
    for _ in range(index + 1):
        next(iterator)
    (record,) = iterator.provenance()
    return record


def numbers(data: Dataset[Any], state: Any = None) -> list[tuple[str | None, int | None]]:
    iterator = traced(data, state)
    return [(record.file, record.number) for _ in iterator for record in iterator.provenance()]


@pytest.mark.parametrize(
    ("chain", "name", "expected"),
    [
        ("TextLineDataset(files.parts('text')[0]).batch(2)", "text-0.txt", [0, 1, 2, 3, 4]),
        ("FixedLengthRecordDataset(files.parts('fixed')[0], 4, 4)", "fixed-0.bin", [0, 1, 2, 3, 4]),
        ("Dataset.from_parquet(files.parts('table')[1], shard=(2, 1)).skip(1)", "table-1.parquet", [3]),
    ],
)
def test_readers_report_path_and_number(chain, name, expected, built, case_files):
    assert numbers(built(chain)) == [(str(case_files / name), number) for number in expected]


def test_csv_files_report_the_line_on_which_a_row_ends_also_after_a_resume(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('n,text\n0,a\n1,"two\nlines"\n2,c\n3,d\n')
    data = CsvDataset(str(path), [np.int64, bytes], header=True)
    expected = [(str(path), line) for line in (1, 3, 4, 5)]
    assert numbers(data.batch(3)) == expected
    assert numbers(data, state_after(data, 2)) == expected[2:]


def test_rows_of_json_lines_report_their_lines_and_a_skip_list_removes_these_rows(tmp_path):
    lines = ["", '{"n": 1}', "  ", '{"n": 3}', "not JSON", '{"n": 5}', "", "", '{"n": 8}']
    path, skips = tmp_path / "a.jsonl", tmp_path / "skip"
    path.write_text("\n".join(lines))
    data = Dataset.from_json_lines(str(path), {"n": np.int64}).ignore_errors()
    expected = [(str(path), line) for line in (1, 3, 5, 8)]
    assert numbers(data.batch(3)) == expected
    assert numbers(data, state_after(data, 2)) == expected[2:]
    skips.write_text(json.dumps({"file": str(path), "number": 5}))
    assert [int(row["n"]) for row in data.skip_records(skips)] == [1, 3, 8]


def test_damaged_records_that_are_skipped_keep_their_numbers(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_records(path, [b"zero", b"one", b"two"])
    flip(path, 12 + 20)  # a byte of the second record
    assert numbers(TFRecordDataset(str(path), on_error="skip")) == [(str(path), 0), (str(path), 2)]


def test_arrays_generators_and_ranges_report_numbers(tmp_path):
    letters = Dataset.from_tensor_slices([b"a", b"b", b"c", b"d"], name="letters")
    assert only(letters, 2) == SourceRecord("letters", None, 2, 0)
    assert only(Dataset.from_tensors(5)).number == 0
    assert only(Dataset.range(10, 20, 3), 1) == SourceRecord("range", None, 13, 0)
    assert only(Dataset.counter(5, 2), 3).number == 11
    assert only(Dataset.random(seed=1), 3) == SourceRecord("random", None, 3, 0)
    assert only(Dataset.from_generator(lambda: iter("abc")), 2) == SourceRecord("from_generator", None, 2, 0)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(5)])
    connection.close()
    assert only(SqlDataset("sqlite", str(tmp_path / "a.db"), "SELECT x FROM t", (np.int64,)), 4).number == 4


def test_epochs_are_counted_through_all_repetitions():
    letters = Dataset.from_tensor_slices([b"a", b"b"])

    def epochs(data: Dataset[Any], state: Any = None) -> list[int | None]:
        iterator = traced(data, state)
        return [record.epoch for _ in iterator for record in iterator.provenance()]

    assert epochs(letters.repeat(3), state_after(letters.repeat(3), 3)) == [1, 2, 2]
    assert epochs(letters.map(same).repeat(2).repeat(2)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert epochs(letters.filter(lambda x: True).cache().map(same).repeat(3)) == [0, 0, 1, 1, 2, 2]
    assert sorted(epochs(letters.repeat(2).shuffle(4, seed=1))) == [0, 0, 1, 1]
    assert epochs(letters.repeat(2).concatenate(letters).repeat(2)) == [0, 0, 1, 1, 0, 0, 2, 2, 3, 3, 1, 1]
    assert epochs(letters.take(0).concatenate(letters.take(1)).repeat(2)) == [0, 1]
    nested = letters.flat_map(lambda x: Dataset.from_tensor_slices([x]).repeat(2)).repeat(2)
    assert epochs(nested) == [0, 1, 0, 1, 2, 3, 2, 3]
    iterator = traced(nested)
    assert [iterator.provenance()[0].within[0].epoch for _ in iterator] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_mixes_report_the_index_of_the_input():
    a, b = Dataset.from_tensor_slices([b"a"] * 3, name="a"), Dataset.from_tensor_slices([b"b"] * 3, name="b")
    for mixed in (
        Dataset.sample_from_datasets([a, b], seed=1),
        Dataset.choose_from_datasets([a, b], Dataset.range(2).repeat(3)),
        a.concatenate(b),
    ):
        for element in (iterator := traced(mixed)):
            (record,) = iterator.provenance()
            assert (record.source.encode(), record.inputs) == (element, ((0,) if element == b"a" else (1,)))
    outer = Dataset.sample_from_datasets([a, Dataset.sample_from_datasets([a, b], seed=1)], seed=2)
    iterator = traced(outer)
    assert {iterator.provenance()[0].inputs for _ in iterator} == {(0,), (1, 0), (1, 1)}


def test_pairs_report_both_records_once_also_when_they_are_divided(paths):
    first, second = TFRecordDataset(paths[:1]), TFRecordDataset(paths[1:2])
    pairs = Dataset.zip(first, second).map(lambda a, b: np.array([a, b], object))
    assert check(traced(pairs.shuffle(5, seed=1).batch(4).unbatch().unbatch().batch(3))) == 8
    batches = traced(Dataset.zip(first.batch(2), second.batch(2)).map(lambda a, b: np.append(a[:1], b)).unbatch())
    next(batches)
    assert len(batches.provenance()) == 4  # any of those of the pair, whose parts are not known any more


def test_a_dataset_that_a_function_returned_reports_the_records_of_the_argument(paths):
    data = TFRecordDataset(paths[:1]).skip(2).flat_map(lambda x: Dataset.from_tensor_slices([b"a", b"b"], name="rows"))
    record = only(data, 1)
    assert record == SourceRecord("rows", None, 1, 0, (), (SourceRecord("TFRecordDataset", paths[0], 2, 0),))
    assert str(record) == f"rows:1, of {paths[0]}:2"


def test_elements_of_unknown_origin_are_reported_as_such():
    iterator = traced(Dataset.range(4).map(same).batch(2).flat_map(Dataset.from_tensor_slices))
    next(iterator)
    assert [record.number for record in iterator.provenance()[0].within] == [0, 1]
    unknown = SourceRecord(None)
    assert str(unknown) == "unknown"
    assert not Provenance([unknown]).is_complete


def test_elements_that_a_state_without_provenance_holds_are_unknown_but_for_records_in_their_files(paths):
    shuffled = TFRecordDataset(paths).map(same).shuffle(10, seed=1)
    batched = Dataset.from_tensor_slices(paths).interleave(TFRecordDataset).shuffle(10, seed=1).batch(2)
    for data, unknown in ((shuffled, 9), (batched, 0)):  # the buffer, with one empty slot
        stopped = iter(data)
        advanced(stopped, 3)
        found = checkpoint.records(stopped.state_dict(), data, 10**6)
        assert sum(not records.is_complete for records in found.values()) == unknown
        for records, element in zip(found.values(), stopped, strict=True):
            assert names_of(records) == names_in(element) or not records.is_complete
    state = state_after(shuffled, 3)
    whole = checkpoint.records(state, shuffled, range(3 * COUNT), from_start=True)
    assert all(records.is_complete for records in whole.values())
    found = checkpoint.records(state, shuffled, 10**6)
    assert {step: records for step, records in found.items() if records.is_complete}.items() <= whole.items()


def test_listing_records_changes_no_later_order(paths):
    def orders(data: Dataset[Any]) -> list[list[bytes]]:
        return [list(data) for _ in range(3)]

    data = TFRecordDataset(paths).shuffle(50, seed=1)
    state = state_after(data, 1)
    for from_start in (False, True):
        checkpoint.records(state, data, 2, from_start=from_start)
    fresh = TFRecordDataset(paths).shuffle(50, seed=1)
    next(iter(fresh))
    assert orders(data) == orders(fresh)


def test_a_cache_that_was_filled_without_provenance_reports_its_own_rows(paths):
    data = TFRecordDataset(paths[:1]).cache()
    list(data)
    assert only(data, 5) == SourceRecord("cache", None, 5, 0)
    state = iter(data).state_dict()
    assert names_of(checkpoint.records(state, data)[0]) == [f"{paths[0]}:0"]


def test_worker_processes_keep_the_records(paths):
    how = {"num_parallel_calls": 2, "executor": "process"}
    data = TFRecordDataset(paths).map(same, **how).random_map(lambda rng, x: x, **how)
    assert check(traced(data.batch(5))) == 8


def test_converted_elements_keep_the_records(paths):
    pytest.importorskip("jax")
    data = TFRecordDataset(paths[:1]).map(len).batch(3)
    iterator = iter(with_options(data, provenance=True).to_jax(prefetch=2))
    next(iterator)
    next(iterator)
    assert names_of(iterator.provenance()) == [f"{paths[0]}:{number}" for number in (3, 4, 5)]


# The interface


def test_provenance_must_be_recorded():
    iterator = iter(Dataset.range(3))
    next(iterator)
    with pytest.raises(ValueError, match=r"options\.provenance = True"):
        iterator.provenance()
    with pytest.raises(ValueError, match=r"call next\(\) first"):
        traced(Dataset.range(3)).provenance()


def test_provenance_is_a_sequence_that_json_can_write(paths):
    iterator = traced(TFRecordDataset(paths).batch(3))
    next(iterator)
    found = iterator.provenance()
    assert found[1:].to_list() == found.to_list()[1:]
    assert found.to_list()[1] == {
        "source": "TFRecordDataset",
        "file": paths[0],
        "number": 1,
        "epoch": 0,
        "inputs": [],
        "within": [],
    }
    assert str(found).splitlines() == [f"{paths[0]}:{number}" for number in range(3)]
    assert hash(found) == hash(found[:])


def test_records_of_chosen_steps(paths):
    data = TFRecordDataset(paths).batch(4)
    state = state_after(data, 1)
    assert list(checkpoint.records(state, data)) == [1]
    found = checkpoint.records(checkpoint.to_json(state), data, [7, 3, 20])
    assert list(found) == [3, 7]
    assert names_of(found[3]) == [f"{paths[1]}:{number}" for number in range(4)]
    with pytest.raises(ValueError, match="step 0 is before the state, which was saved after 1 steps"):
        checkpoint.records(state, data, [0])


def test_a_failing_step_has_no_records(paths):
    data = TFRecordDataset(paths[:1]).map(failing)
    found = checkpoint.records(iter(data).state_dict(), data, 5)
    assert [len(records) for records in found.values()] == [1, 1, 1, 0, 1]


# Skip lists


def written(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("index", [False, True])
def test_named_records_are_left_out(paths, tmp_path, index):
    listed = {(paths[0], 0), (paths[0], COUNT - 1), (paths[2], 5)}
    lines = [f'{{"file": "{path}", "number": {number}}}' for path, number in listed]
    data = TFRecordDataset(paths, index=index).skip_records(written(tmp_path / "skip.jsonl", *lines, ""))
    expected = [f"{path}:{number}" for path in paths for number in range(COUNT) if (path, number) not in listed]
    assert [x.decode() for x in data] == expected
    assert [x.decode() for x in data.batch(5).unbatch().repeat(2)] == 2 * expected
    assert check(traced(data.batch(4))) == 9


def test_a_provenance_list_is_a_skip_list(paths, tmp_path):
    data = TFRecordDataset(paths).shuffle(9, seed=4).batch(4)
    bad = checkpoint.records(iter(data).state_dict(), data, [2])[2]
    path = written(tmp_path / "skip.jsonl", *map(json.dumps, bad.to_list()))
    without = TFRecordDataset(paths).skip_records(path)
    assert set(names_of(bad)) & {x.decode() for x in without} == set()
    assert len(list(without)) == 3 * COUNT - 4


def test_records_without_a_file_are_named_by_source_and_by_the_element_that_they_come_from(tmp_path):
    rows = Dataset.from_tensor_slices([b"a", b"b"], name="outer").flat_map(
        lambda x: Dataset.from_tensor_slices([x + b"0", x + b"1"], name="inner")
    )
    whole = written(tmp_path / "1", '{"source": "inner", "number": 1}')
    assert list(rows.skip_records(whole)) == [b"a0", b"b0"]
    line = '{"source": "inner", "number": 1, "within": [{"source": "outer", "number": 0}]}'
    assert list(rows.skip_records(written(tmp_path / "2", line))) == [b"a0", b"b0", b"b1"]
    assert list(rows.skip_records(written(tmp_path / "3", '{"source": "outer", "number": 1}'))) == [b"a0", b"a1"]
    mixed = Dataset.from_tensor_slices([b"a"], name="x").concatenate(Dataset.from_tensor_slices([b"b"], name="x"))
    line = '{"source": "x", "number": 0, "inputs": [1]}'
    assert list(mixed.skip_records(written(tmp_path / "4", line))) == [b"a"]


def test_records_can_be_added_to_the_list_before_a_resume(paths, tmp_path):
    path = written(tmp_path / "skip.jsonl", "")
    make = lambda: TFRecordDataset(paths).skip_records(path).map(same).batch(4)
    state = state_after(make(), 1)
    written(tmp_path / "skip.jsonl", f'{{"file": "{paths[0]}", "number": 5}}')
    assert names_in(rest_of(make(), state)[0]) == [f"{paths[0]}:{number}" for number in (4, 6, 7, 8)]


@pytest.mark.parametrize("filename", [True, False])
def test_records_cannot_be_left_out_after_a_cache_that_does_not_know_them(paths, tmp_path, filename):
    data = TFRecordDataset(paths).cache(str(tmp_path / "cache") if filename else "")
    if not filename:
        list(data)
    data = data.skip_records(written(tmp_path / "skip.jsonl", f'{{"file": "{paths[0]}", "number": 5}}'))
    with pytest.raises(dataset.SpecError, match=r"it comes from cache\(\).*use skip_records\(\) before cache"):
        next(iter(data))


def test_names_that_match_nothing_are_logged_after_a_whole_pass(paths, tmp_path, caplog):
    lines = ['{"file": "/nowhere/a.tfrecord", "number": 1}', f'{{"file": "{paths[0]}", "number": 3}}']
    data = TFRecordDataset(paths).skip_records(written(tmp_path / "skip.jsonl", *lines))
    with caplog.at_level(logging.WARNING, "dataset"):
        next(iter(data))
        assert not caplog.records
        list(data.repeat(2))
    (record,) = caplog.records
    assert "1 of the 2 listed records are not among the elements here, such as /nowhere/a.tfrecord:1" in record.message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[1]", "expected an object"),
        ('{"file": "a"}', '"number" must be an integer, got None'),
        ('{"number": 1}', '"file" must be a path, or absent if "source" names a reader'),
        ('{"source": "a", "number": 1, "inputs": 2}', '"inputs" must be a list'),
    ],
)
def test_a_line_that_names_no_record_is_an_error(tmp_path, line, words):
    with pytest.raises(ValueError, match=r"line 1 of .*skip\.jsonl does not name a record") as caught:
        Dataset.range(3).skip_records(written(tmp_path / "skip.jsonl", line))
    assert words in str(caught.value)

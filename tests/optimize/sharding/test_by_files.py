"""Files dealt out to processes: who opens which, and how all come to equally many elements."""

import itertools
from collections import Counter

import numpy as np
import pytest

from dataset import Dataset, TextLineDataset
from dataset.io.text.lines_source import TextLine
from dataset.testing import check_operator, outcomes

SIZES = {"even": [3, 3, 3, 3], "uneven": [5, 1, 4, 2, 7], "gaps": [0, 3, 1, 0, 2, 2], "one": [4, 0, 0]}


@pytest.fixture
def write(tmp_path):
    """Writes text files of so many lines each, and returns their pattern."""

    def write(*sizes, line="1"):
        for index, size in enumerate(sizes):
            (tmp_path / f"{index}.txt").write_text(f"{line}\n" * size)
        return str(tmp_path / "*.txt")

    return write


@pytest.fixture
def lines(write):
    """The same, and returns the dataset of their lines."""
    return lambda *sizes, **how: TextLineDataset(Dataset.list_files(write(*sizes, **how)))


@pytest.fixture(params=SIZES)
def files(request, tmp_path):
    """Text files of numbers from 0 on, a line for each."""
    numbers = itertools.count()
    for index, size in enumerate(SIZES[request.param]):
        (tmp_path / f"{index}.txt").write_text("".join(f"{next(numbers)}\n" for _ in range(size)))
    return str(tmp_path / "*.txt")


def number(line):
    return int(line) + 1


PIPELINES = {
    "lines": lambda names: TextLineDataset(names).map(number),
    "in parallel": lambda names: names.interleave(TextLineDataset, num_parallel_calls=2, deterministic=False).map(
        number
    ),
    "shuffled": lambda names: TextLineDataset(names).shuffle(4).map(number),
    "batches": lambda names: TextLineDataset(names).map(number).batch(2),
    "mapped inside": lambda names: names.flat_map(lambda name: TextLineDataset(name).map(number)).cache(),
}


def values(elements):
    return [int(x) for element in elements for x in np.atleast_1d(element)]


@pytest.mark.parametrize("remainder", ["drop", "pad", "keep"])
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("by", ["auto", "files", "elements"])
def test_every_record_is_read_by_one_process(files, pipeline, remainder, by):
    for world_size, shuffle in ((1, False), (2, True), (3, False), (3, True)):
        whole = PIPELINES[pipeline](Dataset.list_files(files, shuffle=shuffle))
        parts = [
            list(whole.shard_by_process(rank, world_size, remainder=remainder, by=by)) for rank in range(world_size)
        ]
        expected, found = Counter(values(whole)), Counter(values(itertools.chain(*parts)))
        assert len(set(map(len, parts))) == 1 or remainder == "keep"
        if remainder == "keep":
            assert found == expected
        elif remainder == "drop":
            assert found <= expected
        else:
            assert Counter({key: count for key, count in found.items() if key}) == expected


@pytest.mark.parametrize("pipeline", set(PIPELINES) - {"batches"})
def test_the_workers_of_each_process_share_its_records(files, pipeline):
    whole = PIPELINES[pipeline](Dataset.list_files(files))
    for world_size, workers in itertools.product((1, 2, 3), (1, 2, 4)):
        found = []
        for rank, worker in itertools.product(range(world_size), range(workers)):
            share = whole.shard_by_process(rank, world_size, remainder="keep")
            found += values(share.shard_by_process(worker, workers, remainder="keep", seed=rank))
        assert Counter(found) == Counter(values(whole))


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_keeps_the_contract_of_operators(write, remainder):
    numbers = TextLineDataset(Dataset.list_files(write(2, 5, 4), shuffle=False)).map(number)
    for rank in (0, 1):
        check_operator(lambda rank=rank: numbers.shard_by_process(rank, 2, remainder=remainder, by="files"))


@pytest.fixture
def opened(monkeypatch):
    """The names of the text files that are opened from now on."""
    names = []
    original = TextLine.open_file

    def open_file(self, path):
        names.append(path[-5])
        return original(self, path)

    monkeypatch.setattr(TextLine, "open_file", open_file)
    return names


def test_only_own_files_are_opened(lines, opened):
    numbers = lines(1, 1, 1, 1, 1).map(number)
    assert len(list(numbers.repeat().shard_by_process(1, 2).take(4))) == 4
    assert set(opened) == {"1", "3"}
    opened.clear()
    assert len(list(numbers.shard_by_process(0, 2, remainder="keep"))) == 3
    assert sorted(opened) == ["0", "2", "4"]


def test_records_are_counted_once_when_the_first_element_is_asked_for(write, lines, opened):
    calls = []
    share = lines(3, 1, line="7").map(lambda line: calls.append(line) or int(line)).batch(2).shard_by_process(0, 2)
    share.explain()
    assert share.cardinality() == -2
    iterator = iter(share)
    assert opened == []
    assert [batch.tolist() for batch in iterator] == [[7, 7]]
    assert sorted(opened) == ["0", "0", "1"]  # the other's to be counted
    assert len(calls) == 2
    opened.clear()
    assert len(list(share)) == 1
    assert opened == ["0"]
    write(3, 3, line="7")
    assert len(list(share)) == 2


def test_files_that_are_missing_are_errors_of_the_process_that_has_them(tmp_path):
    for index in (0, 1, 3):
        (tmp_path / f"{index}.txt").write_text("5\n6\n")
    names = [str(tmp_path / f"{index}.txt") for index in range(4)]
    shares = [TextLineDataset(names).shard_by_process(rank, 2, remainder="pad") for rank in range(2)]
    with_failure = outcomes(iter(shares[0]))
    assert [type(one) for one in with_failure if not isinstance(one, bytes)] == [FileNotFoundError]
    assert [one for one in with_failure if isinstance(one, bytes)] == [b"5", b"6", b"", b""]
    assert list(shares[1]) == [b"5", b"6", b"5", b"6"]


def test_parquet_files_tell_how_many_rows_they_have(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for index, size in enumerate([3, 2, 4]):
        pq.write_table(pa.table({"x": np.arange(size) + 10 * index}), tmp_path / f"{index}.parquet")
    for reads in (None, 2):
        rows = Dataset.from_parquet(str(tmp_path / "*.parquet"), num_parallel_reads=reads).map(lambda row: row["x"])
        one, two = (rows.shard_by_process(rank, 2, by="files") for rank in range(2))
        assert len(one) == len(two) == 2
        assert [int(x) for x in one] == [0, 1] or reads
        assert [int(x) for x in two] == [10, 11]
        sizes = [rows.shard_by_process(rank, 2, by="files", remainder="keep").cardinality() for rank in range(2)]
        assert sizes == [7, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines.take(3), r"take\(3\) from .* needs the elements of all of them together"),
        (lambda lines: lines.enumerate(), "enumerate"),
        (lambda lines: lines.scan(0, lambda state, x: (state, x)), "scan"),
        (lambda lines: Dataset.zip(lines, lines), "zip"),
        (lambda lines: lines.unique(), "unique"),
        (lambda lines: lines.window(2), "window"),
        (lambda lines: lines.filter(lambda x: True), r"number of elements of filter.* repeat\(\) before it would help"),
        (lambda lines: lines.shard_by_process(0, 2, by="elements"), "shard_by_process"),
    ],
)
def test_says_why_files_cannot_be_dealt_out_and_deals_out_elements(lines, change, words):
    changed = change(lines(1, 1))
    with pytest.raises(ValueError, match=rf'the files cannot be split between processes: .*{words}.*by="elements"'):
        changed.shard_by_process(0, 2, by="files")
    assert "files" not in changed.shard_by_process(0, 2).plan.label()


def test_names_whose_files_a_function_reads_can_be_dealt_out():
    names = Dataset.from_tensor_slices(["a", "b", "c"]).map(len)
    assert "from_tensor_slices[1:3:2]" in names.shard_by_process(1, 2, by="files", remainder="keep").explain()


def test_too_few_files_are_dealt_out_by_element(lines):
    assert [list(lines(3).shard_by_process(rank, 2)) for rank in range(2)] == [[b"1"], [b"1"]]
    with pytest.raises(ValueError, match="there are 1 files for 2 processes"):
        lines(3).shard_by_process(0, 2, by="files")


def test_elements_are_dealt_out_if_some_are_repeated(lines):
    shares = [lines(4, 1).shard_by_process(rank, 2, remainder="repeat") for rank in range(2)]
    assert list(map(list, shares)) == [[b"1"] * 3] * 2  # by files, each would have 4


@pytest.mark.parametrize("remainder", ["drop", "pad"])
@pytest.mark.parametrize("pipeline", [lambda lines: lines, lambda lines: lines.filter(lambda line: True).map(number)])
def test_a_process_without_elements_says_so_instead_of_letting_others_wait(lines, remainder, pipeline):
    """An endless repetition cannot be made equally long by counting, so its end would be that of one process only."""
    endless = pipeline(lines(3, 0, 1, 0)).repeat()
    whole, empty = (endless.shard_by_process(rank, 2, remainder=remainder) for rank in range(2))
    assert len(list(whole.take(9))) == 9
    (error,) = outcomes(iter(empty))
    assert isinstance(error, ValueError)
    assert "process 1 of 2" in str(error)
    assert outcomes(iter(endless.shard_by_process(1, 2, remainder="keep"))) == []

"""Tests of from_parquet: rows and files, what is read for them, and errors."""

from __future__ import annotations

import tempfile
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import (
    DataLossError,
    Dataset,
    Options,
    RaggedTensor,
    SpecError,
)
from dataset.io.parquet import parquet_file
from dataset.testing import check_operator, outcomes
from support.process_helpers import run_code
from support.seeds import rng
from support.states import state_after


@pytest.fixture
def save(tmp_path):
    """Writes a table, or the column ``x`` of one, in row groups of 10 rows."""

    def write(name, data, row_group_size=10, **options):
        table = data if isinstance(data, pa.Table) else pa.table({"x": data})
        pq.write_table(table, tmp_path / name, row_group_size=row_group_size, **options)
        return str(tmp_path / name)

    return write


@pytest.fixture
def read(monkeypatch):
    """Record the row groups that are read, as (file, row group), with the columns."""
    found = []
    original = parquet_file.ParquetContainer.read

    def reading(self, group, names):
        found.append((Path(self.path).name, group, tuple(names)))
        return original(self, group, names)

    monkeypatch.setattr(parquet_file.ParquetContainer, "read", reading)
    return found


def groups(read):
    return [(file, group) for file, group, _ in read]


def values(dataset):
    """Return the values of x, and the exceptions of failed rows."""
    return [row if isinstance(row, Exception) else int(row["x"]) for row in outcomes(iter(dataset))]


# Elements.


def test_the_same_rows_with_nulls_text_and_lists_survive_every_way_of_running(save):
    table = pa.table(
        {
            "n": pa.array([None if i in {3, 10} else i for i in range(11)]),
            "s": [f"text {i % 3}" for i in range(11)],
            "l": [list(range(i % 4)) for i in range(11)],
            "p": pa.array([{"q": i / 2} for i in range(11)]),
        }
    )
    path = save("a", table, 5)
    found = check_operator(lambda: Dataset.from_parquet(path))
    assert [i for i, row in enumerate(found) if isinstance(row, ValueError)] == [3, 10]
    filled = check_operator(lambda: Dataset.from_parquet(path, fill_null={"n": -1}), positions=6)
    assert [int(row["n"]) for row in filled] == [-1 if i in {3, 10} else i for i in range(11)]
    batches = check_operator(lambda: Dataset.from_parquet(path, ["s", "l"]).batch(4))
    assert batches[1]["l"] == RaggedTensor.from_rows([list(range(i % 4)) for i in range(4, 8)])


def test_files_side_by_side_give_a_thousand_rows_each_in_turn(save):
    paths = [save(name, range(start, start + 3000), 1000) for name, start in (("a", 0), ("b", 10_000))]
    found = values(Dataset.from_parquet(paths, num_parallel_reads=2))
    assert found[:2048] == [*range(1024), *range(10_000, 11_024)]
    assert sorted(found) == [*range(3000), *range(10_000, 13_000)]
    assert len(Dataset.from_parquet(paths, num_parallel_reads=2)) == 6000


def test_files_are_named_by_patterns(save, tmp_path):
    a, _, like_a_pattern = save("a.parquet", [1]), save("b.parquet", [2]), save("c[1].parquet", [3])
    ways = ((f"{tmp_path}/[ab].parquet", [1, 2]), ([f"{tmp_path}/b*", a], [2, 1]), (like_a_pattern, [3]))
    for filenames, expected in ways:
        assert values(Dataset.from_parquet(filenames)) == expected


def test_batches_are_read_only_views_of_the_row_group_and_never_change(save):
    first, second = Dataset.from_parquet(save("a", np.arange(100.0), 100)).batch(50)
    assert not first["x"].flags.writeable
    assert first["x"].base is not None
    assert second["x"].__array_interface__["data"][0] - first["x"].__array_interface__["data"][0] == 400
    batches = list(Dataset.from_parquet([save("b", range(95))] * 2).batch(7))
    assert np.concatenate([batch["x"] for batch in batches]).tolist() == [*range(95)] * 2


COLUMNS = {
    "n": st.integers(-(2**31), 2**31 - 1),
    "f": st.one_of(st.none(), st.floats(allow_nan=False)),
    "s": st.sampled_from(["", "a", "bcd"]),
    "b": st.binary(max_size=3),
    "l": st.lists(st.integers(0, 3), max_size=3),
}


@settings(deadline=None, max_examples=40)
@given(
    files=st.lists(st.lists(st.fixed_dictionaries(COLUMNS), max_size=9), min_size=1, max_size=3),
    group=st.integers(1, 5),
    batch=st.integers(1, 7),
    skip=st.integers(0, 12),
)
def test_any_rows_in_any_row_groups_come_out_as_they_are(files, group, batch, skip):
    kinds = [("n", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.int8()))]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, str(number))) for number in range(len(files))]
        for path, rows in zip(paths, files, strict=True):
            pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), path, row_group_size=group)
        dataset = Dataset.from_parquet(paths)
        found = [
            {"n": int(n), "f": None if np.isnan(f) else float(f), "s": s.decode(), "b": b, "l": row.tolist()}
            for rows in dataset.skip(skip).batch(batch)
            for n, f, s, b, row in zip(*(rows[name] for name, _ in kinds), strict=True)
        ]
        everything = [row for rows in files for row in rows]
        assert found == everything[skip:]
        assert len(dataset) == len(everything)
        assert [int(dataset[i]["n"]) for i in range(len(everything))] == [row["n"] for row in everything]


# Reads.


def test_no_row_group_is_read_before_it_is_needed(save, read):
    with iter(Dataset.from_parquet([save("a", range(25)), save("b", range(5))])) as iterator:
        assert read == []
        for i in range(11):
            assert groups(read) == [("a", 0)][:i]
            assert next(iterator) == {"x": i}
        assert groups(read) == [("a", 0), ("a", 1)]


def test_columns_that_are_not_asked_for_are_not_read_and_may_be_damaged(save, read):
    table = pa.table({"a": range(20), "b": range(20), "c": [{"d": i, "e": i} for i in range(20)]})
    list(Dataset.from_parquet(save("a", table), columns=["c.e", "a"]))
    assert [set(names) for _, _, names in read] == [{"a", "c.e"}] * 2
    table = pa.table({"bad": [f"text {i}" for i in range(1000)], "x": range(1000)})
    path = save("b", table, 1000, compression=None, use_dictionary=False)
    metadata = pq.read_metadata(path).row_group(0).column(0)
    damage(path, metadata.data_page_offset, metadata.total_compressed_size // 2)
    assert len(list(Dataset.from_parquet(path, ["x"]))) == 1000
    assert len(values(Dataset.from_parquet(path))) == 1


def test_each_row_group_is_read_by_one_shard(save, read):
    paths = [save("a", range(25)), save("b", range(100, 105)), save("c", range(200, 240))]
    every = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]
    for num_shards in (1, 2, 3, 7):
        found = []
        for index in range(num_shards):
            read.clear()
            dataset = Dataset.from_parquet(paths, shard=(num_shards, index))
            found += values(dataset)
            assert groups(read) == every[index::num_shards]
            assert len(dataset) == len(values(dataset))
        assert sorted(found) == [*range(25), *range(100, 105), *range(200, 240)]
    check_operator(lambda: Dataset.from_parquet(paths, shard=(3, 1)).skip(15), positions=5)


def test_shards_do_not_depend_on_the_order_of_files_nor_on_reading_side_by_side(save, tmp_path):
    for i in range(5):
        save(f"{i}", range(100 * i, 100 * i + 7 * i + 1))
    found = []
    for index, options in enumerate([{}, {"num_parallel_reads": 2}, {}]):
        files = Dataset.list_files(f"{tmp_path}/?", seed=index)
        found += values(Dataset.from_parquet(files, shard=(3, index), **options))
    assert sorted(found) == sorted(values(Dataset.from_parquet(f"{tmp_path}/?")))


def test_skip_reads_none_of_the_row_groups_that_it_passes(save, read):
    paths = [save("a", range(100)), save("b", range(100, 200)), save("c", range(200, 300))]
    for count, expected in ((0, ("a", 0)), (35, ("a", 3)), (100, ("b", 0)), (259, ("c", 5)), (290, ("c", 9))):
        read.clear()
        assert next(iter(Dataset.from_parquet(paths).skip(count))) == {"x": count}
        assert groups(read) == [expected]
    read.clear()
    assert list(Dataset.from_parquet(paths).skip(300)) == []
    assert list(Dataset.from_parquet(paths).skip(1000)) == []
    assert read == []
    check_operator(lambda: Dataset.from_parquet(paths).skip(255), positions=5)


@pytest.mark.parametrize("statistics", [True, False])
def test_skip_counts_rows_as_it_would_if_it_read_them(save, statistics):
    """A failing row is not an element that can be skipped, so row groups with nulls are read."""
    path = save("a", pa.array([None if i in {3, 17} else i for i in range(40)]), write_statistics=statistics)
    found = check_operator(lambda: Dataset.from_parquet(path).skip(30), positions=4)
    assert [row["x"] for row in found if not isinstance(row, ValueError)] == list(range(32, 40))


def test_any_row_can_be_had_alone(save, read):
    paths = [save("a", range(100)), save("b", range(100, 200))]
    dataset = Dataset.from_parquet(paths)
    assert [dataset[i]["x"] for i in (0, 57, 199, -1, -200)] == [0, 57, 199, 199, 0]
    assert groups(read) == [("a", 0), ("a", 5), ("b", 9), ("b", 9), ("a", 0)]
    assert dataset.batch(8)[13]["x"].tolist() == list(range(104, 112))
    shard = Dataset.from_parquet(paths, shard=(2, 1))
    assert [int(shard[i]["x"]) for i in (0, 10, 50)] == [10, 30, 110]


def test_going_on_from_a_state_reads_only_what_is_left(save, read):
    paths = [save("a", range(100)), save("b", range(100, 200))]
    options = Options()
    options.optimization.inject_prefetch = False  # it computes several batches at once, and resumes before the first
    batches = Dataset.from_parquet(paths).batch(16).with_options(options)
    state = state_after(batches, 9)
    read.clear()
    with iter(batches) as iterator:
        iterator.load_state_dict(state)
        assert next(iterator)["x"].tolist() == list(range(144, 160))
    assert groups(read) == [("b", 4), ("b", 5)]
    assert len(repr(state["operator"])) < 600  # the numbers of a row group and a row, not their content


def test_a_row_group_is_forgotten_before_the_next_is_read(save, monkeypatch):
    tables = []
    original = parquet_file.ParquetContainer.read

    def reading(self, group, names):
        assert not any(table() is not None for table in tables)
        table = original(self, group, names)
        tables.append(weakref.ref(table))
        return table

    monkeypatch.setattr(parquet_file.ParquetContainer, "read", reading)
    for batch in Dataset.from_parquet(save("a", range(50))).batch(10):
        del batch
    assert len(tables) == 5


def test_text_of_a_row_group_is_not_made_at_once(save):
    """For large text, only one block of rows is converted to objects."""
    path = save("a", pa.table({"s": [rng(i).randbytes(50_000) for i in range(200)]}), 200)
    iterator = iter(Dataset.from_parquet(path))
    tracemalloc.start()  # it measures Python's memory, not Arrow's
    next(iterator)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    iterator.close()
    assert held < 3_000_000


# Errors.


def damage(path, at, length=40):
    with Path(path).open("r+b") as file:
        file.seek(at)
        file.write(bytes(length))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"no parquet at all, but long enough", bytes(100)])
def test_what_is_no_parquet_file_says_so(tmp_path, save, content):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(DataLossError, match=r"bad, record 0.*not a Parquet file, or its footer is damaged"):
        Dataset.from_parquet(tmp_path / "bad")
    first, error, second = values(Dataset.from_parquet([save("a", [1]), tmp_path / "bad", save("b", [2])]))
    assert (first, error.path, second) == (1, str(tmp_path / "bad"), 2)


READ_BOTH = """
import sys
from dataset import DataLossError, Dataset
try:
    dataset = Dataset.from_parquet(sys.argv[1])
    list(dataset)
    list(dataset.skip(15))
except DataLossError as error:
    print("DataLossError")
else:
    print("read")
"""


def change_footer(path, old, new):
    """Replace bytes of the footer; return whether they were there."""
    content = Path(path).read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    changed = content[-8 - size : -8].replace(old, new)
    Path(path).write_bytes(content[: -8 - size] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    return Path(path).read_bytes() != content


def test_statistics_that_pyarrow_aborts_on_do_not_end_the_process(save):
    """A histogram with a missing number: RowGroupMetaData.column() throws a C++ exception for it."""
    path = save("a", pa.table({"x": list(range(20)), "text": ["a", "b"] * 10}), use_dictionary=True)
    # A list of 0 and 10, and one of 10.
    if not change_footer(path, bytes((0x19, 0x26, 0, 20)), bytes((0x19, 0x16, 20))):
        pytest.skip("this pyarrow writes no histograms")
    assert run_code(READ_BOTH, path).stdout.strip() in {"DataLossError", "read"}


def test_a_row_group_of_a_negative_number_of_rows_is_damage(save):
    path = save("a", [3] * 20, row_group_size=20)
    assert change_footer(path, bytes((0x16, 40)), bytes((0x16, 39)))  # an integer of -20 for 20
    with pytest.raises(DataLossError, match=r"its footer is damaged: a row group of -20 rows"):
        Dataset.from_parquet(path)


def test_a_footer_longer_than_what_is_read_at_first_is_read_whole(save, read):
    path = save("a", pa.table({f"column {i}": [i] * 20 for i in range(1500)}))
    assert Path(path).stat().st_size > 1 << 17
    assert int.from_bytes(Path(path).read_bytes()[-8:-4], "little") > 1 << 16
    rows = list(Dataset.from_parquet(path, columns=["column 1499", "column 7"]).skip(13))
    assert rows == [{"column 7": 7, "column 1499": 1499}] * 7
    assert read == [("a", 1, ("column 1499", "column 7"))]


def test_a_damaged_row_group_is_given_up_and_no_other(save):
    path = save("a", range(50), write_page_checksum=True)
    damage(path, pq.read_metadata(path).row_group(2).column(0).data_page_offset + 20)
    check_operator(lambda: Dataset.from_parquet(path).skip(18), positions=4)
    found = values(Dataset.from_parquet(path))
    error = found.pop(20)
    assert found == [*range(20), *range(30, 50)]
    assert isinstance(error, DataLossError)
    assert (error.path, error.record) == (path, 20)
    assert error.offset > 0
    assert "row group 2, rows 20 to 29" in str(error)
    assert "in from_parquet from" in error.__notes__[0]


def test_a_null_fails_at_its_place_and_says_where(save):
    path = save("a", pa.array([None if i == 13 else i for i in range(25)]))
    found = values(Dataset.from_parquet([save("b", [7]), path]))
    error = found.pop(14)
    assert found == [7, *range(13), *range(14, 25)]
    assert isinstance(error, ValueError)
    assert str(error) == (
        f"{path}, row 13: column 'x' contains a null, which the dtype of int64 cannot represent; replace nulls with "
        "fill_null={'x': ...}, or leave the column out with columns=[...]"
    )
    found = values(Dataset.from_parquet(save("c", pa.array([None] * 25, pa.int64()))))
    assert [type(error) for error in found] == [ValueError] * 25
    assert "row 24" in str(found[24])


MISMATCHES = {
    "another type": (pa.table({"x": [1.5], "y": ["a"]}), "column 'x' is .*float64.*, but .*int64"),
    "missing": (pa.table({"x": [1]}), "column 'y' of .*/a is missing"),
    "more": (pa.table({"x": [1], "y": ["a"], "z": [1]}), r"column 'z' is not in .*/a; .*columns=\["),
    "struct": (pa.table({"x": [{"q": 1}], "y": ["a"]}), "column 'x' of .*/a is missing"),
}


@pytest.mark.parametrize(("other", "words"), MISMATCHES.values(), ids=MISMATCHES.keys())
@pytest.mark.parametrize("options", [{}, {"num_parallel_reads": 1}], ids=["in order", "side by side"])
def test_a_file_with_other_columns_fails_at_its_place(save, other, words, options):
    first = pa.table({"x": [1, 2], "y": ["a", "b"]})
    paths = [save("a", first), save("b", other), save("c", first)]
    found = values(Dataset.from_parquet(paths, **options))
    (error,) = [one for one in found if isinstance(one, Exception)]
    assert [one for one in found if one is not error] == [1, 2, 1, 2]
    assert isinstance(error, SpecError)
    with pytest.raises(SpecError, match=rf"all files must have the same columns; in .*/b, {words}"):
        raise error


def test_columns_may_be_stored_in_other_ways_and_in_another_order(save):
    a = pa.table({"s": pa.array(["a"]), "x": [1]})
    b = pa.table({"x": [2], "s": pa.array(["b"], pa.large_string()), "z": [0]})
    c = pa.table({"x": [3], "s": pa.array(["c"]).dictionary_encode()})
    dataset = Dataset.from_parquet([save("a", a), save("b", b), save("c", c)], columns=["x", "s"])
    assert list(dataset) == [{"x": 1, "s": b"a"}, {"x": 2, "s": b"b"}, {"x": 3, "s": b"c"}]


def test_a_state_of_a_file_that_was_changed_is_refused(save):
    path = save("a", range(50))
    state = state_after(Dataset.from_parquet(path), 35)
    save("a", range(12))
    with iter(Dataset.from_parquet(path)) as iterator:
        iterator.load_state_dict(state)
        with pytest.raises(DataLossError, match="row 35 is not in row group 3; the file has been changed"):
            next(iterator)
        assert next(iterator, None) is None


def test_the_address_of_a_file_may_have_parameters(monkeypatch):
    monkeypatch.setattr(parquet_file, "open_input", pytest.fail)
    with pytest.raises(pytest.fail.Exception, match=r"^https://example\.org/a\.parquet\?version=2$"):
        Dataset.from_parquet("https://example.org/a.parquet?version=2")


class Failing(parquet_file.WholeReads):
    """A disk that fails when data is requested."""

    broken = False

    def _read(self, size):
        if self.broken:
            raise OSError(5, "Input/output error")
        return super()._read(size)


def test_what_the_system_says_is_what_comes_out_and_the_file_is_given_up(save, monkeypatch):
    paths = [save("a", range(30)), save("b", range(2))]
    monkeypatch.setattr(parquet_file, "WholeReads", Failing)
    iterator = iter(Dataset.from_parquet(paths))
    next(iterator)
    monkeypatch.setattr(Failing, "broken", True)
    for i in range(1, 10):
        assert next(iterator) == {"x": i}
    with pytest.raises(OSError, match="Input/output error") as caught:
        next(iterator)
    assert caught.value.errno == 5
    monkeypatch.setattr(Failing, "broken", False)
    assert [int(row["x"]) for row in iterator] == [0, 1]


class Dribbling:
    """A remote file that returns fewer bytes than requested, which is allowed."""

    def __init__(self, path):
        self.file = Path(path).open("rb", buffering=0)  # noqa: SIM115  # closed by its owner

    def read(self, size):
        return self.file.read(min(size, 7))

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_file_may_give_a_few_bytes_at_a_time(save, monkeypatch):
    path = save("a", range(50))
    monkeypatch.setattr(parquet_file, "open_input", Dribbling)
    assert values(Dataset.from_parquet(path)) == list(range(50))


def test_bad_arguments_are_said_at_the_call(save):
    path = save("a", [1])
    for arguments, error, words in [
        ({"shard": (2, 2)}, ValueError, "index of a shard must be less than num_shards, 2, got 2"),
        ({"shard": (0, 0)}, ValueError, "num_shards must be at least 1"),
        ({"shard": 3}, TypeError, "pair"),
        ({"num_parallel_reads": 0}, ValueError, "at least 1"),
        ({"columns": ["y"]}, ValueError, r"/a has no column 'y'; the columns are \['x'\]"),
        ({"fill_null": 0}, TypeError, "dict from column name to value"),
        ({"fill_null": {"y": 0}}, ValueError, "fill_null names 'y'"),
    ]:
        with pytest.raises(error, match=words):
            Dataset.from_parquet(path, **arguments)
    with pytest.raises(ValueError, match="at least one file"):
        Dataset.from_parquet([])
    for filenames in ([3], Dataset.range(3)):
        with pytest.raises(TypeError, match="from_parquet"):
            Dataset.from_parquet(filenames)
    names = Dataset.from_generator(lambda: iter([path]))
    with pytest.raises(ValueError, match="names must be known in advance"):
        Dataset.from_parquet(names, shard=(2, 0))

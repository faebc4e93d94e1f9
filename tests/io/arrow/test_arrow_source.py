"""Tests of from_arrow: all forms of Arrow data, selected columns, and integration with the rest of the library."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.feather import write_feather

from dataset import Dataset
from dataset.io.arrow import pyarrow_library
from dataset.testing import check_operator


class Stream:
    """An object with the Arrow interface of polars, pandas and DuckDB."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def forms(table, folder):
    batches = table.to_batches(max_chunksize=2)
    yield table
    yield table.combine_chunks().to_batches()[0]
    yield batches
    yield pa.RecordBatchReader.from_batches(table.schema, batches)
    yield Stream(table)
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    yield folder / "a.arrow"
    with pa.ipc.new_stream(folder / "a.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    yield str(folder / "a.arrows")
    write_feather(table, folder / "a.feather", compression="lz4")
    yield folder / "a.feather"


def test_every_form_of_arrow_data_gives_the_same_each_time(tmp_path):
    table = pa.table({"x": [1, 2, 3, 4, 5], "s": ["a", "b", "c", "d", "e"]})
    expected = [{"x": np.int64(i + 1), "s": b"abcde"[i : i + 1]} for i in range(5)]
    for form in forms(table, tmp_path):
        dataset = Dataset.from_arrow(form)
        check_operator(lambda dataset=dataset: dataset, expected)


def test_numbers_are_views_of_the_table_that_nobody_can_write_to():
    values = np.arange(100.0)
    (batch,) = Dataset.from_arrow(pa.table({"x": pa.array(values)})).batch(100)
    assert np.shares_memory(batch["x"], values)
    assert not batch["x"].flags.writeable


@pytest.mark.parametrize("data", [3, None, [], [1], {"x": [1]}, np.zeros(3)])
def test_what_is_no_arrow_data_is_refused(data):
    with pytest.raises(TypeError, match=r"from_arrow\(\): data must be an Arrow table"):
        Dataset.from_arrow(data)


# Columns.


@pytest.fixture
def people():
    return pa.table({"name": ["Ann"], "age": [31], "home": [{"city": "Rome", "at": {"x": 1.0, "y": 2.0}}]})


def test_columns_come_in_the_order_that_is_asked_for_and_may_be_fields_of_structs(people):
    assert list(next(iter(Dataset.from_arrow(people)))) == ["name", "age", "home"]
    assert list(next(iter(Dataset.from_arrow(people, columns=["home", "name"])))) == ["home", "name"]
    assert list(Dataset.from_arrow(people, columns=["home.at.y", "age"])) == [{"home": {"at": {"y": 2.0}}, "age": 31}]


def test_a_name_with_a_dot_is_a_name_first():
    table = pa.table({"a.b": [1], "a": [{"b": 2}]})
    assert list(Dataset.from_arrow(table, columns=["a.b"])) == [{"a.b": 1}]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["nome"], r"the table has no column 'nome'; the columns are \['name', 'age', 'home'\]"),
        (["home.street"], r"no column 'home.street'; the columns in 'home' are \['city', 'at'\]"),
        ([], "at least one column"),
        (["age", "age"], "each only once"),
    ],
)
def test_a_column_that_is_not_there_is_refused(people, columns, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_arrow(people, columns=columns)


def test_columns_are_a_list_of_names_each_of_one_column(people):
    for columns in ("age", b"age", 3, [3]):
        with pytest.raises(TypeError, match="columns must"):
            Dataset.from_arrow(people, columns=columns)
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(ValueError, match="several columns 'x'"):
        Dataset.from_arrow(table)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    pyarrow_library.library.cache_clear()
    try:
        for read, data in ((Dataset.from_arrow, object()), (Dataset.from_parquet, __file__)):
            with pytest.raises(ImportError, match=r'needs? pyarrow.*pip install "dataset-combinators\[parquet\]"'):
                read(data)
    finally:
        pyarrow_library.library.cache_clear()

"""Tests of SqlDataset against tf.data.experimental.SqlDataset."""

import sqlite3

import numpy as np
import pytest
from compare import FAILED, Ours, assert_same, in_both, outcomes, refused, same, theirs

import dataset

ROWS = [
    (1, 1.5, "one", b"\x00\xff", None, "7"),
    (300, -2.25, "zwölf", b"", 3, " 8"),
    (-5, 1e300, "12abc", None, "x", "-9.0"),
    (2**40, 3, "", b"7", 2.5, "1e3"),
    (2**53 + 1, 0.1, "a\x00b", b"\x00", -1, "0"),
]


@pytest.fixture
def path(tmp_path):
    connection = sqlite3.connect(tmp_path / "rows.db")
    connection.execute("CREATE TABLE rows(i INTEGER, f REAL, s TEXT, b BLOB, n ANY, t TEXT)")
    connection.executemany("INSERT INTO rows VALUES(?, ?, ?, ?, ?, ?)", ROWS)
    connection.commit()
    connection.close()
    return str(tmp_path / "rows.db")


COLUMNS = [("i", (np.int64,)), ("i", np.int64), ("i", {"a": np.int64}), ("i, s", (np.int64, (bytes,)))]
COLUMNS += [("f, i", {"b": np.int64, "a": np.float64}), ("i, f, s, b", (np.int64, np.float64, bytes, bytes))]
COLUMNS += [("i % 100", (dtype,)) for dtype in (np.int8, np.int16, np.int32)]
COLUMNS += [("abs(i) % 100", (dtype,)) for dtype in (np.uint8, np.uint16)]
COLUMNS += [("i", (dtype,)) for dtype in (np.float64, bytes, np.bool_)]
COLUMNS += [("i - 1, i % 2", (np.bool_, np.bool_))]
EXPRESSIONS = ["f", "i * 1.0", "i * 1e-7", "i / 3.0", "f * f", "-f * 1e300 * 1e300", "n"]
COLUMNS += [(text, (bytes,)) for text in (*EXPRESSIONS, "trim(s, 'abcdefghijklmnopqrstuvwxyzö')")]
COLUMNS += [("NULL, NULL, NULL, NULL", (np.int64, np.float64, bytes, np.bool_)), ("1.0, -3.0", (np.int64, np.int8))]
COLUMNS += [("t", (np.float64,)), ("x'3132', '12'", (np.int64, np.int64))]


test_columns = same(
    "SqlDataset('sqlite', path, f'SELECT {case[0]} FROM rows', case[1])", case=COLUMNS, fixture="path", fails=False
)
QUERIES = ["SELECT i FROM rows WHERE i < 0", "SELECT i FROM rows WHERE 0", "SELECT i FROM rows ORDER BY f DESC"]
QUERIES += ["WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 3000) SELECT x FROM r"]
QUERIES += ["VALUES (3), (4)", "SELECT i FROM rows;", "SELECT 1 -- the end"]
test_queries = same("SqlDataset('sqlite', path, query, (np.int64,))", query=QUERIES, fixture="path", limit=5000)
SOURCES = [":memory:", "file::memory:", "file:{}?mode=ro"]
test_sources = same(
    "SqlDataset('sqlite', source.format(path), 'SELECT 1', (np.int64,))", source=SOURCES, fixture="path"
)
ORDERED = "SqlDataset('sqlite', path, 'SELECT i, s FROM rows ORDER BY i', (np.int64, bytes))"
CALLS = ["repeat(2).batch(3)", "map(lambda i, s: (s, i + 1)).skip(1).shard(2, 1)", "prefetch(2)"]
test_in_a_pipeline = same([f"{ORDERED}.{call}" for call in CALLS], fixture="path")
BAD = ["SELEC i FROM rows", "SELECT i FROM nowhere", "SELECT i, s FROM rows", "DELETE FROM rows"]
BAD_QUERIES = [(query, (np.int64,)) for query in (*BAD, "CREATE TABLE other(a)", "", "-- nothing")]
BAD_QUERIES += [("SELECT i FROM rows", (np.int64, bytes))]


@pytest.mark.parametrize(("query", "types"), BAD_QUERIES)
def test_queries_that_fail(path, query, types):
    """tf.data raises for them forever; here the error is raised once and ends the iteration."""
    found = assert_same(lambda lib: lib.SqlDataset("sqlite", path, query, types), limit=1)
    assert found[0] == FAILED
    assert outcomes(iter(Ours.SqlDataset("sqlite", path, query, types)), tuple, 9) == [FAILED]
    assert_same(lambda lib: lib.SqlDataset("sqlite", path, "SELECT count(*) FROM rows", (np.int64,)))


def test_a_query_that_fails_half_way(path):
    """Python's driver drops the row before the failure, because it is one step ahead of the row that it returns."""
    query = "SELECT abs(column1) FROM (VALUES (1), (2), (-9223372036854775808), (3))"
    arguments = ("sqlite", path, query, (np.int64,))
    found = in_both(lambda lib: outcomes(iter(lib.SqlDataset(*arguments)), lambda row: int(row[0]), 9))
    assert found == ([1, FAILED], [1, 2, FAILED])


def test_what_is_no_database(tmp_path):
    (tmp_path / "text").write_text("hello" * 1000)
    assert_same(lambda lib: lib.SqlDataset("sqlite", str(tmp_path / "text"), "SELECT * FROM t", (np.int64,)), limit=1)


@pytest.mark.parametrize(
    ("column", "dtype", "converted"),
    [("i", np.int8, 44), ("f", np.int64, -2), ("s", np.int64, 0), ("s", np.bool_, False), ("s", np.float64, 0.0)],
)
def test_where_tf_data_makes_another_value_of_it_the_row_fails(path, column, dtype, converted):
    """tf.data silently converts 300, -2.25 and 'zwölf' to 44, -2 and 0."""
    query = f"SELECT {column} FROM rows WHERE i = 300"  # noqa: S608  # the words are those above
    assert theirs(lambda lib: [row[0] for row in lib.SqlDataset("sqlite", path, query, (dtype,))]) == [converted]
    with pytest.raises(dataset.SpecError, match=f"row 0, column '{column}'.*CAST"):
        next(iter(Ours.SqlDataset("sqlite", path, query, (dtype,))))


WRONG_VALUES = [("mysql", "a.db", "SELECT 1", np.int64), ("SQLITE", "a.db", "SELECT 1", np.int64)]
WRONG_VALUES += [("sqlite", "a.db", "SELECT 1", ())]
WRONG_TYPES = [(3, "a.db", "SELECT 1", np.int64), *(("sqlite", source, "SELECT 1", np.int64) for source in (3, None))]
WRONG_TYPES += [("sqlite", "a.db", 3, np.int64)]
WRONG_TYPES += [("sqlite", "a.db", "SELECT 1", types) for types in ((np.complex64,), [np.int64])]
test_arguments_that_are_wrong = refused({ValueError: WRONG_VALUES, TypeError: WRONG_TYPES}, "SqlDataset(*case)")

"""Tests of SqlDataset against tf.data.experimental.SqlDataset."""

import sqlite3

import numpy as np
import pytest
from compare import FAILED, assert_both_refuse, assert_same, oracle, outcomes

import dataset
from support.libraries import Ours

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


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        ("i", (np.int64,)),
        ("i", np.int64),
        ("i", {"a": np.int64}),
        ("i, s", (np.int64, (bytes,))),
        ("f, i", {"b": np.int64, "a": np.float64}),
        ("i, f, s, b", (np.int64, np.float64, bytes, bytes)),
        ("i % 100", (np.int8,)),
        ("i % 100", (np.int16,)),
        ("i % 100", (np.int32,)),
        ("abs(i) % 100", (np.uint8,)),
        ("abs(i) % 100", (np.uint16,)),
        ("i", (np.float64,)),
        ("i", (bytes,)),
        ("i", (np.bool_,)),
        ("i - 1, i % 2", (np.bool_, np.bool_)),
        ("f", (bytes,)),
        ("i * 1.0", (bytes,)),
        ("i * 1e-7", (bytes,)),
        ("i / 3.0", (bytes,)),
        ("f * f", (bytes,)),
        ("-f * 1e300 * 1e300", (bytes,)),
        ("n", (bytes,)),
        ("NULL, NULL, NULL, NULL", (np.int64, np.float64, bytes, np.bool_)),
        ("1.0, -3.0", (np.int64, np.int8)),
        ("t", (np.float64,)),
        ("trim(s, 'abcdefghijklmnopqrstuvwxyzö')", (bytes,)),
        ("x'3132', '12'", (np.int64, np.int64)),
    ],
)
def test_columns(path, columns, types):
    query = f"SELECT {columns} FROM rows"  # noqa: S608  # the words are those above
    found = assert_same(lambda lib: lib.SqlDataset("sqlite", path, query, types))
    assert FAILED not in found
    assert len(found) == len(ROWS)


def test_queries(path):
    for query in (
        "SELECT i FROM rows WHERE i < 0",
        "SELECT i FROM rows WHERE 0",
        "SELECT i FROM rows ORDER BY f DESC",
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 3000) SELECT x FROM r",
        "VALUES (3), (4)",
        "SELECT i FROM rows;",
        "SELECT 1 -- the end",
    ):
        assert_same(lambda lib, query=query: lib.SqlDataset("sqlite", path, query, (np.int64,)), limit=5000)


def test_in_a_pipeline(path):
    def rows(lib):
        return lib.SqlDataset("sqlite", path, "SELECT i, s FROM rows ORDER BY i", (np.int64, bytes))

    assert_same(lambda lib: rows(lib).repeat(2).batch(3))
    assert_same(lambda lib: rows(lib).map(lambda i, s: (s, i + 1)).skip(1).shard(2, 1))
    assert_same(lambda lib: rows(lib).prefetch(2))


@pytest.mark.parametrize("source", [":memory:", "file::memory:", "uri"])
def test_sources(path, source):
    source = f"file:{path}?mode=ro" if source == "uri" else source
    assert_same(lambda lib: lib.SqlDataset("sqlite", source, "SELECT 1", (np.int64,)))


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("SELEC i FROM rows", (np.int64,)),
        ("SELECT i FROM nowhere", (np.int64,)),
        ("SELECT i, s FROM rows", (np.int64,)),
        ("SELECT i FROM rows", (np.int64, bytes)),
        ("DELETE FROM rows", (np.int64,)),
        ("CREATE TABLE other(a)", (np.int64,)),
        ("", (np.int64,)),
        ("-- nothing", (np.int64,)),
    ],
)
def test_queries_that_fail(path, query, types):
    """tf.data raises for them forever; here the error is raised once and ends the iteration."""
    found = assert_same(lambda lib: lib.SqlDataset("sqlite", path, query, types), limit=1)
    assert found[0] == FAILED
    assert outcomes(iter(Ours.SqlDataset("sqlite", path, query, types)), tuple, 9) == [FAILED]
    assert_same(lambda lib: lib.SqlDataset("sqlite", path, "SELECT count(*) FROM rows", (np.int64,)))


def test_a_query_that_fails_half_way(path):
    """Python's driver drops the row before the failure, because it is one step ahead of the row that it returns."""
    query = (
        "SELECT abs(x) FROM (SELECT 1 x UNION ALL SELECT 2 UNION ALL SELECT -9223372036854775808 UNION ALL SELECT 3)"
    )
    arguments = ("sqlite", path, query, (np.int64,))
    theirs = outcomes(iter(oracle().SqlDataset(*arguments)), lambda row: int(row[0]), 9)
    ours = outcomes(iter(Ours.SqlDataset(*arguments)), lambda row: int(row[0]), 9)
    assert theirs == [1, 2, FAILED]
    assert ours == [1, FAILED]


def test_what_is_no_database(tmp_path):
    (tmp_path / "text").write_text("hello" * 1000)
    assert_same(lambda lib: lib.SqlDataset("sqlite", str(tmp_path / "text"), "SELECT * FROM t", (np.int64,)), limit=1)


@pytest.mark.parametrize(
    ("column", "dtype", "theirs"),
    [("i", np.int8, 44), ("f", np.int64, -2), ("s", np.int64, 0), ("s", np.bool_, False), ("s", np.float64, 0.0)],
)
def test_where_tf_data_makes_another_value_of_it_the_row_fails(path, column, dtype, theirs):
    """tf.data silently converts 300, -2.25 and 'zwölf' to 44, -2 and 0."""
    query = f"SELECT {column} FROM rows WHERE i = 300"  # noqa: S608  # the words are those above
    assert [row[0].numpy() for row in oracle().SqlDataset("sqlite", path, query, (dtype,))] == [theirs]
    with pytest.raises(dataset.SpecError, match=f"row 0, column '{column}'.*CAST"):
        next(iter(Ours.SqlDataset("sqlite", path, query, (dtype,))))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("mysql", "a.db", "SELECT 1", (np.int64,)), ValueError),
        (("SQLITE", "a.db", "SELECT 1", (np.int64,)), ValueError),
        ((3, "a.db", "SELECT 1", (np.int64,)), TypeError),
        (("sqlite", 3, "SELECT 1", (np.int64,)), TypeError),
        (("sqlite", None, "SELECT 1", (np.int64,)), TypeError),
        (("sqlite", "a.db", 3, (np.int64,)), TypeError),
        (("sqlite", "a.db", "SELECT 1", ()), ValueError),
        (("sqlite", "a.db", "SELECT 1", (np.complex64,)), TypeError),
        (("sqlite", "a.db", "SELECT 1", [np.int64]), TypeError),
    ],
    ids=repr,
)
def test_arguments_that_are_wrong(arguments, error):
    assert_both_refuse(lambda lib: lib.SqlDataset(*arguments), error)

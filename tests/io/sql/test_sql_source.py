"""Tests of SqlDataset: rows once and in order, no changed or new files, and closed connections."""

import gc
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from dataset import SpecError, SqlDataset, StateError
from dataset.testing import check_operator, no_leaks, outcomes
from support.states import rest_of, state_after

WAIT = 60
DESCRIPTORS = Path("/proc/self/fd")
TYPES = (np.int64, bytes)
ALL = "SELECT number, name FROM rows ORDER BY number"


@pytest.fixture
def path(tmp_path):
    make(tmp_path / "rows.db", [(number, f"name {number}") for number in range(30)])
    return tmp_path / "rows.db"


def make(path, rows):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE rows(number, name)")
    connection.executemany("INSERT INTO rows VALUES(?, ?)", rows)
    connection.commit()
    connection.close()


ROWS = [(np.int64(number), b"name %d" % number) for number in range(30)]


class Driver:
    """Function that opens connections, as a user function, and records what is done with them."""

    def __init__(self, path, cursor=None):
        self.path = path
        self.cursor = cursor or Cursor
        self.opened = []
        self.fetched = 0

    def __call__(self, *arguments):
        self.arguments = arguments
        self.opened.append(Connection(self))
        return self.opened[-1]

    def open_now(self):
        return sum(not connection.closed for connection in self.opened)


class Connection:
    def __init__(self, driver):
        self.driver = driver
        self.real = sqlite3.connect(driver.path, check_same_thread=False)
        self.closed = False

    def cursor(self):
        return self.driver.cursor(self.driver, self.real.cursor())

    def close(self):
        self.closed = True
        self.real.close()


class Cursor:
    """A cursor with only the methods that PEP 249 requires: it is not iterable."""

    def __init__(self, driver, real):
        self.driver, self.real = driver, real

    def execute(self, query):
        self.real.execute(query)
        self.description = self.real.description

    def fetchmany(self, size):
        rows = self.real.fetchmany(size)
        self.driver.fetched += len(rows)
        return rows

    def close(self):
        self.real.close()


@pytest.mark.parametrize("types", [TYPES, None])
def test_rows_of_sqlite_and_of_any_other_database(path, types):
    check_operator(lambda: SqlDataset("sqlite", path, ALL, types), ROWS, positions=12)
    driver = Driver(path)
    check_operator(lambda: SqlDataset(driver, "source", ALL, types), ROWS, positions=9)
    assert driver.arguments == ("source",)


def test_more_rows_than_a_block(tmp_path):
    make(tmp_path / "rows.db", [(number, "") for number in range(5000)])
    rows = SqlDataset("sqlite", tmp_path / "rows.db", "SELECT number FROM rows ORDER BY 1", np.int32)
    assert list(rows) == list(range(5000))
    assert [len(batch) for batch in rows.batch(1999)] == [1999, 1999, 1002]
    for position in (0, 1, 1023, 1024, 1025, 4999, 5000):
        assert rest_of(rows, state_after(rows, position)) == list(range(position, 5000))


def test_a_row_that_is_refused_takes_its_own_place_only(tmp_path):
    rows = [(number, "") for number in range(40)]
    rows[7] = (2.5, "")
    rows[8] = ("x", "")
    make(tmp_path / "rows.db", rows)
    query = "SELECT number FROM rows ORDER BY rowid"
    found = outcomes(iter(SqlDataset("sqlite", tmp_path / "rows.db", query, np.int64)))
    assert [number for number, value in enumerate(found) if isinstance(value, Exception)] == [7, 8]
    assert isinstance(found[7], SpecError)
    for part in ("rows.db", query, "row 7, column 'number'", "2.5 of type float", "CAST", "test_sql_source.py:"):
        assert part in str(found[7])
    assert "row 8, column 'number'" in str(found[8])


def test_the_dtypes_are_those_of_the_first_row_also_after_going_on(tmp_path):
    make(tmp_path / "rows.db", [(1, "a"), (2.0, "b"), (3.5, "c"), (4, "d")])
    query = "SELECT number, name FROM rows ORDER BY rowid"
    found = check_operator(lambda: SqlDataset("sqlite", tmp_path / "rows.db", query))
    assert found[:2] == [(1, b"a"), (2, b"b")]
    assert isinstance(found[2], SpecError)
    assert found[3:] == [(4, b"d")]


def test_a_first_row_that_says_nothing_is_refused(tmp_path):
    make(tmp_path / "rows.db", [(1, None), (2, "b")])
    rows = SqlDataset("sqlite", tmp_path / "rows.db", "SELECT * FROM rows")
    with pytest.raises(SpecError, match=r"row 0, column 'name': cannot infer the dtype .* from None.*output_types"):
        next(iter(rows))
    assert len(outcomes(iter(rows))) == 1


def test_a_misspelled_path_is_an_error_and_no_new_database(tmp_path):
    for name in (str(tmp_path / "no such.db"), f"file:{tmp_path}/none.db", str(tmp_path / "nowhere" / "a.db")):
        [error] = outcomes(iter(SqlDataset("sqlite", name, "SELECT 1", (np.int64,))))
        assert isinstance(error, FileNotFoundError) or name.startswith("file:")
        assert name in str(error)
        assert "SqlDataset" in error.__notes__[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", [False, True])
def test_nothing_is_ever_written(path, uri):
    source = f"file:{path}?mode=rw" if uri else path
    for query in ("DELETE FROM rows RETURNING number", "INSERT INTO rows VALUES(1, 2) RETURNING number"):
        [error] = outcomes(iter(SqlDataset("sqlite", source, query, np.int64)))
        assert "readonly database" in str(error)
    assert len(list(SqlDataset("sqlite", path, ALL, TYPES))) == 30


def test_an_error_of_the_database_is_said_once_and_is_the_end(path):
    found = check_operator(lambda: SqlDataset("sqlite", path, "SELECT absent FROM rows", np.int64))
    assert len(found) == 1
    assert "no such column: absent" in str(found[0])
    assert "SqlDataset(" in found[0].__notes__[0]
    assert "SELECT absent FROM rows" in found[0].__notes__[0]


def test_columns_and_types_must_be_as_many(path):
    [error] = outcomes(iter(SqlDataset("sqlite", path, ALL, (np.int64,))))
    assert isinstance(error, SpecError)
    assert "returns 2 columns, ['number', 'name'], but output_types has 1" in str(error)


def test_nothing_is_opened_before_it_is_needed_and_no_row_before_it_is_asked_for(path):
    driver = Driver(path)
    rows = SqlDataset(driver, None, ALL, TYPES).batch(4)
    iterator = iter(rows)
    iterator.state_dict()
    assert rows.element_spec[0].shape == (None,)
    assert not driver.opened
    for batches in (1, 2):
        next(iterator)
        assert driver.fetched == 4 * batches
    assert driver.arguments == ()
    iterator.close()


def test_connections_are_closed_at_the_end_on_errors_on_close_and_when_abandoned(path):
    driver = Driver(path)
    with no_leaks():
        list(SqlDataset(driver, None, ALL, TYPES))
        assert driver.open_now() == 0
        outcomes(iter(SqlDataset(driver, None, "SELECT", TYPES)))
        outcomes(iter(SqlDataset(driver, None, ALL, np.int8)))
        assert driver.open_now() == 0
        iterator = iter(SqlDataset(driver, None, ALL, TYPES))
        next(iterator)
        assert driver.open_now() == 1
        iterator.close()
        assert driver.open_now() == 0
        iterator = iter(SqlDataset(driver, None, ALL, TYPES).prefetch(2))
        next(iterator)
        del iterator
        gc.collect()
    assert driver.open_now() == 0
    assert len(driver.opened) == 5


def test_several_threads_may_pull_one_after_the_other(path):
    iterator = iter(SqlDataset("sqlite", path, ALL, TYPES))
    found = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: found.append(next(iterator)))
        thread.start()
        thread.join(WAIT)
    iterator.close()
    assert found == ROWS[:3]


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="files are counted on Linux")
def test_an_iterator_is_dropped_at_once_though_an_exception_waits_in_it(tmp_path):
    make(tmp_path / "rows.db", [(1, ""), (2.5, ""), (3, "")])
    gc.collect()
    gc.disable()
    try:
        files = set(DESCRIPTORS.iterdir())
        iterator = iter(SqlDataset("sqlite", tmp_path / "rows.db", "SELECT number FROM rows", np.int8))
        assert next(iterator) == 1
        del iterator
        assert set(DESCRIPTORS.iterdir()) <= files
    finally:
        gc.enable()


def test_rows_that_are_dicts_are_refused(path):
    def connect():
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.row_factory = lambda cursor, row: dict(zip("ab", row, strict=True))
        return connection

    [error] = outcomes(iter(SqlDataset(connect, None, ALL, TYPES)))
    assert isinstance(error, TypeError)
    assert "row factory" in str(error)


def test_rows_that_differ_in_length_fail_alone(path):
    class Odd(Cursor):
        def fetchmany(self, size):
            return [row[:1] if row[0] == 3 else row for row in super().fetchmany(size)]

    found = outcomes(iter(SqlDataset(Driver(path, Odd), None, ALL, TYPES)))
    assert isinstance(found[3], SpecError)
    assert found[:3] + found[4:] == ROWS[:3] + ROWS[4:]


def test_an_interrupt_loses_no_row(path):
    armed = []

    class Interrupted(Cursor):
        def fetchmany(self, size):
            if armed:
                raise armed.pop()
            return super().fetchmany(size)

    driver = Driver(path, Interrupted)
    rows = SqlDataset(driver, None, ALL, TYPES)
    resumed = iter(rows)
    resumed.load_state_dict(state_after(rows, 5))
    armed.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):  # while rows are skipped
        next(resumed)
    assert next(resumed) == ROWS[5]
    armed.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        next(resumed)
    assert outcomes(resumed) == ROWS[6:]
    assert driver.open_now() == 0


def test_going_on_behind_rows_that_are_gone_says_so(path):
    rows = SqlDataset("sqlite", path, ALL, TYPES)
    state = state_after(rows, 20)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM rows WHERE number >= 10")
    connection.commit()
    connection.close()
    resumed = iter(rows)
    resumed.load_state_dict(state)
    [error] = outcomes(resumed)
    assert isinstance(error, StateError)
    assert "returns only 10 rows, cannot resume after row 20" in str(error)


def test_fingerprints_tell_sources_apart_and_plans_and_states_show_no_password():
    rows = SqlDataset(lambda source: None, "secret", "SELECT 1", np.int64)
    assert "secret" not in rows.explain()
    assert "secret" not in repr(iter(rows).state_dict())
    assert "SELECT 1" in rows.explain()
    one, other = (SqlDataset("sqlite", name, ALL, TYPES) for name in ("one.db", "other.db"))
    assert one.fingerprint() != other.fingerprint()


def test_a_database_on_another_machine_is_refused():
    with pytest.raises(ValueError, match=r"local files only, got .s3://bucket/a\.db.; copy the file"):
        SqlDataset("sqlite", "s3://bucket/a.db", "SELECT 1")

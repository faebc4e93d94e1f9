"""One execution of an SQL query: the connection, the cursor, and the rows.

The interface is Python's DB-API 2.0 (PEP 249). This module opens SQLite databases, read-only. A function of the user
opens all other databases.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from dataset.io.files.opening import path_string

__all__ = ["Driver", "RunningQuery", "open_sqlite"]

Driver: TypeAlias = str | Callable[..., Any]
"""``"sqlite"``, or a function that opens a connection."""

SKIPPED_AT_ONCE = 1024


def open_sqlite(name: str) -> Any:
    """Return a read-only connection that any thread may use, but only one thread at a time.

    Args:
        name: a file, ``":memory:"``, or a URI that begins with ``file:``.

    Raises:
        FileNotFoundError: the file does not exist. It is not created.
        sqlite3.Error: SQLite can't open the file.
    """
    import sqlite3  # noqa: PLC0415  # some Python builds do not include it

    if name == ":memory:":
        uri = "file::memory:"
    elif name.startswith("file:"):
        uri = name if "mode=" in name else f"{name}{'&' if '?' in name else '?'}mode=ro"
    else:
        uri = f"{Path(path_string(name)).absolute().as_uri()}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    except sqlite3.OperationalError as error:
        if name != uri and not Path(name).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        raise type(error)(f"{error}: {name!r}") from None
    connection.text_factory = bytes  # the bytes in the file, whatever their encoding
    connection.execute("PRAGMA query_only = ON")  # a URI may have another mode than ro
    return connection


class RunningQuery:
    """A query that has been executed, whose rows are fetched in order.

    Args:
        driver: ``"sqlite"``, or a function that is called with ``source``, or without arguments if that is None.
        source: the database to open.
        query: an SQL statement that returns rows.

    Raises:
        Exception: the driver can't open the source or execute the query.
        ValueError: the statement does not return rows.

    Attributes:
        names: the names of the columns.
    """

    def __init__(self, driver: Driver, source: Any, query: str) -> None:
        self._reads_ahead = driver == "sqlite"
        if callable(driver):
            self._connection = driver() if source is None else driver(source)
        else:
            self._connection = open_sqlite(source)
        self._cursor: Any = None
        try:
            self._cursor = self._connection.cursor()
            self._cursor.execute(query)
            self.names = _names(self._cursor.description)
        except BaseException:
            self.close()
            raise

    def fetch_into(self, rows: list[Any], n: int) -> None:
        """Append the next 1 to ``n`` rows to the list; none at the end. Rows before an exception are appended.

        Raises:
            Exception: the driver raised it.
            TypeError: a row is not a sequence of values.
        """
        if self._reads_ahead:
            rows.extend(islice(self._cursor, n))  # fetchmany would lose the rows before one that fails
        else:
            rows.extend(self._cursor.fetchmany(n))
        if rows and isinstance(rows[0], Mapping):
            kind = type(rows[0]).__name__
            del rows[:]
            raise TypeError(f"rows must be sequences of values, got {kind}; open the connection without a row factory")

    def skip(self, count: int) -> int:
        """Skip up to ``count`` rows; return how many were skipped."""
        skipped = 0
        while skipped < count:
            step = min(count - skipped, SKIPPED_AT_ONCE)
            if self._reads_ahead:
                there = sum(1 for _ in islice(self._cursor, step))
            else:
                there = len(self._cursor.fetchmany(step))
            if not there:
                break
            skipped += there
        return skipped

    def close(self) -> None:
        """Close the cursor and the connection. Closing twice is allowed."""
        cursor, connection, self._cursor, self._connection = self._cursor, self._connection, None, None
        for part in (cursor, connection):
            if part is not None:
                with contextlib.suppress(Exception):  # closing a lost connection fails; no row depends on it
                    part.close()


def _names(description: Any) -> list[str]:
    """Return the names of the columns in a cursor's description."""
    if description is None:
        raise ValueError("the statement does not return rows; it must be a SELECT or a similar statement")
    return [str(column[0]) for column in description]

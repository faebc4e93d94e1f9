"""One execution of an SQL query: the connection, the cursor, and the rows.

The interface is Python's DB-API 2.0 (PEP 249). This module opens SQLite databases, read-only. A function of the user
opens all other databases.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

Driver: TypeAlias = str | Callable[..., Any]
"""``"sqlite"``, or a function that opens a connection."""


def blocks_of_rows(
    driver: Driver, source: Any, query: str, begin: Callable[[Any], None], learn: Callable[[list[Any]], list[Any]]
) -> Generator[Any, int, None]:
    """Execute a query and yield None; then yield the next 1 to ``n`` rows for each ``n`` that is sent.

    The connection is closed when the generator ends or is closed. Rows before an exception are yielded first.

    Args:
        driver: ``"sqlite"``, or a function that is called with ``source``, or without arguments if that is None.
        source: the database to open.
        query: an SQL statement that returns rows.
        begin: called with the cursor's description of the columns.
        learn: called with the rows, which it returns.

    Raises:
        Exception: the driver can't open the source, execute the query or fetch a row; or ``begin`` or ``learn`` raises.
    """
    arguments = () if source is None else (source,)
    connection = driver(*arguments) if callable(driver) else _open_sqlite(source)
    with _closing(connection), _closing(connection.cursor()) as cursor:
        cursor.execute(query)
        begin(cursor.description)
        n = yield
        while True:
            rows: list[Any] = []
            try:
                # fetchmany would lose the rows before one that fails, but the cursor may not be iterable
                rows.extend(cursor.fetchmany(n) if callable(driver) else islice(cursor, n))
            except Exception:
                if rows:
                    yield learn(rows)
                raise
            if not rows:
                return
            n = yield learn(rows)


def _open_sqlite(name: str) -> Any:
    """Return a read-only connection that any thread may use, but only one thread at a time.

    Args:
        name: a file, ``":memory:"``, or a URI that begins with ``file:``.

    Raises:
        FileNotFoundError: the file does not exist. It is not created.
        sqlite3.Error: SQLite can't open the file.
    """
    import sqlite3  # noqa: PLC0415  # some Python builds do not include it

    uri = "file::memory:" if name == ":memory:" else name
    if not uri.startswith("file:"):
        uri = f"{Path(name).absolute().as_uri()}?mode=ro"
    elif "mode=" not in uri and uri is name:
        uri += "&mode=ro" if "?" in uri else "?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    except sqlite3.OperationalError as error:
        if name != uri and not Path(name).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        raise type(error)(f"{error}: {name!r}") from None
    connection.text_factory = bytes  # the bytes in the file, whatever their encoding
    connection.execute("PRAGMA query_only = ON")  # a URI may have another mode than ro
    return connection


@contextlib.contextmanager
def _closing(part: Any) -> Iterator[Any]:
    try:
        yield part
    finally:
        with contextlib.suppress(Exception):  # closing a lost connection fails; no row depends on it
            part.close()

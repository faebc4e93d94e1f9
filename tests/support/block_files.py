"""Helpers for tests of files that are read in blocks."""

from __future__ import annotations

import gzip
import io
import zlib

from dataset.errors import DataLossError
from dataset.io.files.compression import new_compressor

KINDS = ["", "GZIP", "ZLIB", "ZSTD"]
"""The kinds of compression that the first bytes of a file tell."""

ALL_KINDS = [*KINDS, "SNAPPY"]


def by(kind):
    """Return a function that compresses data with the compressor of the library."""

    def compress(data):
        compressor = new_compressor(kind)
        return compressor.compress(data) + compressor.flush()

    return compress


COMPRESS = {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}
zstd = by("ZSTD")
COMPRESS |= {"ZSTD": zstd, "SNAPPY": by("SNAPPY")}


class OpenedFiles:
    """Replacement for ``open_input`` that records the files it opened."""

    def __init__(self):
        self.files = []

    def __call__(self, path):
        self.files.append(io.FileIO(path))
        return self.files[-1]

    def all_closed(self):
        return all(file.closed for file in self.files)


def read(file, n=1000):
    """Return all elements, and the error that ended them or None; close the file."""
    found, error = [], None
    try:
        while (columns := file.columns(n)) is not None:
            assert len(columns) == 1
            assert 1 <= len(columns[0]) <= n
            found += columns[0]
    except DataLossError as damage:
        error = damage
        assert file.columns(n) is None
    file.close()
    return found, error


def columns_of(file, n=1000):
    """Yield the columns of each read, and each error in its place."""
    while True:
        try:
            columns = file.columns(n)
        except (ValueError, OSError) as error:
            yield error
            continue
        if columns is None:
            return
        assert 1 <= len(columns[0]) <= n
        yield columns


def outcomes_of(file, n=1000):
    """Return the elements of the first column, and the text of each error in its place."""
    return [element for columns in columns_of(file, n) for element in _first(columns)]


def _first(columns):
    return [str(columns)] if isinstance(columns, Exception) else columns[0]


def check_places(file, n):
    """Check that reading continues exactly from each place that a reader tells. Return all outcomes."""
    places, found = [(file.tell(), 0)], []
    for columns in columns_of(file, n):
        found.extend(_first(columns))
        places.append((file.tell(), len(found)))
    for place, count in places:
        file.seek(*place)
        assert outcomes_of(file, n) == found[count:]
    file.close()
    return found

"""Pipelines that start with small files of every format, and steps that write files.

The input files are written once; the output folders are new each time a pipeline is built.
"""

from __future__ import annotations

import atexit
import itertools
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains import sources, steps
from chains.kinds import INT, TEXT
from chains.model import Open, Step
from chains.steps import PASSES, Drawn
from dataset import Dataset
from support.resume_files import PARTS, RECORDS, Files, write_files

_NUMBERS = [list(range(10 * part, 10 * part + RECORDS + part)) for part in range(PARTS)]
_ALL = list(itertools.chain.from_iterable(_NUMBERS))


@cache
def _folder() -> Path:
    temporary = tempfile.TemporaryDirectory(prefix="chains")
    atexit.register(temporary.cleanup)
    (Path(temporary.name) / "files").mkdir()
    write_files(Path(temporary.name) / "files")
    return Path(temporary.name)


def _files() -> Files:
    return Files(_folder() / "files", _folder())


def _new_folder() -> str:
    return tempfile.mkdtemp(dir=_folder())


def _record(number: int) -> bytes:
    return b"record %d" % number + b"." * (number % 4)


Reader = tuple[str, Callable[[Any, Files], Any], list[Any], Any]

_LINES = [b"line %d" % i for i in _ALL]
_WORDS = [(i, b"word %d" % i) for i in _ALL]
_QUERY = "SELECT number, word FROM numbers ORDER BY number"


def _csv(lib: Any, files: Files) -> Any:
    return lib.CsvDataset(files.parts("csv"), [np.int64, bytes], select_cols=[0, 2])


def _sql(lib: Any, files: Files) -> Any:
    return lib.SqlDataset("sqlite", str(files.folder / "numbers.sqlite"), _QUERY, (int, bytes))


def _parquet(lib: Any, files: Files) -> Any:
    return lib.Dataset.from_parquet(files.parts("table"))


def _load(lib: Any, files: Files) -> Any:
    return lib.Dataset.load(str(files.folder / "saved"))


_READERS: list[Reader] = [
    ("TFRecordDataset", lambda lib, f: lib.TFRecordDataset(f.parts("plain")), list(map(_record, _ALL)), TEXT),
    ("GZIP", lambda lib, f: lib.TFRecordDataset(f.parts("gzip"), "GZIP"), list(map(_record, _ALL)), TEXT),
    ("index", lambda lib, f: lib.TFRecordDataset(f.parts("plain"), index=True), list(map(_record, _ALL)), TEXT),
    ("text", lambda lib, f: lib.TextLineDataset(f.parts("text")), _LINES, TEXT),
    ("fixed", lambda lib, f: lib.FixedLengthRecordDataset(f.parts("fixed"), 4, 4), [b"%04d" % i for i in _ALL], TEXT),
    ("csv", _csv, _WORDS, (INT, TEXT)),
    ("sql", _sql, [(i, b"word %d" % i) for i in range(12)], (INT, TEXT)),
    ("parquet", _parquet, [{"x": i, "name": b"name %d" % i} for i in _ALL], {"x": INT, "name": TEXT}),
    ("load", _load, [(i, b"%d" % i) for i in range(14)], (INT, TEXT)),
]


def _reader(reader: Reader) -> Drawn:
    name, make, outcomes, kind = reader
    return sources.source(name, lambda lib: make(lib, _files()), outcomes), kind


def _interleaved(cycle: int, block: int, seed: int | None) -> Drawn:
    """Listed files, in a seeded random order. The model returns one order."""

    def make(lib: Any) -> Any:
        pattern = str(_files().folder / "text-*")
        names: Dataset[Any] = lib.Dataset.list_files(pattern, shuffle=seed is not None, seed=seed)
        return names.interleave(lib.TextLineDataset, cycle_length=cycle, block_length=block)

    name = f"list_files({seed}) -> interleave(text, {cycle}, {block})"
    return sources.source(name, make, _LINES), TEXT


SOURCES: list[sources.SourceStrategy] = [
    st.builds(_reader, st.sampled_from(_READERS)),
    st.builds(_interleaved, st.integers(1, 3), st.integers(1, 3), st.sampled_from([None, 1, 2])),
]


def cache_in_files(draw: st.DrawFn, kind: Any) -> Drawn:
    n = draw(PASSES)
    name = f"cache(files) -> repeat({n})"
    return Step(name, lambda _, d: d.cache(_new_folder()).repeat(n), steps.model_of_cache(n)), kind


def snapshot(draw: st.DrawFn, kind: Any) -> Drawn:
    """A run with a failure is not kept, so it runs again."""
    n = draw(PASSES)

    def model(source: Open) -> Open:
        return lambda: itertools.chain.from_iterable(source() for _ in range(n))

    return Step(f"snapshot() -> repeat({n})", lambda _, d: d.snapshot(_new_folder()).repeat(n), model), kind

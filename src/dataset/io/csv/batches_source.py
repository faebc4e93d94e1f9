"""Plan of ``from_csv``: reads CSV files as batches of dicts, with column names and types inferred from the files.

It chains the operators that a user would chain: file names, reading, shuffle, repeat, batch, prefetch.
"""

from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.io.csv.infer import infer_columns, infer_names
from dataset.io.csv.layout import CsvLayout, columns_of, layout_of
from dataset.io.csv.source import Csv
from dataset.io.dataset_files import file_names, read_files
from dataset.io.files.compression import compression_name
from dataset.io.files.list_files import matching_files
from dataset.ops.batch.batch import Batch
from dataset.ops.ignore_errors import IgnoreErrors
from dataset.ops.prefetch import Prefetch
from dataset.ops.repeat import Repeat
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.options import AUTOTUNE
from dataset.plan.checks import require_bool, require_int, require_parallelism
from dataset.plan.node import Node

_STRUCTURAL = '"\r\n,0'  # every supported encoding must encode these characters as ASCII does


class _NamedCsv(Csv):
    """``Csv`` node that is named after the method that the user called."""

    op = "from_csv"


def from_csv_plan(
    file_pattern: Any,
    batch_size: int,
    *,
    column_names: Any,
    column_defaults: Any,
    label_name: str | None,
    select_columns: Any,
    layout_arguments: tuple[Any, Any, Any],
    header: bool,
    num_epochs: int | None,
    shuffle: bool,
    shuffle_buffer_size: int,
    shuffle_seed: int | None,
    prefetch_buffer_size: int | None,
    num_parallel_reads: int | None,
    sloppy: bool,
    num_rows_for_inference: int | None,
    compression_type: str | None,
    ignore_errors: bool,
    encoding: str,
) -> Node:
    """Return the plan of ``Dataset.from_csv``.

    ``layout_arguments`` are field_delim, use_quote_delim and na_value.
    """
    for argument, given in (("shuffle", shuffle), ("sloppy", sloppy), ("ignore_errors", ignore_errors)):
        require_bool("from_csv", argument, given)
    try:
        paths = matching_files(file_pattern)
    except (FileNotFoundError, TypeError) as error:
        error.add_note("in from_csv()")
        raise
    rows_max = num_rows_for_inference
    if rows_max is not None:
        require_int("from_csv", "num_rows_for_inference", rows_max, minimum=0)
    columns = _Columns(
        paths, layout_of("from_csv", [bytes], *layout_arguments), compression_name(compression_type), header
    )
    columns.name(column_names, _ascii_based(encoding))
    columns.select(select_columns)
    columns.type(column_defaults, rows_max, skip_errors=ignore_errors)
    files = file_names("from_csv", paths)
    if shuffle:
        files = Shuffle(files, len(paths), shuffle_seed)
    label = columns.label(label_name)
    source = _NamedCsv(
        files, columns.layout, None, header, compression_type=compression_type, named=True, label_name=label
    )
    rows = _read(source, num_parallel_reads, sloppy=sloppy, ignore_errors=ignore_errors)
    if shuffle:
        rows = Shuffle(rows, shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        rows = Repeat(rows, num_epochs)
    batches = Batch(rows, batch_size, num_epochs is None)
    return Prefetch(batches, AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


class _Columns:
    """Builder of the column layout: each method adds what one argument specifies or what the files contain."""

    def __init__(self, paths: Sequence[str], layout: CsvLayout, compression: str, header: bool) -> None:
        self.paths = paths
        self.layout = layout
        self.compression = compression
        self.header = require_bool("from_csv", "header", header)
        self.names: list[str] = []  # of all columns of the files

    def name(self, given: Any, encoding: str) -> None:
        """Set the column names: those given, or those in the headers."""
        if given is not None:
            self.names = _strings("column_names", given)
        elif self.header:
            self.names = infer_names(self.paths, self.layout, self.compression, encoding)
        else:
            raise ValueError("from_csv(): header=False requires column_names")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ValueError(f"from_csv(): column names must be unique, got {twice} more than once; pass column_names")

    def select(self, given: Any) -> None:
        """Set the columns to read, given by name or index."""
        if given is None:
            self.layout = dataclasses.replace(self.layout, names=tuple(self.names))
            return
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or not len(given):
            raise TypeError(f"from_csv(): select_columns must be a list of names or indices, got {given!r:.100}")
        indices = sorted(map(self._index_of, given))
        if len(set(indices)) < len(indices):
            raise ValueError(f"from_csv(): select_columns must name each column once, got {list(given)}")
        names = tuple(self.names[index] for index in indices)
        self.layout = dataclasses.replace(self.layout, select=tuple(indices), names=names)

    def _index_of(self, column: Any) -> int:
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not 0 <= column < len(self.names):
                raise ValueError(
                    f"from_csv(): select_columns: index {column} is out of range for {len(self.names)} columns"
                )
            return int(column)
        if column not in self.names:
            raise ValueError(f"from_csv(): select_columns: column {column!r} does not exist; columns: {self.names}")
        return self.names.index(column)

    def type(self, given: Any, rows_max: int | None, *, skip_errors: bool) -> None:
        """Set the column types: those given, or those inferred from the files."""
        if given is None:
            columns = infer_columns(
                self.paths,
                self.layout,
                self.compression,
                count=len(self.names),
                header=self.header,
                rows_max=rows_max,
                skip_errors=skip_errors,
            )
        else:
            columns = columns_of("from_csv", given, "column_defaults")
        assert self.layout.names is not None  # since select()
        if len(columns) != len(self.layout.names):
            raise ValueError(
                f"from_csv(): column_defaults must have one entry for each column that is read, got {len(columns)} "
                f"for {list(self.layout.names)}"
            )
        self.layout = dataclasses.replace(self.layout, columns=columns)

    def label(self, name: str | None) -> str | None:
        """Check and return the name of the label column."""
        assert self.layout.names is not None  # since select()
        if name is not None and name not in self.layout.names:
            raise ValueError(
                f"from_csv(): label_name must be one of the columns {list(self.layout.names)}, got {name!r}"
            )
        return name


def _strings(argument: str, given: Any) -> list[str]:
    if isinstance(given, str | bytes) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"from_csv(): {argument} must be a list of strings, got {given!r:.100}")
    if not len(given):
        raise ValueError(f"from_csv(): {argument} must name at least one column")
    return list(given)


def _ascii_based(encoding: Any) -> str:
    """Check that an encoding extends ASCII, since files are split as bytes. Return its normalized name."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ValueError(f"from_csv(): unknown encoding {encoding!r}") from None
    if codec.encode(_STRUCTURAL)[0].removeprefix(codecs.BOM_UTF8) != _STRUCTURAL.encode():
        raise ValueError(f"from_csv(): files in {encoding!r} can't be read; convert them to UTF-8 first")
    return codec.name


def _read(source: Csv, num_parallel_reads: int | None, *, sloppy: bool, ignore_errors: bool) -> Node:
    """Return a node that reads the files one after another, or interleaves rows of several files."""
    require_parallelism(source.op, num_parallel_reads, None)

    def tolerant(node: Node) -> Node:
        return IgnoreErrors(node) if ignore_errors else node

    in_turn = None if num_parallel_reads == 1 else num_parallel_reads
    return read_files(source, in_turn, around=tolerant, deterministic=not sloppy)

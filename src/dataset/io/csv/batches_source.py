"""Plan of ``from_csv``: reads CSV files as batches of dicts, with column names and types inferred from the files.

It chains the operators that a user would chain: file names, reading, shuffle, repeat, batch, prefetch.
"""

from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dataset.io.csv.infer import infer_columns, infer_names
from dataset.io.csv.layout import CsvLayout, columns_of, layout_of
from dataset.io.csv.reader import CsvFile
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
    paths = matching_files(file_pattern, "from_csv")
    if num_rows_for_inference is not None:
        require_int("from_csv", "num_rows_for_inference", num_rows_for_inference, minimum=0)
    layout = layout_of("from_csv", [bytes], *layout_arguments)
    compression = compression_name(compression_type, reading=True)
    require_bool("from_csv", "header", header)

    def open_file(path: str, layout: CsvLayout = layout) -> CsvFile:
        return CsvFile(path, layout, compression, header=header)

    encoding = _ascii_based(encoding)
    all_names = _all_names(column_names, (lambda: infer_names(paths, open_file, encoding)) if header else None)
    select = None if select_columns is None else _selected(select_columns, all_names)
    names = all_names if select is None else [all_names[index] for index in select]
    layout = dataclasses.replace(layout, select=select, names=tuple(names))
    columns = (
        infer_columns(paths, open_file, layout, all_names, num_rows_for_inference, skip_errors=ignore_errors)
        if column_defaults is None
        else columns_of("from_csv", column_defaults, "column_defaults")
    )
    if len(columns) != len(names):
        raise ValueError(
            f"from_csv(): column_defaults must have one entry for each column that is read, got {len(columns)} "
            f"for {names}"
        )
    if label_name is not None and label_name not in names:
        raise ValueError(f"from_csv(): label_name must be one of the columns {names}, got {label_name!r}")
    files = file_names("from_csv", paths)
    if shuffle:
        files = Shuffle(files, len(paths), shuffle_seed)
    layout = dataclasses.replace(layout, columns=columns)
    source = _NamedCsv(
        files, layout, None, header, compression_type=compression_type, named=True, label_name=label_name
    )
    require_parallelism(source.op, num_parallel_reads, None)
    rows = read_files(
        source,
        None if num_parallel_reads == 1 else num_parallel_reads,
        around=IgnoreErrors if ignore_errors else lambda node: node,
        deterministic=not sloppy,
    )
    if shuffle:
        rows = Shuffle(rows, shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        rows = Repeat(rows, num_epochs)
    batches = Batch(rows, batch_size, num_epochs is None)
    return Prefetch(batches, AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _all_names(given: Any, infer: Callable[[], list[str]] | None) -> list[str]:
    """Return the names of all columns of the files: those given, or those in the headers."""
    if given is None and infer is None:
        raise ValueError("from_csv(): header=False requires column_names")
    if isinstance(given, str | bytes) or not all(isinstance(name, str) for name in given or ()):
        raise TypeError(f"from_csv(): column_names must be a list of strings, got {given!r:.100}")
    names = infer() if given is None and infer is not None else list(given)
    if not names:
        raise ValueError("from_csv(): column_names must name at least one column")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"from_csv(): column names must be unique, got {twice} more than once; pass column_names")
    return names


def _selected(given: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the columns to read, given by name or index."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise TypeError(f"from_csv(): select_columns must be a list of names or indices, got {given!r:.100}")
    indices = []
    for column in given:
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not 0 <= column < len(names):
                raise ValueError(f"from_csv(): select_columns: index {column} is out of range for {len(names)} columns")
        elif column not in names:
            raise ValueError(f"from_csv(): select_columns: column {column!r} does not exist; columns: {names}")
        indices.append(int(column) if isinstance(column, int | np.integer) else names.index(column))
    if len(set(indices)) < len(indices):
        raise ValueError(f"from_csv(): select_columns must name each column once, got {list(given)}")
    return tuple(sorted(indices))


def _ascii_based(encoding: Any) -> str:
    """Check that an encoding extends ASCII, since files are split as bytes. Return its normalized name."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ValueError(f"from_csv(): unknown encoding {encoding!r}") from None
    if codec.encode(_STRUCTURAL)[0].removeprefix(codecs.BOM_UTF8) != _STRUCTURAL.encode():
        raise ValueError(f"from_csv(): files in {encoding!r} can't be read; convert them to UTF-8 first")
    return codec.name

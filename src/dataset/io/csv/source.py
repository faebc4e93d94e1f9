"""Node of ``CsvDataset``, and the plan of ``from_csv``. csv/reader.py reads a single file.

``from_csv`` chains the operators that a user would chain: file names, reading, shuffle, repeat, batch, prefetch. Names
are those of the headers. A column is int64 if all inspected fields are integers, else float64 if all are finite
numbers, else text. Empty fields are ignored. This is tf.data's rule, with 64 bits for all numbers.
"""

from __future__ import annotations

import codecs
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dataset.errors import ParseError
from dataset.io.csv.layout import TEXT, CsvColumn, CsvLayout, columns_of, layout_of
from dataset.io.csv.reader import CsvFile
from dataset.io.csv.row_parser import parse_int
from dataset.io.dataset_files import BlockFileSource, file_names, read_files
from dataset.io.files.list_files import matching_files
from dataset.io.files.opening import require_regular
from dataset.ops.ignore_errors import IgnoreErrors
from dataset.options import AUTOTUNE
from dataset.plan.checks import require_bool, require_columns, require_int, require_parallelism
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import structure_of
from dataset.redaction import redacted

_STRUCTURAL = '"\r\n,0'  # every supported encoding must encode these characters as ASCII does
_INSPECTED_BYTES, _INSPECTED_ROWS = 1 << 14, 1 << 10  # at once, for names and types
_COLUMNS = (CsvColumn(np.dtype(np.int64), 0), CsvColumn(np.dtype(np.float64), 0.0), CsvColumn(TEXT, b""))


@dataclass(frozen=True, eq=False)
class Csv(BlockFileSource):
    """Node that reads all rows of the files that ``source`` names, one file after another.

    An element is a tuple, or a dict keyed by column name if the layout has names.

    Attributes:
        header: whether the first row of each file is skipped.
        layout: the layout of the files.
        label_name: the column that is returned separately from the dict of the other columns.
    """

    op: ClassVar[str] = "CsvDataset"
    counts_elements: ClassVar[bool] = False  # it counts lines
    buffer_min: ClassVar[int] = 1
    header: bool = False
    layout: CsvLayout = field(kw_only=True)
    label_name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("header", require_bool(self.op, "header", self.header))

    def _element_spec(self) -> Any:
        return self._arranged([TensorSpec((), dtype) for dtype, _ in self.layout.columns])

    def open_file(self, path: str) -> CsvFile:
        element = self._arranged(list(range(len(self.layout.columns))))
        order = structure_of(element).flatten(element)  # that of the components of a dict is the order of their names
        return CsvFile(path, self.layout, self.compression_type, self.buffer_size, self.header, order)

    def _arranged(self, parts: list[Any]) -> Any:
        """Arrange one value per column in the structure of an element."""
        if self.layout.names is None:
            return tuple(parts)
        by_name = dict(zip(self.layout.names, parts, strict=True))
        return by_name if self.label_name is None else (by_name, by_name.pop(self.label_name))

    def parameters(self) -> dict[str, Any]:
        parameters = super().parameters()
        return {**asdict(parameters.pop("layout")), **parameters}


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
    rows_max = -1  # all
    if num_rows_for_inference is not None:
        rows_max = require_int("from_csv", "num_rows_for_inference", num_rows_for_inference, minimum=0)
    require_parallelism("from_csv", num_parallel_reads, None)
    encoding = _ascii_based(encoding)
    paths = matching_files(file_pattern, "from_csv")
    for path in paths if column_names is None or column_defaults is None else ():
        require_regular(path, "inspected rows are then read again; pass column_names and column_defaults")
    first_column = layout_of("from_csv", [""], *layout_arguments, [0])
    files = file_names("from_csv", paths)
    source = _NamedCsv(files, _INSPECTED_BYTES, header, layout=first_column, compression_type=compression_type)
    around = IgnoreErrors if ignore_errors else lambda node: node

    all_names = _column_names(column_names, source, paths, encoding)
    count = len(all_names)
    layout = layout_of("from_csv", [""] * count, *layout_arguments)
    select = layout.indices if select_columns is None else _selected(select_columns, all_names)
    names = [all_names[index] for index in select]
    if column_defaults is None:
        rows = dataset_of(around(replace(source, layout=layout)))
        columns = _inferred_columns(rows.take(rows_max), select)
    else:
        columns = columns_of("from_csv", "column_defaults", column_defaults)
    if len(columns) != len(names):
        raise ValueError(f"from_csv(): column_defaults must have an entry for each of {names}, got {len(columns)}")
    if label_name is not None and label_name not in names:
        raise ValueError(f"from_csv(): label_name must be one of the columns {names}, got {label_name!r}")

    fields_max = count if select_columns is None else sys.maxsize
    layout = replace(layout, columns=columns, indices=select, fields_max=fields_max, names=tuple(names))
    if shuffle:
        files = dataset_of(files).shuffle(len(paths), shuffle_seed).plan
    source = replace(source, source=files, buffer_size=None, layout=layout, label_name=label_name)
    reads = None if num_parallel_reads == 1 else num_parallel_reads
    rows = dataset_of(read_files(source, reads, around=around, deterministic=not sloppy))
    if shuffle:
        rows = rows.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        rows = rows.repeat(num_epochs)
    batches = rows.batch(batch_size, drop_remainder=num_epochs is None)
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size).plan  # type: ignore[no-any-return]


def _column_names(given: Any, source: Csv, paths: Sequence[str], encoding: str) -> list[str]:
    """Return the names of all columns of the files: those given, or those in the headers."""
    if given is None and not source.header:
        raise ValueError("from_csv(): header=False requires column_names")
    names = list(require_columns("from_csv", given, "column_names") or _header_names(source, paths, encoding))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"from_csv(): column names must be unique, got {twice} more than once; pass column_names")
    return names


def _header_names(source: Csv, paths: Sequence[str], encoding: str) -> list[str]:
    """Return the names in the first row, which must be the same in all files."""
    first: list[str] = []
    for path in paths:
        names = []
        with source.open_file(path) as file:
            header = file.header_names()
        for number, name in enumerate(header):
            try:
                names.append(name.decode(encoding))
            except UnicodeDecodeError as error:
                words = f"the name {name!r:.60} is not valid {encoding} ({error.reason}); pass the file's encoding"
                raise ParseError(f"{redacted(path)}, line 1, column {number}: {words}") from None
        first = first or names
        if names != first:
            raise ValueError(
                f"from_csv(): headers differ: {names} in {redacted(path)}, {first} in {redacted(paths[0])}"
            )
    return first


def _selected(given: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the columns to read, given by name or index."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise TypeError(f"from_csv(): select_columns must be a list of names or indices, got {given!r:.100}")
    known = {*names, *range(len(names))}
    if unknown := [column for column in given if isinstance(column, bool | float) or column not in known]:
        raise ValueError(f"from_csv(): select_columns: {unknown} do not exist; the columns are {names}")
    indices = {names.index(column) if column in names else int(column) for column in given}
    if len(indices) < len(given):
        raise ValueError(f"from_csv(): select_columns must name each column once, got {list(given)}")
    return tuple(sorted(indices))


def _inferred_columns(rows: Any, select: Sequence[int]) -> tuple[CsvColumn, ...]:
    """Infer the types of the selected columns. All columns are optional: empty fields become 0 or the empty text."""
    found = dict.fromkeys(select, -1)  # the index in _COLUMNS; -1 for an empty column, which is text
    with iter(rows.batch(_INSPECTED_ROWS)) as batches:
        for columns in batches:
            for index, place in found.items():
                if texts := {*columns[index].tolist()} - {b""}:
                    places = range(max(place, 0), len(_COLUMNS))
                    found[index] = next(i for i in places if all(_is_value(text, _COLUMNS[i].dtype) for text in texts))
    return tuple(_COLUMNS[place] for place in found.values())


def _is_value(text: bytes, dtype: np.dtype[Any]) -> bool:
    """Return whether a text is an integer, a finite decimal number, or any text, as ``dtype`` says."""
    try:
        number = 0 if dtype == TEXT else parse_int(text, dtype) if dtype.kind == "i" else float(text)
    except ValueError:
        return False
    return dtype == TEXT or (math.isfinite(number) and b"_" not in text)


def _ascii_based(encoding: Any) -> str:
    """Check that an encoding extends ASCII, since files are split as bytes. Return its normalized name."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ValueError(f"from_csv(): unknown encoding {encoding!r}") from None
    if codec.encode(_STRUCTURAL)[0].removeprefix(codecs.BOM_UTF8) != _STRUCTURAL.encode():
        raise ValueError(f"from_csv(): files in {encoding!r} can't be read; convert them to UTF-8 first")
    return codec.name

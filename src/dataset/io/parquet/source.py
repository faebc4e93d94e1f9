"""Node of ``from_parquet``: the rows of Parquet files. parquet/reader.py reads a single file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dataset.errors import DataLossError, StateError
from dataset.io.arrow.requested_columns import ArrowLayout, require_columns, require_fill_null
from dataset.io.dataset_files import FilesOperator, FileSource, cycle_length_of, file_names, reader_of_one_file
from dataset.io.files.list_files import matching_files
from dataset.io.files.opening import path_string
from dataset.io.parquet.parquet_file import ParquetContainer, row_counts
from dataset.io.parquet.reader import ParquetFile, Request
from dataset.ops.interleave.flat_map import FlatMap
from dataset.ops.interleave.interleave import Interleave
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_int, require_parallelism
from dataset.plan.nested import dataset_of, is_dataset
from dataset.plan.node import Node
from dataset.plan.structure import LEAF
from dataset.redaction import redacted
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator

OP = "from_parquet"
BLOCK_LENGTH = 1024  # rows per file in an interleave: enough to keep chunks large


class RowGroups:
    """The number of rows of each row group of some files. Each footer is read once, when it is first needed.

    Row groups are numbered across all files, in the order in which the files are listed. Shards use these numbers.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._counts: dict[str, tuple[int, ...]] = {}
        # Several threads may count concurrently; they get the same numbers.
        self._before: dict[str, int] = {}
        self._numbered = (0, 0)  # how many files have been counted, and the row groups in them

    def of(self, path: str) -> tuple[int, ...]:
        """Return the number of rows of each row group of a file; OSError if the file can't be read."""
        if path not in self._counts:
            self._counts[path] = row_counts(path)
        return self._counts[path]

    def before(self, path: str) -> int:
        """Return the number of row groups in the files listed before this one. An unreadable file counts as empty."""
        while path not in self._before:
            at, total = self._numbered
            if at == len(self._paths):
                raise StateError(
                    f"{redacted(path)} is not one of the files that this dataset reads; the state belongs to another "
                    "dataset"
                )
            self._before.setdefault(self._paths[at], total)
            self._numbered = (at + 1, total + self._count(self._paths[at]))
        return self._before[path]

    def _count(self, path: str) -> int:
        try:
            return len(self.of(path))
        except OSError:  # raised later, when the file is read
            return 0


@dataclass(frozen=True, eq=False)
class Parquet(FileSource, seekable=True):
    """Node that reads the rows of the files that ``source`` names, one file after another, or one shard of them."""

    op: ClassVar[str] = OP
    columns: tuple[str, ...] | None = None
    fill_null: Mapping[str, Any] = field(default_factory=dict)
    shard: tuple[int, int] | None = None
    paths: tuple[str, ...] = field(default=(), kw_only=True, repr=False)
    """The files that ``source`` names, in any order."""
    layout: ArrowLayout = field(kw_only=True, repr=False)
    """The layout of the first file."""
    row_groups: RowGroups = field(kw_only=True, repr=False)
    """The row groups of all files."""

    def with_inputs(self, inputs: Sequence[Node]) -> Self:
        (names,) = inputs
        paths = _known_paths(names)  # None if a rule has rewritten the plan of the same names
        return dataclasses.replace(self, source=names, paths=self.paths if paths is None else paths)

    def _element_spec(self) -> Any:
        return self.layout.spec

    def cardinality(self) -> int:
        """Return the number of rows according to the footers of all files; unknown if a footer can't be read."""
        try:
            return sum(self._rows_of(path) for path in self.paths)
        except OSError:
            return UNKNOWN_CARDINALITY

    def _rows_of(self, path: str) -> int:
        counts = self.row_groups.of(path)
        return sum(counts[group] for group in self._chosen(path, len(counts)))

    def _chosen(self, path: str, count: int) -> range:
        """Return which of the ``count`` row groups of a file are read."""
        if self.shard is None:
            return range(count)
        num_shards, index = self.shard
        return range((index - self.row_groups.before(path)) % num_shards, count, num_shards)

    def open_file(self, path: str) -> ParquetFile:
        request = Request(OP, self.columns, self.fill_null)
        return ParquetFile(path, request, self.layout, lambda count: self._chosen(path, count))

    def number_after(self, file: ParquetFile) -> int:
        return file.number_after

    @property
    def read_on_max(self) -> int:
        """1: offsets are row group numbers, and reading any row reads its whole row group."""
        return 1

    def label(self) -> str:
        return OP if self.shard is None else f"{OP}(shard={self.shard})"

    def lower(self, context: ExecutionContext) -> Operator:
        return ParquetOperator(context, self, self.open_file)


class ParquetOperator(FilesOperator):
    """Operator of ``Parquet``: skips row groups without reading them, and continues after damaged ones."""

    file: ParquetFile | None

    def skip(self, n: int) -> int:
        while not self.outbox and (self.file is not None or self._next_file()):
            passed: int = self._ask(lambda file: file.skip_valid(n))
            if passed:
                if self._trace is not None:
                    self._trace.refer(passed, n)
                return passed
            if self.file is None or not self.file.exhausted:
                break
            self._close_file()
        in_memory = 0 if self.file is None else self.file.in_memory
        return super().skip(min(n, in_memory or n))

    def _gives_up(self, error: Exception) -> bool:
        assert self.file is not None  # it raised this
        return self.file.given_up or (super()._gives_up(error) and not isinstance(error, DataLossError))


# Arguments and plans


def parquet_plan(
    filenames: Any,
    columns: Any,
    fill_null: Any,
    shard: Any,
    num_parallel_reads: int | None,
    name: str | None,
) -> Node:
    """Return the plan of ``Dataset.from_parquet``, which documents the arguments. Reads the first file's footer."""
    asked = require_columns(OP, columns)
    fills = require_fill_null(OP, fill_null)
    part = require_shard(OP, shard)
    if num_parallel_reads is not None:
        require_parallelism(OP, num_parallel_reads, None)
    names = file_names(OP, _listed(filenames))
    paths = _known_paths(names)
    if paths is None:
        return _later(names, asked, fills, part, num_parallel_reads, name)
    if not paths:
        raise ValueError(f"{OP}(): at least one file is required, because its columns define the element_spec")
    layout = _layout(paths[0], Request(OP, asked, fills))
    row_groups = RowGroups(paths)
    source = Parquet(names, asked, fills, part, paths=paths, layout=layout, row_groups=row_groups, name=name)
    return source if num_parallel_reads is None else _in_parallel(source, num_parallel_reads)


def _layout(path: str, request: Request) -> ArrowLayout:
    container = ParquetContainer(path)
    try:
        return request.layout_of(container, None)
    finally:
        container.close()


def _listed(filenames: Any) -> Any:
    """Return ``filenames`` with patterns replaced by the matching files."""
    if is_dataset(filenames):
        return filenames
    if isinstance(filenames, str | bytes | os.PathLike):
        return _matching(filenames)
    if not isinstance(filenames, Iterable):
        return filenames  # file_names() raises for it
    return [name for one in filenames for name in (_matching(one) if isinstance(one, str | bytes) else [one])]


def _matching(name: Any) -> list[str]:
    path = path_string(name)
    wildcards = "*[" if "://" in path else "*[?"  # in a URL, a question mark begins the query string
    is_pattern = any(wildcard in path for wildcard in wildcards) and not os.path.lexists(path)
    return matching_files(path) if is_pattern else [path]


def _known_paths(names: Node) -> tuple[str, ...] | None:
    """Return the file names that a plan yields, in any order; None if they are known only by running it."""
    while isinstance(names, Shuffle):
        names = names.source
    if not isinstance(names, TensorSlices) or names.structure is not LEAF:
        return None
    (column,) = names.rows_as_columns()
    return tuple(path_string(path) for path in column)


@dataclass(frozen=True, eq=False)
class ParallelParquet(Interleave, static_spec=True):
    """Interleave of several files. Its element_spec is known in advance, unlike that of a user's function."""

    op: ClassVar[str] = OP
    files: Parquet = field(kw_only=True, repr=False)

    def with_inputs(self, inputs: Sequence[Node]) -> Self:
        files = self.files.with_inputs(inputs)
        return dataclasses.replace(super().with_inputs(inputs), files=files, function=reader_of_one_file(files))

    def _element_spec(self) -> Any:
        return self.files.element_spec

    def cardinality(self) -> int:
        return self.files.cardinality()

    def label(self) -> str:
        return f"{self.files.label()} from {self.cycle_length} files at once"


def _in_parallel(files: Parquet, num_parallel_reads: int) -> Node:
    return ParallelParquet(
        files.source,
        reader_of_one_file(files),
        cycle_length_of(num_parallel_reads),
        BLOCK_LENGTH,
        num_parallel_calls=num_parallel_reads,
        files=files,
        name=files.name,
    )


def _later(
    names: Node,
    columns: tuple[str, ...] | None,
    fill_null: dict[str, Any],
    shard: tuple[int, int] | None,
    num_parallel_reads: int | None,
    name: str | None,
) -> Node:
    """Return the plan for file names known only by running another dataset: each file becomes a dataset."""
    if shard is not None:
        raise ValueError(
            f"{OP}(): shard= numbers the row groups of all files, so the file names must be known in advance; pass "
            "a path, a list, a pattern or Dataset.list_files()"
        )

    def read_one_file(path: bytes) -> Any:
        return dataset_of(parquet_plan(path, columns, fill_null, None, None, name))

    if num_parallel_reads is None:
        return FlatMap(names, read_one_file, name=name)
    cycle = cycle_length_of(num_parallel_reads)
    return Interleave(names, read_one_file, cycle, BLOCK_LENGTH, num_parallel_calls=num_parallel_reads, name=name)


def require_shard(op: str, shard: Any) -> tuple[int, int] | None:
    """Check and return ``shard`` as (num_shards, index), or None.

    Raises:
        TypeError: it is not a pair of ints.
        ValueError: the index is out of range.
    """
    if shard is None:
        return None
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise TypeError(f"{op}(): shard must be a pair (num_shards, index), got {shard!r}")
    num_shards = require_int(op, "num_shards", shard[0], minimum=1)
    index = require_int(op, "index", shard[1], minimum=0)
    if index >= num_shards:
        raise ValueError(f"{op}(): the index of a shard must be less than num_shards, {num_shards}, got {index}")
    return num_shards, index

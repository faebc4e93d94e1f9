"""Node of ``from_parquet``: the rows of Parquet files. parquet/reader.py reads a single file."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from dataset.errors import DataLossError, StateError
from dataset.io.arrow.requested_columns import ArrowLayout, require_fill_null
from dataset.io.dataset_file_patterns import BLOCK_LENGTH, known_paths, listed_files, read_each_file
from dataset.io.dataset_files import FilesOperator, FileSource, file_names, reader_of_one_file
from dataset.io.parquet.parquet_file import ParquetContainer
from dataset.io.parquet.reader import ParquetFile, Request
from dataset.ops.interleave.interleave import Interleave
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_columns, require_int, require_parallelism
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


class RowGroups:
    """The number of rows of each row group of some files. Each footer is read once, when it is first needed.

    Row groups are numbered across all files, in the order in which the files are listed. Shards use these numbers.
    """

    def __init__(self, paths: Sequence[str], open_container: Callable[[str], ParquetContainer]) -> None:
        self._paths = paths
        self._open_container = open_container
        self._counts: dict[str, tuple[int, ...]] = {}
        # Several threads may count concurrently; they get the same numbers.
        self._before: dict[str, int] = {}
        self._numbered = (0, 0)  # how many files have been counted, and the row groups in them

    def of(self, path: str) -> tuple[int, ...]:
        """Return the number of rows of each row group of a file; OSError if the file can't be read."""
        if path not in self._counts:
            container = self._open_container(path)
            container.close()
            self._counts[path] = tuple(stop - first for first, stop in itertools.pairwise(container.starts))
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

    op: ClassVar[str] = "from_parquet"
    container: ClassVar[type[ParquetContainer]] = ParquetContainer
    in_parallel: ClassVar[type[ParallelParquet]]
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
        paths = known_paths(names)  # None if a rule has rewritten the plan of the same names
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
        request = Request(self.op, self.columns, self.fill_null)
        return ParquetFile(path, request, self.layout, lambda count: self._chosen(path, count), self.container)

    def numbers_of(self, file: ParquetFile, length: int) -> Array:
        return np.arange(-length, 0) + file.number_after

    @property
    def read_on_max(self) -> int:
        """1: offsets are row group numbers, and reading any row reads its whole row group."""
        return 1

    def label(self) -> str:
        return self.op if self.shard is None else f"{self.op}(shard={self.shard})"

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
    node: type[Parquet] | None = None,
) -> Node:
    """Return the plan of ``Dataset.from_parquet``, which documents the arguments. Reads the first file's footer."""
    node = node or Parquet
    op = node.op
    asked = require_columns(op, columns)
    fills = require_fill_null(op, fill_null)
    part = require_shard(op, shard)
    if num_parallel_reads is not None:
        require_parallelism(op, num_parallel_reads, None)
    names = file_names(op, listed_files(op, filenames))
    paths = known_paths(names)
    if paths is None:  # another dataset produces them when it runs: each file becomes a dataset
        if part is not None:
            raise ValueError(
                f"{op}(): shard= numbers the row groups of all files, so the file names must be known in advance; "
                "pass a path, a list, a pattern or Dataset.list_files()"
            )

        def read_one_file(path: bytes) -> Any:
            return dataset_of(parquet_plan(path, asked, fills, None, None, name, node))

        return read_each_file(names, read_one_file, num_parallel_reads, name)
    if not paths:
        raise ValueError(f"{op}(): at least one file is required, because its columns define the element_spec")
    with contextlib.closing(node.container(paths[0])) as container:
        layout = Request(op, asked, fills).layout_of(container, None)
    row_groups = RowGroups(paths, node.container)
    source = node(names, asked, fills, part, paths=paths, layout=layout, row_groups=row_groups, name=name)
    return source if num_parallel_reads is None else _in_parallel(source, num_parallel_reads)


@dataclass(frozen=True, eq=False)
class ParallelParquet(Interleave, static_spec=True):
    """Interleave of several files. Its element_spec is known in advance, unlike that of a user's function."""

    op: ClassVar[str] = "from_parquet"
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


Parquet.in_parallel = ParallelParquet


def _in_parallel(files: Parquet, num_parallel_reads: int) -> Node:
    return files.in_parallel(
        files.source,
        reader_of_one_file(files),
        num_parallel_reads,
        BLOCK_LENGTH,
        num_parallel_calls=num_parallel_reads,
        files=files,
        name=files.name,
    )


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

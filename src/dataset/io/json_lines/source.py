"""Nodes of ``JsonLinesDataset`` and ``from_json_lines``: the rows of files as dicts. reader.py reads a single file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.errors import ParseError
from dataset.io.arrow.requested_columns import require_fill_null
from dataset.io.dataset_file_patterns import known_paths, listed_files, read_each_file
from dataset.io.dataset_files import BlockFileSource, file_names, known_names
from dataset.io.files.opening import require_regular
from dataset.io.indexed.source import FileRows, IndexedFiles, read_or_index
from dataset.io.json_lines.columns import JsonColumns, inferred_tree, requested_tree
from dataset.io.json_lines.reader import ROW_ERRORS, JsonLinesFile, converted, row_words
from dataset.io.text.line_index import RowLineIndex
from dataset.plan.checks import require_bool, require_columns, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node
from dataset.plan.structure import Structure
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.metrics.dropped import DroppedCount

ROWS_FOR_INFERENCE = 1000


@dataclass(frozen=True, eq=False)
class JsonLines(BlockFileSource):
    """Node that reads the rows of the files that ``source`` names, one file after another."""

    op: ClassVar[str] = "JsonLinesDataset"
    has_index: ClassVar[bool] = True
    columns: JsonColumns = field(kw_only=True)

    def _element_spec(self) -> Any:
        return self.columns.spec

    def open_file(self, path: str) -> JsonLinesFile:
        return JsonLinesFile(path, self.columns, self.compression_type, self.buffer_size)

    def open_index(self, path: str) -> RowLineIndex:
        return RowLineIndex.open(path)

    def indexed(self, indexes: tuple[RowLineIndex, ...], run_bytes: int) -> IndexedJsonLines:
        return IndexedJsonLines(indexes, run_bytes, columns=self.columns, name=self.name)

    def numbers_of(self, file: JsonLinesFile, length: int) -> Array:  # noqa: ARG002  # it knows how many they are
        first, places = file.last  # blank lines are no rows
        return np.asarray(places) + first

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "columns": repr(self.columns)}


@dataclass(frozen=True, eq=False)
class IndexedJsonLines(IndexedFiles):
    """Source node whose element ``i`` is row ``i``, counted across all files."""

    op: ClassVar[str] = JsonLines.op
    columns: JsonColumns = field(kw_only=True)

    @property
    def structure(self) -> Structure:
        return self.columns.structure

    def _element_spec(self) -> Any:
        return self.columns.spec

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "columns": repr(self.columns)}

    def open_rows(self, skipped: DroppedCount) -> JsonRows:  # noqa: ARG002  # none is skipped
        return JsonRows(self)

    def element(self, position: int) -> Any:
        return self._at_hand().take(np.array([self.places[position]])).only()


class JsonRows(FileRows):
    """Random-access reader of the rows of several files."""

    node: IndexedJsonLines

    def take(self, numbers: Array) -> Chunk:
        lines = self.records(numbers)
        while True:
            try:
                return Chunk(self.node.structure, len(lines), converted(self.node.columns, lines))
            except ROW_ERRORS as error:
                if len(lines) == 1:
                    index, record = self.node.place_of(int(numbers[0]))
                    number = int(index.line_numbers(np.array([record]))[0])
                    failure = ParseError(row_words(index.path, number, lines[0], error))
                    failure.add_note(f"in {self.node}")
                    raise failure from None
                lines = lines[: len(lines) // 2]  # the others are taken later


class FromJsonLines(JsonLines):
    """``JsonLines`` node that is named after the method that the user called."""

    op = "from_json_lines"
    has_index: ClassVar[bool] = False


def json_lines_plan(
    filenames: Any,
    columns: Any,
    fill_null: Any,
    *,
    compression_type: str | None,
    num_parallel_reads: int | None,
    name: str | None,
    buffer_size: int | None = None,
    num_rows_for_inference: int | None = ROWS_FOR_INFERENCE,
    node: type[JsonLines] = FromJsonLines,
    index: bool = False,
) -> Node:
    """Return the plan of ``Dataset.from_json_lines``, or of ``JsonLinesDataset`` with its ``node``."""
    op = node.op
    fills = require_fill_null(op, fill_null)
    if num_rows_for_inference is not None:
        require_int(op, "num_rows_for_inference", num_rows_for_inference, minimum=1)
    names = file_names(op, listed_files(op, filenames) if node is FromJsonLines else filenames)
    if isinstance(columns, Mapping):
        layout = JsonColumns(requested_tree(op, columns), is_closed=False)
    else:
        asked = require_columns(op, columns)
        paths = known_names(op, names) if require_bool(op, "index", index) else known_paths(names)
        if paths is None:

            def read_one_file(path: bytes) -> Any:
                plan = json_lines_plan(
                    [path],
                    columns,
                    fill_null,
                    compression_type=compression_type,
                    num_parallel_reads=None,
                    name=name,
                    buffer_size=buffer_size,
                    num_rows_for_inference=num_rows_for_inference,
                    node=node,
                )
                return dataset_of(plan)

            return read_each_file(names, read_one_file, num_parallel_reads, name)
        layout = _inferred(op, paths, asked, compression_type, num_rows_for_inference)
    layout.replace_nulls(op, fills)
    source = node(names, buffer_size, columns=layout, compression_type=compression_type, name=name)
    return read_or_index(source, num_parallel_reads, index=index)


def _inferred(
    op: str, paths: Sequence[str], asked: Sequence[str] | None, compression: str | None, rows_max: int | None
) -> JsonColumns:
    """Return the columns of the first rows of all files together."""
    found = [row for block in _first_rows(paths, compression, rows_max) for row in block]
    rows = [row for row in found if not isinstance(row, ParseError)]
    tree = inferred_tree(rows)
    if not tree:
        where = ", ".join(map(redacted, paths[:3])) or "no files"
        why = next((f"; the first error is: {row}" for row in found if isinstance(row, ParseError)), "")
        raise ValueError(f"{op}(): no row with a key was found in {where}; pass columns={{name: dtype}}{why}")
    if asked is None:
        return JsonColumns(tree, is_closed=True)
    if missing := [name for name in asked if name not in tree]:
        raise ValueError(
            f"{op}(): there is no column {missing[0]!r} in the first {len(rows)} rows; they have {list(tree)}"
        )
    return JsonColumns({name: tree[name] for name in asked}, is_closed=False)


def _first_rows(paths: Sequence[str], compression: str | None, rows_max: int | None) -> Iterator[list[Any]]:
    """Yield the first ``rows_max`` rows, in blocks, and the errors of invalid lines in their places."""
    left = rows_max
    for path in paths:
        require_regular(path, "the rows that tell the columns are then read again; pass columns={name: dtype}")
        with JsonLinesFile(path, None, compression) as file:
            while left is None or left > 0:
                try:
                    found = file.columns(1 << 20 if left is None else left)
                except ParseError as error:
                    left = None if left is None else left - 1
                    yield [error.with_traceback(None)]
                    continue
                if found is None:
                    break
                left = None if left is None else left - len(found[0])
                yield found[0]

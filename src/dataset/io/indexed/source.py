"""Source node of readers with ``index=True``: random access to the records of files by number.

This module numbers the records of all files consecutively, and opens and closes the files. records_at.py has the index
of one file, and the reader of its records.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset.amounts import BLOCK_BYTES, OPEN_FILES_MAX, STEP_ELEMENTS
from dataset.errors import SpecError
from dataset.io.dataset_files import FileSource, known_names, read_files
from dataset.io.files.list_files import note_pattern
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.paths import is_remote
from dataset.io.indexed.records_at import RecordIndex, RecordsAt
from dataset.ops.sources.row_source import Rows, RowSource
from dataset.plan.checks import require_bool
from dataset.plan.lazy import lazy_property, once
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF, Structure
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import ExecutionContext, LineageContext
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.world import threading


def read_or_index(source: FileSource, num_parallel_reads: int | None, *, index: bool) -> Node:
    """Return the plan that reads the files of ``source``; with ``index``, by number.

    The node with the index is for the files that ``source`` names now. Indexes that do not exist yet are built.

    Raises:
        TypeError: ``index`` is not a bool.
        ValueError: the files are compressed, or ``num_parallel_reads`` is set, and ``index`` is true.
        OSError: a file does not exist or is damaged, and ``index`` is true.
    """
    if not require_bool(source.op, "index", index):
        return read_files(source, num_parallel_reads)
    if source.compression_type:
        raise ValueError(
            f"{source.op}(): a compressed file can't be indexed, because it can only be read from its start, got "
            f"compression_type={source.compression_type!r}; write the records to uncompressed files"
        )
    if num_parallel_reads is not None:
        raise ValueError(
            f"{source.op}(): index=True reads all files as one sequence of records, so they can't be interleaved, "
            f"got num_parallel_reads={num_parallel_reads!r}; omit it, and use prefetch() to read in the background"
        )
    indexes = []
    for path in known_names(source.op, source.source):
        try:
            indexes.append(source.open_index(path))
        except FileNotFoundError as error:
            note_pattern(error, source.op, path)
            raise
    size = getattr(source, "buffer_size", None)
    return source.indexed(tuple(indexes), BLOCK_BYTES if size is None else size)


@dataclass(frozen=True, eq=False)
class IndexedFiles(RowSource, reads_files=True):
    """Source node whose element ``i`` is record ``i``, counted across all files."""

    indexes: tuple[RecordIndex, ...]
    run_bytes: int
    """Bytes of adjacent records to read at once, or one record if it is larger."""

    @lazy_property
    def firsts(self) -> list[int]:
        """Return the number of the first record of each file, and the total number of records."""
        counts = np.array([0, *map(len, self.indexes)], np.int64)
        return [int(number) for number in np.cumsum(counts)]

    def place_of(self, number: int) -> tuple[RecordIndex, int]:
        """Return the index of the file of a record, and the number of the record in it."""
        file = bisect.bisect_right(self.firsts, number) - 1
        return self.indexes[file], number - self.firsts[file]

    @property
    def all_rows(self) -> range:
        return range(self.firsts[-1])

    @property
    def structure(self) -> Structure:
        return LEAF

    @property
    def rows_at_once(self) -> int:
        all_bytes = sum(index.stamp.size for index in self.indexes)
        return max(1, min(STEP_ELEMENTS, self.run_bytes * self.firsts[-1] // max(1, all_bytes)))

    def open_rows(self, skipped: DroppedCount) -> FileRows:  # noqa: ARG002  # used by overrides
        return FileRows(self)

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.takes_all else {"rows": str(self.rows)}
        return {"files": [redacted(index.path) for index in self.indexes], "records": self.firsts[-1], **chosen}

    def fingerprint_fields(self) -> Any:
        return [self.parameters(), [index.stamp.size for index in self.indexes]]

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    @once
    def _at_hand(self) -> FileRows:
        """Return the reader for ``dataset[i]``. Its files stay open for the life of the plan; a copy opens its own."""
        return self.open_rows(DroppedCount())

    def element(self, position: int) -> Any:
        return self._at_hand().row(self.places[position])

    def records(self, context: ExecutionContext) -> Callable[[Array], Lineage] | None:
        if not context.is_traced:
            return None
        firsts = np.array(self.firsts)
        place, name = LineageContext(context), self.name or self.op
        writers = [place.writer(name, redacted(index.path)) for index in self.indexes]

        def lineage(numbers: Array) -> Lineage:
            files = np.searchsorted(firsts, numbers, "right") - 1
            found = np.concatenate(
                [
                    writers[file].of(self.indexes[file].line_numbers(numbers[files == file] - firsts[file]))
                    for file in np.unique(files).tolist()
                ]
            )
            order = np.argsort(files, kind="stable")
            return found[np.argsort(order)]

        return lineage


class FileRows(Rows):
    """Random-access reader of several files; keeps the most recently used files open. Thread-safe.

    Args:
        node: the records.
    """

    def __init__(self, node: IndexedFiles) -> None:
        self.node = node
        self._files: OrderedDict[int, RecordsAt[Any]] = OrderedDict()
        self._lock = threading.Lock()  # guards changes of _files
        self._may_evict = len(node.indexes) > OPEN_FILES_MAX
        self._are_remote = any(is_remote(index.path) for index in node.indexes)

    def row(self, number: int) -> Any:
        """Return one record."""
        firsts = self.node.firsts
        file = bisect.bisect_right(firsts, number) - 1
        try:
            return self._opened(file).record(number - firsts[file])
        except OSError as error:
            error.add_note(f"in {self.node}")
            raise

    def take(self, numbers: Array) -> Chunk:
        found = self.records(numbers)
        return Chunk(LEAF, len(found), [found])

    def records(self, numbers: Array) -> list[Any]:
        """Return the records with these numbers, or the first few of them; raise in place of the first."""
        found: list[Any] = []
        runs = list(self._runs(numbers))
        try:
            if self._are_remote and len(runs) > 1:
                self._expect(runs)
            for file, first, stop in runs:
                if stop == first + 1:
                    found.append(self._opened(file).record(first))
                    continue
                records, damage = self._opened(file).records(first, stop)
                found += records
                if damage is not None:
                    raise damage
        except (OSError, SpecError) as error:
            if not found:  # otherwise the error is raised when its record is the first of a call
                error.add_note(f"in {self.node}")
                raise
        return found

    def _expect(self, runs: list[tuple[int, int, int]]) -> None:
        """Announce to each file which of its records will be read, if it stays open until then."""
        of_files: dict[int, list[tuple[int, int]]] = {}
        for file, first, stop in runs:
            of_files.setdefault(file, []).append((first, stop))
        for file in itertools.islice(of_files, OPEN_FILES_MAX):
            with contextlib.suppress(OSError):  # raised in the place of its record
                self._opened(file).expect(of_files[file])

    def _runs(self, numbers: Array) -> Iterator[tuple[int, int, int]]:
        """Split the numbers into runs of adjacent records: (file, first record in it, end)."""
        firsts = np.array(self.node.firsts)
        files = np.searchsorted(firsts, numbers, "right") - 1
        records = numbers - firsts[files]
        breaks = np.flatnonzero((np.diff(records) != 1) | (np.diff(files) != 0)) + 1
        starts = [0, *breaks.tolist()]
        stops = [*breaks.tolist(), len(numbers)]
        for start, stop in zip(starts, stops, strict=True):
            file, first = int(files[start]), int(records[start])
            if stop == start + 1:
                yield file, first, first + 1
            else:
                yield from self._bounded(file, first, first + stop - start)

    def _bounded(self, file: int, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Split a run into parts that fit into one read."""
        index = self.node.indexes[file]
        while first < stop:
            end = index.run_end(first, stop, self.node.run_bytes)
            yield file, first, end
            first = end

    def _opened(self, file: int) -> RecordsAt[Any]:
        found = self._files.get(file)
        return found if found is not None and not self._may_evict else self._open(file)

    def _open(self, file: int) -> RecordsAt[Any]:
        with self._lock:
            found = self._files.get(file)
            if found is None:
                with CancellationToken(self.files).current():
                    found = self._files[file] = self.node.indexes[file].open_records()
                if len(self._files) > OPEN_FILES_MAX:
                    self._files.popitem(last=False)  # closed when its last reader is done
            else:
                self._files.move_to_end(file)
            return found

    def close(self) -> None:
        with self._lock:
            while self._files:
                self._files.popitem()[1].close()

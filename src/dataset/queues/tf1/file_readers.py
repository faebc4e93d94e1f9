"""File readers of TensorFlow 1: read records from the files whose names come out of a queue."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from dataset.errors import OutOfRangeError
from dataset.io.files.opening import read_file
from dataset.plan.checks import require_int
from dataset.plan.values import object_column
from dataset.queues.element_queue import ElementQueue
from dataset.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from dataset.world import threading


class FileReader(ABC):
    """Reads records one after the other from files, as the readers of TensorFlow 1 do. Threads may share it.

    A subclass says what the records of a file are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: Iterator[tuple[str, bytes]] | None = None
        self._produced = self._completed = 0

    @abstractmethod
    def _records(self, file: str) -> Iterator[tuple[str, bytes]]:
        """Return the keys and values of a file's records."""

    def read(self, queue: ElementQueue) -> tuple[bytes, bytes]:
        """Return the next record, as (key, value); take the name of the next file from the queue when one has ended.

        Args:
            queue: a queue of file names.

        Returns:
            The key ``b"file:position"``, and the record.

        Raises:
            OutOfRangeError: if the queue is closed, and no file is left.
            OSError: if a file cannot be read.
        """
        with self._lock:
            while True:
                if self._work is None:
                    self._work = self._records(os.fsdecode(queue.dequeue()))
                found = next(self._work, None)
                if found is not None:
                    self._produced += 1
                    return os.fsencode(found[0]), found[1]
                self._work = None
                self._completed += 1

    def read_up_to(self, queue: ElementQueue, num_records: int) -> tuple[Any, Any]:
        """Return up to this many records, as (keys, values); fewer only at the end of the last file.

        Args:
            queue: a queue of file names.
            num_records: how many, at least 1.

        Raises:
            OutOfRangeError: if no record is left.
            OSError: if a file cannot be read.
        """
        count = require_int(type(self).__name__, "num_records", num_records, minimum=1)
        found: list[tuple[bytes, bytes]] = []
        try:
            while len(found) < count:
                found.append(self.read(queue))
        except OutOfRangeError:
            if not found:
                raise
        keys, values = zip(*found, strict=True)
        return object_column(keys), object_column(values)

    def num_records_produced(self) -> np.int64:
        """Return how many records were read."""
        return np.int64(self._produced)

    def num_work_units_completed(self) -> np.int64:
        """Return how many files were read to their end."""
        return np.int64(self._completed)

    def reset(self) -> None:
        """Begin anew with the next file, and count from 0."""
        with self._lock:
            self._work, self._produced, self._completed = None, 0, 0


class TFRecordReader(FileReader):
    """Reads the records of TFRecord files, like ``tf.TFRecordReader``. The key's position is a record's first byte.

    With a Dataset: ``TFRecordDataset(files)``.

    Args:
        compression_type: ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``. Positions are those of the uncompressed bytes.
    """

    def __init__(self, compression_type: str = "") -> None:
        super().__init__()
        self._compression = compression_type

    def _records(self, file: str) -> Iterator[tuple[str, bytes]]:
        offset = 0
        for record in TFRecordDataset(file, self._compression):
            yield f"{file}:{offset}", record
            offset += 16 + len(record)  # the header and the checksum of the data


class TextLineReader(FileReader):
    """Reads lines of text files, without line ends, like ``tf.TextLineReader``. Positions are line numbers, from 1.

    With a Dataset: ``TextLineDataset(files)``.

    Args:
        skip_header_lines: how many lines to skip at the beginning of each file.
    """

    def __init__(self, skip_header_lines: int = 0) -> None:
        super().__init__()
        self._skipped = require_int("TextLineReader", "skip_header_lines", skip_header_lines, minimum=0)

    def _records(self, file: str) -> Iterator[tuple[str, bytes]]:
        for number, line in enumerate(TextLineDataset(file), 1):
            if number > self._skipped:
                yield f"{file}:{number}", line


class FixedLengthRecordReader(FileReader):
    """Reads records of one size, like ``tf.FixedLengthRecordReader``. Positions are record numbers, from 0.

    With a Dataset: ``FixedLengthRecordDataset(files, record_bytes)``.

    Args:
        record_bytes: the size of a record.
        header_bytes: how many bytes to skip at the beginning of each file.
        footer_bytes: how many bytes to skip at the end of each file.
    """

    def __init__(self, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0) -> None:
        super().__init__()
        self._sizes = record_bytes, header_bytes, footer_bytes

    def _records(self, file: str) -> Iterator[tuple[str, bytes]]:
        for number, record in enumerate(FixedLengthRecordDataset(file, *self._sizes)):
            yield f"{file}:{number}", record


class WholeFileReader(FileReader):
    """Reads whole files, like ``tf.WholeFileReader``. The key is the name of the file.

    With a Dataset: ``list_files(pattern).map(lambda name: (name, open(name, "rb").read()))``.
    """

    def _records(self, file: str) -> Iterator[tuple[str, bytes]]:
        yield file, read_file(file)

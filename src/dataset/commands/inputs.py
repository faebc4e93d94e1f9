"""The files named on the command line: how they are found, inspected and opened.

The first bytes of a file tell how it is compressed, and whether it can be a TFRecord file. So a file of another kind is
distinguished from a damaged TFRecord file before anything else is done.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.amounts import STEP_ELEMENTS
from dataset.commands.command_errors import CommandError
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.errors import DataLossError
from dataset.io.files.compression import DamagedStreamError, detect_compression, open_decompressed, open_stream
from dataset.io.files.list_files import is_pattern, matching_files
from dataset.io.files.opening import open_input, path_string
from dataset.io.indexed.index_file import SUFFIX
from dataset.io.tfrecord.damage.salvage import Salvage
from dataset.io.tfrecord.frame_scan import scan_lengths
from dataset.io.tfrecord.frames import HEADER_BYTES, length_damage, read_exactly
from dataset.io.tfrecord.reader import TFRecordFile

COMPRESSION_WORDS = {"": "none", "GZIP": "gzip", "ZLIB": "zlib", "ZSTD": "zstd"}
_START_BYTES = 64  # enough that what inflates is a ZLIB stream, and not a damaged record


@dataclass(frozen=True)
class Input:
    """A file to read.

    Attributes:
        path: the path as given by the user.
        size: the size of the stored file in bytes.
        compression: ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.
    """

    path: str
    size: int
    compression: str

    def open(self) -> TFRecordFile:
        """Open the file for reading verified records."""
        return TFRecordFile(self.path, self.compression)

    def lengths(self, progress: ProgressMeter) -> tuple[npt.NDArray[np.int64], DataLossError | None]:
        """Return the lengths of the records up to the first damage, and that damage or None.

        Only the headers are read, unless the file is compressed.
        """
        if not self.compression:
            return scan_lengths(self.path, progress.update)
        lengths = [np.zeros(0, np.int64)]
        done, damage = 0, None
        try:
            with self.open() as file:
                while (records := file.records(STEP_ELEMENTS)) is not None:
                    lengths.append(np.fromiter(map(len, records), np.int64, len(records)))
                    done += len(records)
                    progress.update(0, done)
        except DataLossError as error:
            damage = error
        return np.concatenate(lengths), damage

    def done(self, offset: int) -> int:
        """Return how many stored bytes are read when ``offset`` is reached; 0 if unknown, as for compressed files."""
        return 0 if self.compression else min(offset, self.size)

    @contextlib.contextmanager
    def salvage(self, offset: int) -> Iterator[Salvage]:
        """Return a context manager with the records that can be read after the damage at ``offset``."""
        stream = open_decompressed(self.path, self.compression)
        try:
            yield Salvage(stream, offset)
        finally:
            stream.close()


def open_inputs(arguments: argparse.Namespace) -> list[Input]:
    """Return the files named by the arguments.

    Raises:
        CommandError: if a file cannot be read by commands, or is not a TFRecord file.
        OSError: if a file cannot be opened.
    """
    return [look_at(path, arguments.input_compression) for path in file_names(arguments.files)]


def file_names(names: list[str]) -> list[str]:
    """Return the names, with patterns that the shell did not expand replaced by the matching files."""
    found = []
    for name in names:
        if name == "-":
            raise CommandError("standard input can't be read, because files are read twice; write it to a file first")
        try:
            path_string(name)
        except ValueError as error:
            raise CommandError(str(error)) from None
        found += _matches(name) if is_pattern(name) else [name]
    # Patterns such as "train-*" also match the indexes next to the files.
    named = set(found)
    return [name for name in found if not (name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in named)]


def _matches(pattern: str) -> list[str]:
    try:
        return matching_files(pattern)
    except FileNotFoundError:
        raise CommandError(f"{pattern}: no file matches") from None


def look_at(path: str, compression: str | None = None, *, strict: bool = True) -> Input:
    """Inspect the start of a file.

    Args:
        path: the path of the file.
        compression: the compression given by the user; None to detect it.
        strict: whether to raise an error if the file does not start with a record.
    """
    if Path(path).is_fifo():  # opening a pipe would block until it has a writer
        raise CommandError(f"{path}: this is a pipe, but files are read twice; write it to a file first")
    file = open_input(path)
    try:
        if not file.seekable():
            raise CommandError(
                f"{path}: this is a pipe or a device, but files are read twice; write it to a file first"
            )
        start = read_exactly(open_stream(file, ""), _START_BYTES)
        head = start[:HEADER_BYTES]
        size = file.seek(0, os.SEEK_END)
    finally:
        file.close()
    plain = _is_header(head) or not head
    guess = "" if plain else detect_compression(start, is_whole=False)
    if compression is not None and head and compression != guess and (plain or guess):
        words = f"the compression of this file is {COMPRESSION_WORDS[guess]!r}, not {COMPRESSION_WORDS[compression]!r}"
        raise CommandError(f"{path}: {words}; leave the option out to detect it")
    found = Input(path, size, guess if compression is None else compression)
    if strict and not plain:
        _check_first_record(found, head)
    return found


def damage_json(damage: DataLossError | None) -> dict[str, Any] | None:
    """Return the place and the kind of a damage as a JSON value."""
    if damage is None:
        return None
    return {"record": damage.record, "offset": damage.offset, "message": damage.message}


def _is_header(head: bytes) -> bool:
    return len(head) == HEADER_BYTES and not length_damage(head, 0)


def _check_first_record(found: Input, head: bytes) -> None:
    """Raise CommandError if the decompressed file does not start with a record header.

    A file that cannot be decompressed is damaged, but not of another kind.
    """
    if found.compression:
        stream = open_decompressed(found.path, found.compression)
        try:
            head = read_exactly(stream, HEADER_BYTES)
        except DamagedStreamError:
            return
        finally:
            stream.close()
    if head and not _is_header(head):
        begin = "starts, decompressed," if found.compression else "starts"
        raise CommandError(
            f"{found.path}: not a TFRecord file: it {begin} with {head!r}, which is not a record header; "
            "if the file is damaged, 'verify' searches for records after the damage"
        )

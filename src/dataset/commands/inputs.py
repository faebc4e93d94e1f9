"""The files named on a command line: found, looked at, and opened.

The first bytes of a file tell how it is compressed, and whether it can be a TFRecord file at all. So what is none is
told apart from a damaged one before anything else is done.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.commands.errors import CommandError
from dataset.commands.progress import ProgressMeter
from dataset.errors import DataLossError
from dataset.io.files.compression import DamagedStreamError, guess_compression, open_stream
from dataset.io.files.list_files import matching_files
from dataset.io.files.opening import open_input, path_string
from dataset.io.tfrecord.frames import HEADER_BYTES, length_damage, read_exactly
from dataset.io.tfrecord.index import SUFFIX
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.io.tfrecord.salvage import Salvage
from dataset.io.tfrecord.scan import scan_lengths

__all__ = ["COMPRESSION_WORDS", "RECORDS_AT_ONCE", "Input", "damage_json", "file_names", "look_at", "open_inputs"]

COMPRESSION_WORDS = {"": "none", "GZIP": "gzip", "ZLIB": "zlib"}
RECORDS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Input:
    """A file to read.

    Attributes:
        path: as the user named it.
        size: its bytes, as they are stored.
        compression: ``""``, ``"GZIP"`` or ``"ZLIB"``.
    """

    path: str
    size: int
    compression: str

    def open(self) -> TFRecordFile:
        """Its records, verified."""
        return TFRecordFile(self.path, self.compression)

    def records(self) -> Iterator[list[bytes]]:
        """All its records, some at a time.

        Raises:
            DataLossError: behind the records before the damage.
        """
        with self.open() as file:
            while (records := file.records(RECORDS_AT_ONCE)) is not None:
                yield records

    def lengths(self, progress: ProgressMeter) -> tuple[npt.NDArray[np.int64], DataLossError | None]:
        """The lengths of all its records, and the first damage, up to which they go. Only a compressed file is read."""
        if not self.compression:
            return scan_lengths(self.path, progress.update)
        lengths = [np.zeros(0, np.int64)]
        done, damage = 0, None
        try:
            for records in self.records():
                lengths.append(np.fromiter(map(len, records), np.int64, len(records)))
                done += len(records)
                progress.update(0, done)
        except DataLossError as error:
            damage = error
        return np.concatenate(lengths), damage

    def done(self, offset: int) -> int:
        """How many of the stored bytes are read when ``offset`` is reached. For a compressed file, nobody knows."""
        return 0 if self.compression else min(offset, self.size)

    @contextlib.contextmanager
    def salvage(self, offset: int) -> Iterator[Salvage]:
        """What can be read from a damaged place on; the file is closed behind the ``with`` block."""
        stream = open_stream(open_input(self.path), self.compression)
        try:
            yield Salvage(stream, offset)
        finally:
            stream.close()


def open_inputs(arguments: argparse.Namespace) -> list[Input]:
    """The files that the arguments name.

    Raises:
        CommandError: one of them is none that can be read, or no TFRecord file.
        OSError: one of them can't be opened.
    """
    return [look_at(path, arguments.input_compression) for path in file_names(arguments.files)]


def file_names(names: list[str]) -> list[str]:
    """The names, with the matches in the place of a pattern that the shell left as it is."""
    found = []
    for name in names:
        if name == "-":
            raise CommandError("standard input can't be read, since files are read twice; write it to a file first")
        try:
            path_string(name)
        except ValueError as error:
            raise CommandError(str(error)) from None
        is_pattern = glob.has_magic(name) and not os.path.lexists(name)
        found += _matches(name) if is_pattern else [name]
    # Patterns such as "train-*" match the indexes that lie beside their files, too.
    named = set(found)
    return [name for name in found if not (name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in named)]


def _matches(pattern: str) -> list[str]:
    try:
        return matching_files(pattern)
    except FileNotFoundError:
        raise CommandError(f"{pattern}: no file matches") from None


def look_at(path: str, compression: str | None = None, *, strict: bool = True) -> Input:
    """Look at the beginning of a file.

    Args:
        path: its name.
        compression: what the user says about it; None to find out.
        strict: whether a file that doesn't begin with a record is refused.
    """
    if Path(path).is_fifo():  # opening it would wait for somebody to write
        raise CommandError(f"{path}: this is a pipe, and files are read twice; write it to a file first")
    file = open_input(path)
    try:
        if not file.seekable():
            raise CommandError(
                f"{path}: this is a pipe or a device, and files are read twice; write it to a file first"
            )
        head = read_exactly(open_stream(file, ""), HEADER_BYTES)
        size = file.seek(0, os.SEEK_END)
    finally:
        file.close()
    plain = _is_header(head) or not head
    guess = "" if plain else guess_compression(head)
    if compression is not None and head and compression != guess and (plain or guess):
        words = (
            f"{COMPRESSION_WORDS[compression]!r} is not the compression of this file, but {COMPRESSION_WORDS[guess]!r}"
        )
        raise CommandError(f"{path}: {words}; leave the option out, and it is found out")
    found = Input(path, size, guess if compression is None else compression)
    if strict and not plain:
        _check_first_record(found, head)
    return found


def damage_json(damage: DataLossError | None) -> dict[str, Any] | None:
    """For machines: where a file is damaged, and how."""
    if damage is None:
        return None
    return {"record": damage.record, "offset": damage.offset, "message": damage.message}


def _is_header(head: bytes) -> bool:
    return len(head) == HEADER_BYTES and not length_damage(head, 0)


def _check_first_record(found: Input, head: bytes) -> None:
    """Refuse what doesn't begin with a header, be it inflated. What can't be inflated is damaged, not wrong."""
    if found.compression:
        stream = open_stream(open_input(found.path), found.compression)
        try:
            head = read_exactly(stream, HEADER_BYTES)
        except DamagedStreamError:
            return
        finally:
            stream.close()
    if head and not _is_header(head):
        begin = "begins, inflated," if found.compression else "begins"
        raise CommandError(
            f"{found.path}: not a TFRecord file: it {begin} with {head!r}, which is no record; "
            "if it was one, 'verify' looks for records behind the damage"
        )

"""Atomic writing of a set of new TFRecord files, and the records that are written to them.

Each shard is written under a hidden name in the directory of its final path. When all shards are complete, they are
renamed one after the other. An error or Ctrl-C before that removes them.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataset.amounts import STEP_ELEMENTS
from dataset.closing import Closing
from dataset.commands.command_errors import CommandError
from dataset.commands.common_options import compression
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import counted
from dataset.commands.inputs import Input, damage_json
from dataset.errors import DataLossError
from dataset.io.files.remote.paths import is_remote
from dataset.io.tfrecord.damage.salvage import Gap
from dataset.io.tfrecord.frames import framed
from dataset.io.tfrecord.writer import RecordFile, TFRecordOptions, complete

GAPS_MAX = 20


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option to replace existing files."""
    parser.add_argument("--force", action="store_true", help="replace existing files")


def add_compression(parser: argparse.ArgumentParser) -> None:
    """Add the option for the compression of the new files."""
    parser.add_argument(
        "--compression",
        type=compression,
        metavar="KIND",
        help="compression of the new files: none, gzip or zlib; by default that of the input files",
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for writing files and for damaged records in the input."""
    add_compression(parser)
    parser.add_argument(
        "--on-error",
        choices=["stop", "skip"],
        default="stop",
        help="at a damaged record: stop and write nothing (the default), or skip it and continue after it",
    )
    add_force(parser)


def output_options(arguments: argparse.Namespace, inputs: Sequence[Input]) -> TFRecordOptions:
    """Return the options for the new files."""
    if arguments.compression is not None:
        return TFRecordOptions(arguments.compression)
    kinds = {file.compression for file in inputs}
    if len(kinds) > 1:
        raise CommandError(
            "the files are compressed in different ways; select the compression of the new files with --compression"
        )
    return TFRecordOptions(kinds.pop())


def check_new(arguments: argparse.Namespace, paths: Sequence[str], inputs: Sequence[Input]) -> None:
    """Raise CommandError if a path is an input file or, without ``--force``, an existing file."""
    being_read = {os.path.realpath(file.path) for file in inputs}
    for path in paths:
        if is_remote(path):
            raise CommandError(f"{path}: new files can be written only to local paths; copy them with other tools")
        if os.path.realpath(path) in being_read:
            raise CommandError(f"{path}: this is an input file; give the output another name")
        if os.path.lexists(path) and not os.path.isdir(path) and not arguments.force:  # noqa: PTH112
            raise CommandError(f"{path}: the file exists; --force replaces it")


@dataclass
class Losses:
    """The damage that was skipped in the input files.

    Attributes:
        places: the number of ranges of damaged bytes.
        bytes: the total size of these ranges.
        first: the first damage of each damaged file.
        gaps: the first ranges of damaged bytes, at most GAPS_MAX.
        complete: whether the search covered everything after the damage.
        stream_damage: why a compressed stream ends early, or empty; the amount of data after that is unknown.
    """

    places: int = 0
    bytes: int = 0
    first: list[DataLossError] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    complete: bool = True
    stream_damage: str = ""

    def words(self) -> str:
        """Return a text for the terminal."""
        return f"skipped: {counted(self.bytes, 'damaged byte')} in {counted(self.places, 'place')}"

    def json(self) -> dict[str, Any]:
        """Return the losses as a JSON value."""
        first = [{"path": damage.path, **(damage_json(damage) or {})} for damage in self.first]
        return {
            "damaged_places": self.places,
            "lost_bytes": self.bytes,
            "first_damages": first,
            "gaps": [{"offset": gap.offset, "bytes": gap.size} for gap in self.gaps],
            "searched_all": self.complete,
            "stream_damage": self.stream_damage or None,
        }


def sound_records(file: Input, losses: Losses | None, progress: ProgressMeter) -> Iterator[list[bytes]]:
    """Yield the verified records of a file in lists of several.

    Args:
        file: the file.
        losses: records the damage that is skipped; None to raise DataLossError instead.
        progress: the progress meter to update.
    """
    done = 0
    try:
        with file.open() as reader:
            while (found := reader.records(STEP_ELEMENTS)) is not None:
                done += len(found)
                progress.update(file.done(reader.tell()[0]), done)
                yield found
    except DataLossError as damage:
        if losses is None:
            raise
        losses.first.append(damage)
        yield from _after_damage(file, damage.offset, losses, progress, done)


def _after_damage(
    file: Input, offset: int, losses: Losses, progress: ProgressMeter, done: int
) -> Iterator[list[bytes]]:
    with file.salvage(offset) as salvage:
        for part in salvage:
            if isinstance(part, Gap):
                losses.places += 1
                losses.bytes += part.size
                if len(losses.gaps) < GAPS_MAX:
                    losses.gaps.append(part)
                continue
            done += 1
            progress.update(file.done(part.offset), done)
            yield [part.data]
        losses.complete = losses.complete and salvage.complete
        losses.stream_damage = losses.stream_damage or salvage.stream_damage


class NewFiles(Closing):
    """Writer of TFRecord files, one after the other. As a context manager, it removes them unless they are committed.

    All files stay open until the end.
    """

    def __init__(self, options: TFRecordOptions) -> None:
        self.files: list[dict[str, Any]] = []  # the path and the number of records of each file
        self._options = options
        self._open: list[RecordFile] = []
        self._folders: set[str] = set()

    def start(self, path: str) -> None:
        """Finish the current file and start a new one with this final path."""
        if self._open:
            self._open[-1].finish()
        final = os.path.realpath(path)
        if os.path.exists(final) and not os.path.isfile(final):  # noqa: PTH110, PTH113
            raise CommandError(f"{path}: this is a directory or a device; the output must be a file")
        folder = os.path.dirname(final)  # noqa: PTH120
        with _named(path):
            try:
                file = RecordFile(final, self._options, remove_abandoned=folder not in self._folders)
            except OSError as error:
                if error.errno != errno.EMFILE or not _allow_more_open_files():
                    raise
                file = RecordFile(final, self._options, remove_abandoned=False)
        self._folders.add(folder)
        self._open.append(file)
        self.files.append({"path": path, "records": 0})

    def write(self, record: bytes) -> None:
        """Append a record to the current file."""
        self._open[-1].put(*framed(record))
        self.files[-1]["records"] += 1

    def commit(self) -> None:
        """Rename all files to their final paths."""
        complete(self._open)

    def close(self) -> None:
        """Remove the files that were not renamed."""
        for file in self._open:
            file.target.discard()


def _allow_more_open_files() -> bool:
    """Raise the limit of open files to the maximum for an unprivileged process; return whether it changed."""
    try:
        import resource  # noqa: PLC0415  # Windows has none
    except ImportError:
        return False
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] != soft


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Raise errors with the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None

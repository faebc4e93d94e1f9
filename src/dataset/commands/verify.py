"""``verify``: check all checksums of all records, and find out how much of a damaged file can still be read."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from dataset.commands.command_errors import DAMAGED, GOOD, USAGE, CommandError, error_words
from dataset.commands.common_options import Subparsers, add_file_command
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import complain, counted, number, printable, say, say_json, size
from dataset.commands.inputs import COMPRESSION_WORDS, Input, damage_json, file_names, look_at
from dataset.commands.outputs import Losses, sound_records
from dataset.errors import DataLossError

MORE = """\
Reads all files and verifies both checksums of each record. For a damaged file, it
shows the position of the first bad record, and searches the rest of the file for
positions where a length and the data after it have correct checksums. The work for
this search is bounded: if a file is crafted to mislead it, the output says that the
file was not searched completely.

examples:
  python -m dataset tfrecord verify train-*.tfrecord
  python -m dataset tfrecord verify --json train.tfrecord.gz

status: 0 if all files are good, 1 if a file is damaged, 2 if a file is missing or
can't be read
"""


@dataclass
class Verdict:
    """The result for one file.

    Attributes:
        file: the file.
        before: the number of good records before the first bad one, or of all records.
        after: the number of good records after the first bad one.
        losses: the bad records; its positions are those of the decompressed stream.
    """

    file: Input
    before: int = 0
    after: int = 0
    losses: Losses = field(default_factory=Losses)

    @property
    def records(self) -> int:
        """The number of good records."""
        return self.before + self.after

    @property
    def damage(self) -> DataLossError | None:
        """The first bad record; None if there is none."""
        return self.losses.first[0] if self.losses.first else None


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    add_file_command(commands, "verify", run, "verify all checksums", MORE)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    files, errors = _look_at_all(arguments)
    verdicts = []
    width = max((len(printable(file.path)) for file in files), default=0)
    with ProgressMeter(sum(file.size for file in files)) as progress:
        for file in files:
            progress.start(file.path, file.size)
            try:
                verdict = verify(file, progress)
            except OSError as error:
                errors.append(error_words(error))
                continue
            verdicts.append(verdict)
            if not arguments.json:
                progress.close()
                _say_verdict(verdict, width)
    if arguments.json:
        say_json(_document(verdicts, errors))
    elif len(files) > 1:
        _say_total(verdicts)
    for words in errors:
        complain(words)
    return USAGE if errors else DAMAGED if any(verdict.damage for verdict in verdicts) else GOOD


def _look_at_all(arguments: argparse.Namespace) -> tuple[list[Input], list[str]]:
    """Return the files that can be read, and the errors of the other files."""
    files, errors = [], []
    for path in file_names(arguments.files):
        try:
            files.append(look_at(path, arguments.input_compression, strict=False))
        except (CommandError, OSError) as error:
            errors.append(error_words(error))
    return files, errors


def verify(file: Input, progress: ProgressMeter) -> Verdict:
    """Read a whole file.

    Raises:
        OSError: if the file cannot be read.
    """
    verdict = Verdict(file)
    for records in sound_records(file, verdict.losses, progress):
        if verdict.damage is None:
            verdict.before += len(records)
        else:
            verdict.after += len(records)
    return verdict


def _say_verdict(verdict: Verdict, width: int) -> None:
    name = printable(verdict.file.path).ljust(width)
    about = f"{counted(verdict.records, 'good record')}, {size(verdict.file.size)}"
    say(f"{'damaged' if verdict.damage else 'good':7}  {name}  {about}")
    if verdict.damage is not None:
        for line in _damage_lines(verdict, verdict.damage):
            say(f"         {line}")


def _damage_lines(verdict: Verdict, damage: DataLossError) -> list[str]:
    lines = [
        f"first bad record: number {number(damage.record)} (from 0), at byte {number(damage.offset)}",
        f"damage:           {printable(damage.message)}",
        f"after it:         {counted(verdict.after, 'complete good record')}",
        f"lost:             {_lost_words(verdict)}",
    ]
    if not verdict.losses.complete:
        lines.append("                  the search reached its limit and skipped headers; there may be more records")
    return lines


def _lost_words(verdict: Verdict) -> str:
    losses = verdict.losses
    words = f"{counted(losses.bytes, 'byte')} in {counted(losses.places, 'place')}"
    if losses.stream_damage:
        return f"{words}, and everything after the damage of the compressed stream"
    return words if losses.bytes else "only the end of the file"


def _say_total(verdicts: list[Verdict]) -> None:
    bad = sum(verdict.damage is not None for verdict in verdicts)
    records = counted(sum(verdict.records for verdict in verdicts), "good record")
    stored = size(sum(verdict.file.size for verdict in verdicts))
    files = f"{counted(len(verdicts), 'file')}: {number(len(verdicts) - bad)} good, {number(bad)} damaged"
    lost = f"; {counted(sum(verdict.losses.bytes for verdict in verdicts), 'byte')} lost" if bad else ""
    say(f"{files}; {records}, {stored}{lost}")


def _document(verdicts: list[Verdict], errors: list[str]) -> dict[str, Any]:
    return {
        "good": not errors and not any(verdict.damage for verdict in verdicts),
        "files": [
            {
                "path": verdict.file.path,
                "bytes": verdict.file.size,
                "compression": COMPRESSION_WORDS[verdict.file.compression],
                "good": verdict.damage is None,
                "records": verdict.records,
                "first_damage": damage_json(verdict.damage),
                "records_before": verdict.before,
                "records_after": verdict.after,
                "damaged_places": verdict.losses.places,
                "lost_bytes": verdict.losses.bytes,
                "searched_all": verdict.losses.complete,
                "stream_damage": verdict.losses.stream_damage or None,
            }
            for verdict in verdicts
        ],
        "errors": errors,
    }

"""``verify``: check all checksums of all records, and find out how much of a damaged file can still be read."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from dataset.commands.command_errors import DAMAGED, GOOD, USAGE, CommandError, os_error_words
from dataset.commands.common_options import Subparsers, add_command, add_files, add_input_compression, add_json
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import complain, counted, number, printable, say, say_json, size
from dataset.commands.inputs import COMPRESSION_WORDS, RECORDS_AT_ONCE, Input, damage_json, file_names, look_at
from dataset.errors import DataLossError
from dataset.io.tfrecord.damage.salvage import Gap

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
        damage: the first bad record; None if there is none.
        after: the number of good records after the first bad one.
        places: the number of ranges of bad bytes.
        lost: the total size of these ranges, in the decompressed stream.
        complete: whether the search covered everything after the damage.
        stream_damage: why the compressed stream ends early, or empty; the amount of data after that is unknown.
    """

    file: Input
    before: int = 0
    damage: DataLossError | None = None
    after: int = 0
    places: int = 0
    lost: int = 0
    complete: bool = True
    stream_damage: str = ""

    @property
    def records(self) -> int:
        """The number of good records."""
        return self.before + self.after


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_command(commands, "verify", run, "verify all checksums", MORE)
    add_files(parser)
    add_input_compression(parser)
    add_json(parser)


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
                errors.append(os_error_words(error))
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
        except OSError as error:
            errors.append(os_error_words(error))
        except CommandError as error:
            errors.append(str(error))
    return files, errors


def verify(file: Input, progress: ProgressMeter) -> Verdict:
    """Read a whole file.

    Raises:
        OSError: if the file cannot be read.
    """
    verdict = Verdict(file)
    with file.open() as records:
        try:
            while (found := records.records(RECORDS_AT_ONCE)) is not None:
                verdict.before += len(found)
                progress.update(file.done(records.tell()[0]), verdict.before)
        except DataLossError as damage:
            verdict.damage = damage
    if verdict.damage is not None:
        _salvage(verdict, verdict.damage.offset, progress)
    return verdict


def _salvage(verdict: Verdict, offset: int, progress: ProgressMeter) -> None:
    """Count the records after the damage."""
    with verdict.file.salvage(offset) as salvage:
        for part in salvage:
            if isinstance(part, Gap):
                verdict.places += 1
                verdict.lost += part.size
            else:
                verdict.after += 1
            progress.update(verdict.file.done(part.offset), verdict.records)
        verdict.complete = salvage.complete
        verdict.stream_damage = salvage.stream_damage


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
    if not verdict.complete:
        lines.append("                  the search reached its limit and skipped headers; there may be more records")
    return lines


def _lost_words(verdict: Verdict) -> str:
    words = f"{counted(verdict.lost, 'byte')} in {counted(verdict.places, 'place')}"
    if verdict.stream_damage:
        return f"{words}, and everything after the damage of the compressed stream"
    return words if verdict.lost else "only the end of the file"


def _say_total(verdicts: list[Verdict]) -> None:
    bad = sum(verdict.damage is not None for verdict in verdicts)
    records = counted(sum(verdict.records for verdict in verdicts), "good record")
    stored = size(sum(verdict.file.size for verdict in verdicts))
    files = f"{counted(len(verdicts), 'file')}: {number(len(verdicts) - bad)} good, {number(bad)} damaged"
    lost = f"; {counted(sum(verdict.lost for verdict in verdicts), 'byte')} lost" if bad else ""
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
                "damaged_places": verdict.places,
                "lost_bytes": verdict.lost,
                "searched_all": verdict.complete,
                "stream_damage": verdict.stream_damage or None,
            }
            for verdict in verdicts
        ],
        "errors": errors,
    }

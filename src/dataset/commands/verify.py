"""``verify``: every checksum of every record, and how much can still be read where one is wrong."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from dataset.commands.arguments import Subparsers, add_command, add_files, add_input_compression, add_json
from dataset.commands.errors import DAMAGED, GOOD, USAGE, CommandError, os_error_words
from dataset.commands.inputs import COMPRESSION_WORDS, RECORDS_AT_ONCE, Input, damage_json, file_names, look_at
from dataset.commands.progress import ProgressMeter
from dataset.commands.terminal import complain, counted, number, printable, say, say_json, size
from dataset.errors import DataLossError
from dataset.io.tfrecord.salvage import Gap

__all__ = ["add"]

MORE = """\
Reads everything and verifies both checksums of each record. Of a damaged file it
says where the first bad record is, and searches behind it for the next position
where a length and the data behind it have the right checksums, and so on to the
end. The work for that is bounded: of a file made to mislead the search it is said
that it was not searched completely.

examples:
  python -m dataset tfrecord verify train-*.tfrecord
  python -m dataset tfrecord verify --json train.tfrecord.gz

status: 0 if all is good, 1 if a file is damaged, 2 if one is missing or can't be
read
"""


@dataclass
class Verdict:
    """What is true of one file.

    Attributes:
        file: which one.
        before: good records before the first bad one, or all.
        damage: the first bad record; None if there is none.
        after: good records behind it.
        places: stretches of bad bytes.
        lost: bytes in them, in the inflated stream.
        complete: whether everything behind the damage was searched.
        stream_damage: where the compressed stream ends early, why; nobody knows how much is behind that.
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
        """The good ones."""
        return self.before + self.after


def add(commands: Subparsers) -> None:
    """Say what the arguments are."""
    parser = add_command(commands, "verify", run, "verify every checksum", MORE)
    add_files(parser)
    add_input_compression(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do it."""
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
                progress.clear()
                _say_verdict(verdict, width)
    if arguments.json:
        say_json(_document(verdicts, errors))
    elif len(files) > 1:
        _say_total(verdicts)
    for words in errors:
        complain(words)
    return USAGE if errors else DAMAGED if any(verdict.damage for verdict in verdicts) else GOOD


def _look_at_all(arguments: argparse.Namespace) -> tuple[list[Input], list[str]]:
    """The files that can be read, and what is wrong with the others, which keep none from its turn."""
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
    """Read all of a file.

    Raises:
        OSError: it can't be read.
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
    """Count what there is behind the damage."""
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
        f"what is wrong:    {printable(damage.message)}",
        f"behind it:        {counted(verdict.after, 'whole good record')}",
        f"lost:             {_lost_words(verdict)}",
    ]
    if not verdict.complete:
        lines.append("                  the search was too much work and left headers out; there may be more records")
    return lines


def _lost_words(verdict: Verdict) -> str:
    words = f"{counted(verdict.lost, 'byte')} in {counted(verdict.places, 'place')}"
    if verdict.stream_damage:
        return f"{words}, and all that the compressed stream holds behind its damage"
    return words if verdict.lost else "nothing but the end of the file"


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

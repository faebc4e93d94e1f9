"""``repair``: write the intact records of a damaged file to a new file, and say what was left out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from dataset.commands.command_errors import DAMAGED, GOOD, CommandError
from dataset.commands.common_options import Subparsers, add_file_command
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import complain, counted, number, printable, say, say_json
from dataset.commands.inputs import file_names, look_at
from dataset.commands.outputs import (
    Losses,
    NewFiles,
    add_compression,
    add_force,
    check_new,
    output_options,
    sound_records,
)

MORE = """\
Reads the whole file as 'verify' does, and writes each record whose checksums are
correct to the new file, in the same order. The new file appears when it is complete.
The damaged file is not changed.

examples:
  python -m dataset tfrecord repair damaged.tfrecord --output repaired.tfrecord

status: 0, or 1 if no record is intact, or 2 if the file is missing or can't be
written
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    summary = "write the intact records of a damaged file to a new one"
    parser = add_file_command(commands, "repair", run, summary, MORE, nargs=1, writes=True)
    parser.add_argument("--output", required=True, metavar="FILE", help="the new file")
    add_compression(parser)
    add_force(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    names = file_names(arguments.files)
    if len(names) != 1:
        raise CommandError(f"{arguments.files[0]}: repair reads one file, but {len(names)} match; repair each of them")
    file = look_at(names[0], arguments.input_compression, strict=False)
    options = output_options(arguments, [file])
    check_new(arguments, [arguments.output], [file])
    losses = Losses()
    with ProgressMeter(file.size) as progress, NewFiles(options) as new:
        new.start(arguments.output)
        progress.start(file.path, file.size)
        for records in sound_records(file, losses, progress):
            for record in records:
                new.write(record)
        written = new.files[0]["records"]
        if losses.first and not written:
            complain(f"{file.path}: no record is intact, so no file is written")
            return DAMAGED
        new.commit()
    if arguments.json:
        say_json({"files": new.files, **losses.json()})
    else:
        say(f"{counted(written, 'record')}: {printable(arguments.output)}")
        say(*_left_out(losses))
    return GOOD


def _left_out(losses: Losses) -> Iterator[str]:
    if not losses.first:
        yield "left out: nothing, the file is good"
        return
    yield f"left out: {counted(losses.bytes, 'byte')} in {counted(losses.places, 'place')}"
    for gap in losses.gaps:
        yield f"          at byte {number(gap.offset)}: {counted(gap.size, 'byte')}"
    if losses.places > len(losses.gaps):
        yield f"          and {counted(losses.places - len(losses.gaps), 'more place')}"
    if losses.stream_damage:
        yield "          and everything after the damage of the compressed stream"
    if not losses.complete:
        yield "          the search reached its limit and skipped headers; there may be more records"

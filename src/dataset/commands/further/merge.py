"""``merge``: write the records of several files to one file, file after file."""

from __future__ import annotations

import argparse

from dataset.commands.command_errors import GOOD
from dataset.commands.common_options import Subparsers, add_file_command
from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.display.terminal import counted, printable, say, say_json
from dataset.commands.inputs import open_inputs
from dataset.commands.outputs import Losses, NewFiles, add_output_options, check_new, output_options, sound_records

MORE = """\
The records are written in the order of the files on the command line. All checksums
are verified. The new file appears when it is complete; if an error occurs, no file
is written.

examples:
  python -m dataset tfrecord merge train-*.tfrecord --output train.tfrecord
  python -m dataset tfrecord merge damaged.tfrecord --on-error skip \\
      --output repaired.tfrecord

status: 0, or 1 if a file is damaged, or 2 if a file is missing, of another kind or
can't be written
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_file_command(
        commands, "merge", run, "write the records of several files to a new one", MORE, writes=True
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the new file")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    inputs = open_inputs(arguments)
    options = output_options(arguments, inputs)
    check_new(arguments, [arguments.output], inputs)
    losses = Losses()
    with ProgressMeter(sum(file.size for file in inputs)) as progress, NewFiles(options) as new:
        new.start(arguments.output)
        for file in inputs:
            progress.start(file.path, file.size)
            for records in sound_records(file, losses if arguments.on_error == "skip" else None, progress):
                for record in records:
                    new.write(record)
        new.commit()
    if arguments.json:
        say_json({"files": new.files, **losses.json()})
    else:
        written = counted(new.files[0]["records"], "record")
        say(f"{written} of {counted(len(inputs), 'file')}: {printable(arguments.output)}")
        if losses.first:
            say(losses.words())
    return GOOD

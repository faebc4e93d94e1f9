"""``index``: write an index next to each file, with which a TFRecordDataset has random access to the records."""

from __future__ import annotations

import argparse

from dataset.commands.command_errors import DAMAGED, GOOD, USAGE, CommandError, error_words
from dataset.commands.common_options import Subparsers, add_file_command
from dataset.commands.display.terminal import complain, counted, printable, say, say_json
from dataset.commands.inputs import damage_json, file_names, look_at
from dataset.errors import DataLossError
from dataset.io.indexed.index_file import SUFFIX
from dataset.io.tfrecord.index import TFRecordIndex

MORE = """\
Reads the headers of all records and writes their positions to FILE.index,
replacing an existing index. TFRecordDataset(..., index=True) then reads any record
without the records before it. Only uncompressed files can have an index. If a file
changes later, its index is rebuilt when it is used.

examples:
  python -m dataset tfrecord index train-*.tfrecord

status: 0, or 1 if a file is damaged, or 2 if a file is missing, of another kind or
compressed, or its index can't be written
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    summary = "write an index next to each file, for random access"
    add_file_command(commands, "index", run, summary, MORE, may_be_compressed=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. An error with one file does not affect the others."""
    status, made, errors = GOOD, [], []
    for path in file_names(arguments.files):
        records, damage = None, None
        try:
            records = _make(path)
        except DataLossError as error:
            damage = error
            status = max(status, DAMAGED)
            errors.append(f"{error}; 'verify' shows how much is lost")
        except (CommandError, OSError) as error:
            status = USAGE
            errors.append(error_words(error))
        if records is not None and not arguments.json:
            say(f"{printable(path + SUFFIX)}: {counted(records, 'record')}")
        made.append({"path": path, "index": path + SUFFIX, "records": records, "damage": damage_json(damage)})
    if arguments.json:
        say_json({"files": made, "errors": errors})
    for words in errors:
        complain(words)
    return status


def _make(path: str) -> int:
    """Write the index of a file; return its number of records."""
    file = look_at(path)
    if file.compression:
        raise CommandError(
            f"{path}: a compressed file can't have an index; 'merge --compression none' writes it uncompressed"
        )
    index = TFRecordIndex.build(path)
    index.save()
    return len(index)

"""``index``: write an index next to each file, with which a reader has random access to its records or lines."""

from __future__ import annotations

import argparse

from dataset.commands.command_errors import DAMAGED, GOOD, USAGE, CommandError, error_words
from dataset.commands.common_options import Subparsers, add_command, add_file_command, add_json
from dataset.commands.display.terminal import complain, counted, printable, say, say_json
from dataset.commands.inputs import damage_json, file_names, look_at
from dataset.errors import DataLossError
from dataset.io.indexed.index_file import SUFFIX
from dataset.io.text.line_index import LineIndex
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


MORE_FORMATS = """\
Finds all records or lines, and writes their positions to FILE.index, replacing an
existing index. With index=True, TFRecordDataset, TextLineDataset and JsonLinesDataset
then read any of them without those before. Files of text are those whose names end in
.txt, .text, .log, .jsonl or .ndjson; others are TFRecord files. Only uncompressed files
can have an index. If a file changes later, its index is rebuilt when it is used.

examples:
  python -m dataset index train-*.jsonl
  python -m dataset index --format lines corpus.md

status: 0, or 1 if a file is damaged, or 2 if a file is missing, of another kind or
compressed, or its index can't be written
"""

SUMMARY = "write an index next to each file, for random access"
LINE_SUFFIXES = (".txt", ".text", ".log", ".jsonl", ".ndjson")
FORMATS: dict[str, type[TFRecordIndex | LineIndex]] = {"tfrecord": TFRecordIndex, "lines": LineIndex}


def add(commands: Subparsers) -> None:
    """Declare the command for TFRecord files and its arguments."""
    parser = add_file_command(commands, "index", run, SUMMARY, MORE, may_be_compressed=False)
    parser.set_defaults(format="tfrecord")


def add_formats(formats: Subparsers) -> None:
    """Declare the command for files of all formats and its arguments."""
    parser = add_command(formats, "index", run, SUMMARY, MORE_FORMATS)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or a pattern such as 'train-*'")
    words = "format of the files: tfrecord, or lines for text and JSON Lines; by default the names determine it"
    parser.add_argument("--format", choices=FORMATS, help=words)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. An error with one file does not affect the others."""
    status, made, errors = GOOD, [], []
    for path in file_names(arguments.files):
        records, noun, damage = None, "record", None
        try:
            records, noun = _make(path, arguments.format)
        except DataLossError as error:
            damage = error
            status = max(status, DAMAGED)
            errors.append(f"{error}; 'verify' shows how much is lost")
        except (CommandError, OSError) as error:
            status = USAGE
            errors.append(error_words(error))
        if records is not None and not arguments.json:
            say(f"{printable(path + SUFFIX)}: {counted(records, noun)}")
        made.append({"path": path, "index": path + SUFFIX, "records": records, "damage": damage_json(damage)})
    if arguments.json:
        say_json({"files": made, "errors": errors})
    for words in errors:
        complain(words)
    return status


def _make(path: str, of_format: str | None) -> tuple[int, str]:
    """Write the index of a file; return how many records or lines it has, and which of these."""
    name = of_format or ("lines" if path.lower().endswith(LINE_SUFFIXES) else "tfrecord")
    file = look_at(path, strict=name == "tfrecord")
    if file.compression:
        raise CommandError(
            f"{path}: a compressed file can't have an index; "
            + ("'merge --compression none' writes it uncompressed" if name == "tfrecord" else "decompress it first")
        )
    index = FORMATS[name].build(path)
    index.save()
    return len(index), "record" if name == "tfrecord" else "line"

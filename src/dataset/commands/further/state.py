"""``state``: describe a file that ``checkpoint.save`` wrote, or list the records of the steps after it."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from dataset.checkpoint import describe, records
from dataset.checkpoint.state_files import load
from dataset.commands.command_errors import GOOD, CommandError
from dataset.commands.common_options import Subparsers, add_command, count
from dataset.commands.display.terminal import json_text, say
from dataset.dataset import Dataset

MORE = """\
Reading a file executes no code from it.


With --records, the given number of steps after the state are computed again, and
each record that they are made from is printed as one line of JSON, which can be
used as a line of a skip list (Dataset.skip_records). This needs the pipeline: a
module of your program and the name of a Dataset in it, or of a function without
arguments that returns one. Importing the module and computing the steps runs its
code.

examples:
  python -m dataset state train.state
  python -m dataset state train.state --records 2 --pipeline my_training:train_data

status: 0, or 1 if a file is damaged or not a state, or 2 if a file is missing
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_command(commands, "state", run, "show the position of a saved iterator", MORE)
    parser.add_argument("files", nargs="+", metavar="PATH", help="a file that checkpoint.save() wrote")
    parser.add_argument(
        "--records", nargs="?", type=count, const=1, metavar="N", help="list the records of the next N steps (1)"
    )
    parser.add_argument("--pipeline", metavar="MODULE:NAME", help="the Dataset whose state it is")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if (arguments.records is None) is not (arguments.pipeline is None):
        raise CommandError("--records and --pipeline must be given together")
    if arguments.records is not None:
        return _list_records(arguments)
    for number, path in enumerate(arguments.files):
        if number:
            say()
        say(*describe(path).splitlines())
    return GOOD


def _list_records(arguments: argparse.Namespace) -> int:
    pipeline = _pipeline(arguments.pipeline)
    for path in arguments.files:
        for step, found in records(load(path).state, pipeline, arguments.records).items():
            for record in found.to_list():
                say(json_text({"step": step, **record}))
    return GOOD


def _pipeline(name: str) -> Dataset[Any]:
    """Import the Dataset that ``MODULE:NAME`` names."""
    module, colon, attribute = name.partition(":")
    if not colon:
        raise CommandError(f"--pipeline must be MODULE:NAME, got {name!r}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # as for "python -m module"
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise CommandError(f"--pipeline {name}: {error}") from error
    made = found() if callable(found) and not isinstance(found, Dataset) else found
    if not isinstance(made, Dataset):
        raise CommandError(f"--pipeline {name}: expected a Dataset, got {type(made).__name__}")
    return made

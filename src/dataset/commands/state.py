"""``state``: describe a file that ``checkpoint.save`` wrote."""

from __future__ import annotations

import argparse

from dataset.checkpoint import describe
from dataset.commands.command_errors import GOOD
from dataset.commands.common_options import Subparsers, add_command
from dataset.commands.display.terminal import say

__all__ = ["add"]

MORE = """\
Reading a file executes no code from it.

example:
  python -m dataset state train.state

status: 0, or 1 if a file is damaged or not a state, or 2 if a file is missing
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_command(commands, "state", run, "show the position of a saved iterator", MORE)
    parser.add_argument("files", nargs="+", metavar="PATH", help="a file that checkpoint.save() wrote")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    for number, path in enumerate(arguments.files):
        if number:
            say()
        for line in describe(path).splitlines():
            say(line)
    return GOOD

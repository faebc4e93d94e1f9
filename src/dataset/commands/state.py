"""``state``: what is in a file that ``checkpoint.save`` wrote, in words."""

from __future__ import annotations

import argparse

from dataset.checkpoint import describe
from dataset.commands.arguments import Subparsers, add_command
from dataset.commands.errors import GOOD
from dataset.commands.terminal import say

__all__ = ["add"]

MORE = """\
Nothing in a file is executed.

example:
  python -m dataset state train.state

status: 0, or 1 if a file is damaged or no state, or 2 if one is missing
"""


def add(commands: Subparsers) -> None:
    """Say what the arguments are."""
    parser = add_command(commands, "state", run, "say where a saved iterator stood", MORE)
    parser.add_argument("files", nargs="+", metavar="PATH", help="a file that checkpoint.save() wrote")


def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    for number, path in enumerate(arguments.files):
        if number:
            say()
        for line in describe(path).splitlines():
            say(line)
    return GOOD

"""``main``: reads the command line, runs a command, and gives every way of ending its words and its status.

A user's mistake is one line on standard error, never a traceback. What is not foreseen here is a bug, and shows one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dataset.commands import head, index, info, merge, split, state, verify
from dataset.commands.errors import DAMAGED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandError, os_error_words
from dataset.commands.terminal import complain
from dataset.errors import DataLossError, StateError

__all__ = ["main", "parser"]

COMMANDS = (info, head, verify, index, split, merge)

MORE = """\
'python -m dataset tfrecord COMMAND --help' says more of each command and shows examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the arguments; by default those of the process.

    Returns:
        The exit status: 0 if all is good, 1 if a file is damaged, 2 if the command line is wrong or a file is missing,
        of another kind or can't be written, 130 after Ctrl-C, 141 if nobody reads the output any more.

    Raises:
        SystemExit: with status 2 from ``argparse``, for arguments that it refuses, and with 0 for ``--help``.
    """
    arguments = parser().parse_args(argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return status


def _run(arguments: argparse.Namespace) -> int:
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        raise
    except DataLossError as damage:
        complain(f"{damage}; 'verify' says how much is lost")
        return DAMAGED
    except StateError as damage:
        complain(str(damage))
        return DAMAGED
    except CommandError as error:
        complain(str(error))
    except OSError as error:
        complain(os_error_words(error))
    return USAGE


def parser() -> argparse.ArgumentParser:
    """All formats and commands, with their arguments."""
    program = argparse.ArgumentParser("python -m dataset", description="Looks at files of data, and rewrites them.")
    formats = program.add_subparsers(title="formats and commands", metavar="FORMAT", required=True)
    tfrecord = formats.add_parser(
        "tfrecord",
        help="TFRecord files",
        description="Looks at TFRecord files, and rewrites them.",
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = tfrecord.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    state.add(formats)
    return program

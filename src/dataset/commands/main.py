"""Entry point of the command line: parses the arguments, runs a command, and maps errors to messages and statuses.

An error of the user is printed as one line on standard error, without a traceback. Any other exception is a bug and is
shown with its traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dataset.commands import index, info, verify
from dataset.commands.command_errors import DAMAGED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandError, error_words
from dataset.commands.display.terminal import complain
from dataset.commands.further import doctor, head, live_ranks, merge, repair, split, state
from dataset.errors import DataLossError, StateError
from dataset.extras import EXTRAS, missing_modules
from dataset.native.library import kernels_status
from dataset.version import __version__

COMMANDS = (info, head, verify, repair, index, split, merge)

MORE = """\
'python -m dataset tfrecord COMMAND --help' describes each command and shows examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the arguments; by default those of the process.

    Returns:
        The exit status: 0 on success, 1 if a file is damaged, 2 if the command line is wrong or a file is missing, of
        another kind or cannot be written, 130 after Ctrl-C, 141 if the reader of the output has closed the pipe.

    Raises:
        SystemExit: with status 2 from ``argparse`` for invalid arguments, and with 0 for ``--help``.
    """
    arguments = parser().parse_args(argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output at exit, which would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return status


def _run(arguments: argparse.Namespace) -> int:
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        raise
    except DataLossError as damage:
        complain(f"{damage}; 'verify' shows how much is lost")
        return DAMAGED
    except StateError as damage:
        complain(str(damage))
        return DAMAGED
    except (CommandError, OSError) as error:
        complain(error_words(error))
    return USAGE


class _ShowVersion(argparse.Action):
    """Option that shows the version, whether the native kernels are in use, which loads them, and the extras."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        extras = ", ".join(name for name in EXTRAS if not missing_modules(name))
        sys.stdout.write(f"dataset {__version__}; native kernels: {kernels_status()}\nextras: {extras or 'none'}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the parser for all formats and commands."""
    program = argparse.ArgumentParser("python -m dataset", description="Inspects and rewrites data files.")
    program.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    formats = program.add_subparsers(title="formats and commands", metavar="FORMAT", required=True)
    tfrecord = formats.add_parser(
        "tfrecord",
        help="TFRecord files",
        description="Inspects and rewrites TFRecord files.",
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = tfrecord.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    index.add_formats(formats)
    state.add(formats)
    live_ranks.add(formats)
    doctor.add(formats)
    return program

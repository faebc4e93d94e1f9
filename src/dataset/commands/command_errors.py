"""The exception for errors of the user, and the exit statuses."""

from __future__ import annotations

import os

GOOD = 0
DAMAGED = 1  # the content of a file is not what was written
USAGE = 2  # the command line is wrong, or a file is missing or of another kind; argparse uses the same status
INTERRUPTED = 130  # the status that a shell shows for a program killed by SIGINT; the next one is that for SIGPIPE
PIPE_CLOSED = 141


class CommandError(Exception):
    """An error of the user; the message says what to do. The command ends with status 2."""


def error_words(error: CommandError | OSError) -> str:
    """Return the message of an error; that of a system error without its number.

    >>> error_words(FileNotFoundError(2, "No such file or directory", "a.tfrecord"))
    'a.tfrecord: No such file or directory'
    """
    if isinstance(error, CommandError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"

"""Progress bar: one line on standard error with the progress of a command. It is shown only on a terminal.

It uses no thread: commands report their progress, and the line is drawn at most ten times per second.
"""

from __future__ import annotations

import sys
from typing import TextIO

from dataset.closing import Closing
from dataset.commands.display.terminal import counted, printable, size
from dataset.io.tfrecord.progress_line import INTERVAL_SECONDS
from dataset.world import time

BAR_WIDTH = 24
NAME_WIDTH = 30


class ProgressMeter(Closing):
    r"""Progress bar for files; as a context manager, it is removed at the end.

    Args:
        total: the total size of all files in bytes.
        stream: the stream to draw on; by default standard error.

    >>> import io
    >>> screen = io.StringIO()
    >>> screen.isatty = lambda: True
    >>> with ProgressMeter(200, screen) as progress:
    ...     progress.start("a.tfrecord", 200)
    ...     progress.update(50, 7)
    >>> screen.getvalue().split("\r")[1].rstrip()
    '[######                  ]  25%  50 B of 200 B, 7 records  a.tfrecord'
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._width = 0  # the width of the current line
        self._next = 0.0
        self._before = self._size = 0  # the sizes of the finished files together, and of the current file
        self._records_before = self._records = 0
        self._name = ""

    def start(self, name: str, size: int) -> None:
        """Start a file of this name and size in bytes."""
        self._before += self._size
        self._records_before += self._records
        self._size, self._records = size, 0
        name = printable(name)
        self._name = name if len(name) <= NAME_WIDTH else "..." + name[-NAME_WIDTH + 3 :]

    def update(self, done: int, records: int) -> None:
        """Report how many bytes and records of the current file are done."""
        self._records = records
        if not self._shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + INTERVAL_SECONDS
        done += self._before
        part = min(done / self._total, 1.0) if self._total else 1.0
        bar = ("#" * int(part * BAR_WIDTH)).ljust(BAR_WIDTH)
        amount = f"{size(done)} of {size(self._total)}, {counted(self._records_before + records, 'record')}"
        self._draw(f"[{bar}] {int(100 * part):3}%  {amount}  {self._name}")

    def close(self) -> None:
        """Remove the line, so that other text can be printed."""
        if self._width:
            self._draw("")
            self._stream.write("\r")
            self._stream.flush()
            self._next = 0.0

    def _draw(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

"""Progress line on stderr for long operations. The working thread itself draws it."""

from __future__ import annotations

import shutil
import sys

from dataset.closing import Closing
from dataset.plan.drawing.brief import brief_bytes
from dataset.world import time

INTERVAL_SECONDS = 0.1  # between updates: as fast as a person can read, and negligible cost
BAR_CELLS_MAX = 20
BAR_CELLS_MIN = 5  # a shorter bar shows no more than the percentage


class ProgressLine(Closing):
    """Progress line with the number of records, records per second, and the percentage if the total is known.

    Args:
        label: the name of the operation.
        total: the total number of records, or None.
        show: whether to draw; with None, only if stderr is a terminal.

    Used as a context manager; at the end of the block the line is drawn a last time and left on the screen.
    """

    def __init__(self, label: str, total: int | None = None, show: bool | None = None) -> None:
        self._label = label
        self._total = total
        self._stream = sys.stderr  # None without a console
        self._shown = self._stream is not None and (self._stream.isatty() if show is None else show)
        self._records = self._bytes = 0
        self._began = self._drawn = time.monotonic()
        self._width = 0  # of the text currently on the line

    def add(self, records: int, nbytes: int) -> None:
        """Count finished records and bytes, and redraw the line if it is due."""
        self._records += records
        self._bytes += nbytes
        if self._shown and time.monotonic() - self._drawn >= INTERVAL_SECONDS:
            self._draw()

    def close(self) -> None:
        """Draw the line a last time and end it."""
        if self._shown:
            self._draw(end="\n")

    def _draw(self, end: str = "") -> None:
        self._drawn = time.monotonic()
        line = self.text(self._drawn - self._began, shutil.get_terminal_size().columns - 1)
        try:
            self._stream.write(f"\r{line.ljust(self._width)}{end}")
            self._stream.flush()
        except (OSError, ValueError):  # stderr was closed; the operation must continue
            self._shown = False
        self._width = len(line)

    def text(self, seconds: float, columns: int) -> str:
        """Return the text of the line after ``seconds``, with at most ``columns`` characters."""
        rate = self._records / seconds if seconds > 0 else 0.0
        speed = f"{rate:,.0f}/s, {brief_bytes(self._bytes)}"
        if not self._total:
            return f"{self._label}: {self._records:,} records, {speed}"[:columns]
        share = min(self._records / self._total, 1.0)
        words = f"{self._label}: {share:4.0%}, {self._records:,} of {self._total:,} records, {speed}"
        return (words + _bar(share, columns - len(words)))[:columns]


def _bar(share: float, columns: int) -> str:
    """Return a bar of at most ``columns`` characters; empty if there is too little room."""
    cells = min(columns - len(" []"), BAR_CELLS_MAX)
    return f" [{'#' * int(share * cells):<{cells}}]" if cells >= BAR_CELLS_MIN else ""

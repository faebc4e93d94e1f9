"""A line on stderr that says how far a long piece of work has come. It is drawn by who does the work, in passing."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self

from dataset.plan.brief import brief_bytes

__all__ = ["ProgressLine"]

INTERVAL_SECONDS = 0.1  # between drawings: as fast as one can read, and nothing beside the work
BAR_CELLS_MAX = 20
BAR_CELLS_MIN = 5  # a shorter bar says nothing that the percentage does not


class ProgressLine:
    """Says how many records are done, how many that is in a second, and of how many, if that is known.

    Args:
        label: what is being done.
        total: how many records there will be, or None.
        show: whether to draw; None for only where stderr is a terminal.

    Used in a ``with`` block, at whose end the line is drawn a last time and left.
    """

    def __init__(self, label: str, total: int | None = None, show: bool | None = None) -> None:
        self._label = label
        self._total = total
        self._stream = sys.stderr  # None where there is no console
        self._shown = self._stream is not None and (self._stream.isatty() if show is None else show)
        self._records = self._bytes = 0
        self._began = self._drawn = time.monotonic()
        self._width = 0  # of what is on the line

    def add(self, records: int, nbytes: int) -> None:
        """So many more are done."""
        self._records += records
        self._bytes += nbytes
        if self._shown and time.monotonic() - self._drawn >= INTERVAL_SECONDS:
            self._draw()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._draw(end="\n")

    def _draw(self, end: str = "") -> None:
        self._drawn = time.monotonic()
        line = self.text(self._drawn - self._began, shutil.get_terminal_size().columns - 1)
        try:
            self._stream.write(f"\r{line.ljust(self._width)}{end}")
            self._stream.flush()
        except (OSError, ValueError):  # stderr was closed, which is no reason to stop the work
            self._shown = False
        self._width = len(line)

    def text(self, seconds: float, columns: int) -> str:
        """What the line says after so many seconds, where there is room for so many characters."""
        rate = self._records / seconds if seconds > 0 else 0.0
        speed = f"{rate:,.0f}/s, {brief_bytes(self._bytes)}"
        if not self._total:
            return f"{self._label}: {self._records:,} records, {speed}"[:columns]
        share = min(self._records / self._total, 1.0)
        words = f"{self._label}: {share:4.0%}, {self._records:,} of {self._total:,} records, {speed}"
        return (words + _bar(share, columns - len(words)))[:columns]


def _bar(share: float, columns: int) -> str:
    """A bar for as many characters as there is room for; empty where that is too little."""
    cells = min(columns - len(" []"), BAR_CELLS_MAX)
    return f" [{'#' * int(share * cells):<{cells}}]" if cells >= BAR_CELLS_MIN else ""

"""Logger of skipped records in damaged TFRecord files; the number of messages is bounded."""

from __future__ import annotations

import logging
from collections.abc import Callable

from dataset.errors import DataLossError

LOGGED_MAX = 10
"""Damaged records that are logged individually: enough to see a pattern. After that only a summary is logged."""

_log = logging.getLogger("dataset")


class DamageLog:
    """Log of damage: warnings of the logger ``dataset``.

    The log records contain only strings: handlers may keep them, and an exception would keep an iterator alive.

    Args:
        reader: the name of the reader, for the messages.
        count: called with the number of skipped places, each time.
    """

    def __init__(self, reader: str, count: Callable[[int], object] | None = None) -> None:
        self._reader = reader
        self._count = count or (lambda _: None)
        self._passed_over = 0

    def passed_over(self, damage: DataLossError) -> None:
        """Log that a record was skipped."""
        self._count(1)
        self._passed_over += 1
        if self._passed_over <= LOGGED_MAX:
            _log.warning("%s skipped a damaged record: %s", self._reader, str(damage))

    def gave_up(self, damage: DataLossError) -> None:
        """Log that the rest of a file was skipped."""
        self._count(1)
        _log.warning("%s skipped the rest of a damaged file: %s", self._reader, str(damage))

    def sum_up(self, where: str) -> None:
        """Log the total number of skipped records if not all were logged, and reset the count.

        Args:
            where: where the records are, for the message.
        """
        passed_over, self._passed_over = self._passed_over, 0
        if passed_over > LOGGED_MAX:
            words = "%s skipped %d damaged records of %s; only the first %d were logged"
            _log.warning(words, self._reader, passed_over, where, LOGGED_MAX)

"""How often and when a request that failed is sent again.

The numbers are read each time, so a program may set them before it starts: ``retrying.TRIES = 10``.
"""

from __future__ import annotations

import random

from dataset.errors import BrokenConnectionError, ClosedError, FileChangedError
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.failures import explained, may_pass
from dataset.redaction import raise_redacted, redacted_error, text_without_secrets

__all__ = ["Tries"]

TRIES = 5
"""How often in a row a range of bytes is asked for in vain before that is an error."""

FIRST_WAIT_SECONDS = 0.25
"""Before the second try. It doubles from try to try; of each, a random part of up to one half is left out, or all
readers that a server has turned away would come back at the same moment."""

LAST_WAIT_SECONDS = 8.0
"""Waits grow no longer than this."""

STALL_SECONDS = 30.0
"""A server that sends nothing for so long has failed: a try has come to nothing. Where fsspec does not show the bytes
as they come, which is everywhere but with HTTP and S3, a whole range has to come in twice this time."""

PROGRESS_BYTES = 1 << 16
"""So many bytes from one try make it count as no failure: a long range from a server that hangs up often gets done."""


class Tries:
    """Counts the tries of one request.

    Args:
        path: for messages, which show none of its secrets.
        interruption: ends the waits.
    """

    def __init__(self, path: str, interruption: CancellationToken) -> None:
        self._path = path
        self._interruption = interruption
        self._failed = 0  # in a row

    def failed(self, error: Exception, nbytes: int = 0) -> None:
        """Take note of a failure, and wait for the time of the next try, or until interrupted.

        Args:
            error: what was raised.
            nbytes: how many bytes came before that.

        Raises:
            OSError: there is no use in another try, or there have been enough.
        """
        if isinstance(error, ClosedError | FileChangedError):
            redacted_error(error, self._path)
            raise error
        if not may_pass(error):
            raise_redacted(explained(error, self._path), error, self._path)
        self._failed = 1 if nbytes >= PROGRESS_BYTES else self._failed + 1
        if self._failed >= TRIES:
            last = text_without_secrets(f"{type(error).__name__}: {error}", self._path)
            words = f"gave up after {self._failed} tries in a row; the last one failed with {last}"
            raise_redacted(BrokenConnectionError(words, path=self._path, tries=self._failed), error, self._path)
        self._interruption.wait(self._wait_seconds())

    def _wait_seconds(self) -> float:
        longest: float = min(LAST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (self._failed - 1))
        return longest * (1 - random.random() / 2)  # noqa: S311  # nobody is to be kept from guessing it

"""Retry policy: how often and when a failed request is retried.

The constants are read on every use, so a program may set them at startup: ``retrying.TRIES = 10``.
"""

from __future__ import annotations

import random

from dataset.errors import BrokenConnectionError, ClosedError, FileChangedError
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.failures import explained, may_pass
from dataset.redaction import raise_redacted, redacted_error, text_without_secrets

TRIES = 5
"""Number of consecutive failed requests for a range of bytes after which an error is raised."""

FIRST_WAIT_SECONDS = 0.25
"""Wait before the second try. It doubles with each try, and is shortened by a random fraction of up to one half, so
that readers that a server has rejected do not all return at the same moment."""

LAST_WAIT_SECONDS = 8.0
"""Maximum wait."""

STALL_SECONDS = 30.0
"""A try fails if the server sends nothing for this long. fsspec shows bytes as they arrive only for HTTP and S3.
Elsewhere a whole range has to arrive within twice this time."""

PROGRESS_BYTES = 1 << 16
"""A failed try that delivered this many bytes resets the count of failures. So a long range can be fetched from a
server that often drops the connection."""


class Tries:
    """Retry counter of one request.

    Args:
        path: for messages, which do not show its secrets.
        interruption: ends the waits.
    """

    def __init__(self, path: str, interruption: CancellationToken) -> None:
        self._path = path
        self._interruption = interruption
        self._failed = 0  # in a row

    def failed(self, error: Exception, nbytes: int = 0) -> None:
        """Record a failure, and wait until the next try or an interruption.

        Args:
            error: the exception that was raised.
            nbytes: how many bytes were received before it.

        Raises:
            OSError: another try can't succeed, or the number of tries is exhausted.
        """
        if isinstance(error, ClosedError | FileChangedError):
            redacted_error(error, self._path)
            raise error
        if not may_pass(error):
            raise_redacted(explained(error, self._path), error, self._path)
        self._failed = 1 if nbytes >= PROGRESS_BYTES else self._failed + 1
        if self._failed >= TRIES:
            last = text_without_secrets(f"{type(error).__name__}: {error}", self._path)
            words = f"gave up after {self._failed} tries in a row; the last error was {last}"
            raise_redacted(BrokenConnectionError(words, path=self._path, tries=self._failed), error, self._path)
        self._interruption.wait(self._wait_seconds())

    def _wait_seconds(self) -> float:
        longest: float = min(LAST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (self._failed - 1))
        return longest * (1 - random.random() / 2)  # noqa: S311  # not used for security

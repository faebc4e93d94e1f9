"""Retry policy: how often and when a failed request is retried.

The constants are read on every use, so a program may set them at startup: ``retrying.TRIES = 10``.
"""

from __future__ import annotations

import random

from dataset.errors import BrokenConnectionError, ClosedError, FileChangedError
from dataset.io.files.remote import backoff
from dataset.io.files.remote.backoff import Backoff
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.failures import TOO_MANY, UNAVAILABLE, explained, may_pass, retry_after, status_of
from dataset.redaction import raise_redacted, redacted_error, text_without_secrets

TRIES = 5
"""Number of consecutive failed requests for a range of bytes after which an error is raised."""

FIRST_WAIT_SECONDS = 0.25
"""Wait before the second try. It doubles with each try, and is shortened by a random fraction of up to one half, so
that readers that a server has rejected do not all return at the same moment."""

LAST_WAIT_SECONDS = 8.0
"""Maximum wait."""

REJECTED_TRIES = 20
"""The same for requests that the server rejects because there are too many: with status 429, or with Retry-After."""

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
        host: the backoff of its host; by default, that of this process.
    """

    def __init__(self, path: str, interruption: CancellationToken, host: Backoff | None = None) -> None:
        self._path = path
        self._interruption = interruption
        self._host = host or Backoff(path)
        self._failed = 0  # in a row
        self._rejected = 0  # the same, of requests that the server rejected because of their number

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
        if nbytes >= PROGRESS_BYTES:
            self._failed = self._rejected = 0
        is_rejected = status_of(error) == TOO_MANY or retry_after(error) is not None
        if is_rejected:
            self._rejected += 1
        else:
            self._failed += 1
        if self._failed >= TRIES or self._rejected >= REJECTED_TRIES:
            tries = self._failed + self._rejected
            last = text_without_secrets(f"{type(error).__name__}: {error}", self._path)
            words = f"gave up after {tries} tries in a row; the last error was {last}"
            raise_redacted(BrokenConnectionError(words, path=self._path, tries=tries), error, self._path)
        seconds = _wait_seconds(self._rejected if is_rejected else self._failed)
        self._interruption.wait(back_off(self._host, error, seconds))

    def wait_for_host(self) -> None:
        """Wait until requests may be sent to the host, or until the interruption."""
        self._host.wait(self._interruption)


def back_off(host: Backoff, error: BaseException, seconds: float) -> float:
    """Let all readers of a host wait if the error says that it is overloaded.

    Args:
        host: the backoff of the host.
        error: the error of a request.
        seconds: how long to wait if the host does not say how long.

    Returns:
        How long the reader has to wait that got the error.
    """
    requested = retry_after(error)
    if requested is None and status_of(error) not in {TOO_MANY, UNAVAILABLE}:
        return seconds
    seconds = max(seconds, min(requested or 0.0, backoff.RETRY_AFTER_SECONDS_MAX))
    host.extend(seconds)
    return seconds


def _wait_seconds(failed: int) -> float:
    longest: float = min(LAST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (failed - 1))
    return longest * (1 - random.random() / 2)  # noqa: S311  # not used for security

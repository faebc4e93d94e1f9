"""Backoff of a host: when requests may be sent again after it has rejected one because of its load.

All readers of the host in this process wait together. With a disk cache, all processes that share it do: the time until
which they wait is the modification time of a file in the folder of the cache.
"""

from __future__ import annotations

import contextlib
import os
import random

from dataset.io.files.locks import NO_FOLLOW
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.disk_cache import DiskCache
from dataset.world import time

RETRY_AFTER_SECONDS_MAX = 120.0
"""The longest wait that a server may request with Retry-After. A longer one is shortened to this."""

_HOSTS_MAX = 1024

_until: dict[str, float] = {}  # by host, in this process


class Backoff:
    """Backoff of the host of a file.

    Args:
        path: the path of the file.
        cache: shares the backoff with other processes.
    """

    def __init__(self, path: str, cache: DiskCache | None = None) -> None:
        scheme, _, rest = path.rpartition("::")[2].partition("://")
        self._host = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
        digest = None if cache is None else cache.digest("host", self._host).hexdigest()
        self._path = None if cache is None else f"{cache.folder}/{digest}.host"

    def remaining(self) -> float:
        """Return for how many seconds no requests may be sent to the host."""
        until = _until.get(self._host, 0.0)
        if self._path is not None:
            with contextlib.suppress(OSError):  # no process was rejected
                until = max(until, os.lstat(self._path).st_mtime)
        if not until:
            return 0.0
        return min(max(0.0, until - time.time()), RETRY_AFTER_SECONDS_MAX)

    def wait(self, interruption: CancellationToken) -> None:
        """Wait until requests may be sent, or until the interruption. Not all readers return at the same moment."""
        seconds = self.remaining()
        if seconds:
            interruption.wait(seconds * (1 + random.random() / 2))  # noqa: S311  # not used for security

    def extend(self, seconds: float) -> None:
        """Let all readers wait for this long from now, unless they wait longer already."""
        if seconds <= self.remaining():
            return
        until = time.time() + seconds
        if len(_until) >= _HOSTS_MAX:
            _until.clear()
        _until[self._host] = until
        if self._path is not None:
            with contextlib.suppress(OSError):  # a full disk, for example: only this process waits
                descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | NO_FOLLOW, 0o600)
                try:
                    os.utime(descriptor, (until, until))
                finally:
                    os.close(descriptor)

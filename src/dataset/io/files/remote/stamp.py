"""What tells a remote file from what it was before somebody wrote to it."""

from __future__ import annotations

import hashlib

from dataset.io.files.remote.cancellation import current_interruption
from dataset.io.files.remote.objects import Version, version_of
from dataset.io.files.remote.paths import filesystem_of
from dataset.io.files.remote.retrying import Tries
from dataset.redaction import redacted

__all__ = ["remote_stamp"]


def remote_stamp(path: str) -> tuple[int, int]:
    """The size of a remote file in bytes, and a number that changes with its ETag, or else its time of change.

    Asked anew at each call. Where a storage tells neither, the number is always the same.

    Raises:
        OSError: as for reading; also where the storage does not tell the size.
        ImportError, ValueError: as for reading.
    """
    version = _version(path)
    if version.size is None:
        raise OSError(f"{redacted(path)}: the storage does not tell how large the file is, so it can't have an index")
    words = (version.etag or version.modified or "").encode()
    return version.size, int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little", signed=True)


def _version(path: str) -> Version:
    system, name = filesystem_of(path)
    tries = Tries(path, current_interruption())
    while True:
        try:
            system.invalidate_cache()
            return version_of(system.info(name), path)
        except Exception as error:  # noqa: BLE001  # which ones may pass is not ours to know
            tries.failed(error)

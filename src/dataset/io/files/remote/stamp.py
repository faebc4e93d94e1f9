"""Version stamps of remote files: they change when a file is modified."""

from __future__ import annotations

import hashlib

from dataset.io.files.remote.cancellation import current_interruption
from dataset.io.files.remote.objects import Version, version_of
from dataset.io.files.remote.paths import filesystem_of
from dataset.io.files.remote.retrying import Tries
from dataset.redaction import redacted


def remote_stamp(path: str) -> tuple[int, int]:
    """Return the size of a remote file in bytes, and a number derived from its ETag or, without one, its change time.

    Each call sends a request. If the storage provides neither, the number is always the same.

    Raises:
        OSError: as for reading; also if the storage does not provide the size.
        ImportError, ValueError: as for reading.
    """
    version = _version(path)
    if version.size is None:
        raise OSError(f"{redacted(path)}: the storage does not provide the size of the file, so it can't be indexed")
    words = (version.etag or version.modified or "").encode()
    return version.size, int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little", signed=True)


def _version(path: str) -> Version:
    system, name = filesystem_of(path)
    tries = Tries(path, current_interruption())
    while True:
        tries.wait_for_host()
        try:
            system.invalidate_cache()
            return version_of(system.info(name), path)
        except Exception as error:  # noqa: BLE001  # file systems raise errors of any type
            tries.failed(error)

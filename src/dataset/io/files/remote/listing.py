"""Listing of remote files whose names match a pattern."""

from __future__ import annotations

from dataset.io.files.remote.cancellation import current_interruption
from dataset.io.files.remote.paths import filesystem_of
from dataset.io.files.remote.retrying import Tries


def matching_remote_files(pattern: str) -> list[str]:
    """Return the names that match, in no particular order, with the scheme of the pattern.

    Each call lists the files again: fsspec's cached listings are dropped.

    Args:
        pattern: a path with a scheme; it may contain ``*``, ``?``, ``[...]`` and ``[!...]``.

    Raises:
        OSError: as for reading.
        ImportError, ValueError: as for reading.
    """
    system, name = filesystem_of(pattern)
    tries = Tries(pattern, current_interruption())
    while True:
        try:
            system.invalidate_cache()
            found = system.glob(name)
            return [_as_in(pattern, one) for one in found]
        except FileNotFoundError:  # the directory or bucket does not exist, so nothing matches
            return []
        except Exception as error:  # noqa: BLE001  # file systems raise errors of any type
            tries.failed(error)


def _as_in(pattern: str, name: str) -> str:
    """Return a name of the file system in the form of the user's pattern.

    >>> _as_in("memory://a/*", "/a/b"), _as_in("simplecache::s3://a/*", "a/b"), _as_in("zip://*::s3://a/z", "b")
    ('memory://a/b', 'simplecache::s3://a/b', 'zip://b::s3://a/z')
    """
    head, _, rest = pattern.partition("://")
    if "://" in name:
        return name if "::" not in head else f"{head.rpartition('::')[0]}::{name}"
    body, chained, tail = rest.partition("::")
    if not body.startswith("/"):
        name = name.lstrip("/")
    return f"{head}://{name}{chained}{tail}"

"""Listing of remote files whose names match a pattern."""

from __future__ import annotations

from dataset.io.files.remote.cancellation import current_interruption
from dataset.io.files.remote.paths import filesystem_of
from dataset.io.files.remote.retrying import Tries


def matching_remote_files(pattern: str, as_glob: str) -> list[str]:
    """Return the names that match, in no particular order, with the scheme of the pattern.

    Each call lists the files again: fsspec's cached listings are dropped.

    Args:
        pattern: a path with a scheme. If it has brackets and is the name of a file, no other name matches.
        as_glob: the pattern in fsspec's syntax: with ``*``, ``?``, ``[...]`` and ``[!...]``.

    Raises:
        OSError: as for reading.
        ImportError, ValueError: as for reading.
    """
    (system, literal), (_, name) = filesystem_of(pattern), filesystem_of(as_glob)
    tries = Tries(pattern, current_interruption())
    while True:
        try:
            system.invalidate_cache()
            if "[" in literal and system.exists(literal):
                return [pattern]
            return [_as_in(pattern, one) for one in system.glob(name) if _dots(one) <= _dots(name)]
        except FileNotFoundError:  # the directory or bucket does not exist, so nothing matches
            return []
        except Exception as error:  # noqa: BLE001  # file systems raise errors of any type
            tries.failed(error)


def _dots(name: str) -> int:
    """Return how many parts of a path begin with a dot. A name with more of them than its pattern is hidden."""
    return f"/{name}".count("/.")


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

"""Which paths are remote, and the file system of one. fsspec is imported here, when the first such path is used."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from dataset.extras import load_extra
from dataset.redaction import raise_redacted, redacted, text_without_secrets

__all__ = ["ON_THIS_MACHINE", "FileSystem", "allow_protocols", "filesystem_of", "is_remote", "local_form", "schemes"]

FileSystem = Any
"""An ``fsspec.AbstractFileSystem``. The library has no types."""

# One letter is a drive of Windows. What has a slash before "://" is a local path: no file system has such a name.
ALLOWED = "DATASET_ALLOW_PROTOCOLS"
"""The environment variable that holds what ``allow_protocols`` was given, for worker processes, too."""

_UNTRUSTED = {"reference", "generic", "kerchunk"}
"""The content of such a file says which other files and hosts are read; fsspec 2024.6.1 to 2025.12 even runs it."""

_SCHEME = re.compile(r"((?:[A-Za-z][\w.+-]*::)*[A-Za-z][\w.+-]+)://")

ON_THIS_MACHINE = {"file", "local"}


def is_remote(path: str) -> bool:
    """Whether a path goes through fsspec: it begins with a scheme, or with several that are chained.

    >>> [is_remote(path) for path in ("s3://a/b", "simplecache::s3://a/b", "a/b", "C://a", "odd/a://b")]
    [True, True, False, False, False]
    """
    return "://" in path and _SCHEME.match(path) is not None


def schemes(path: str) -> list[str]:
    """The scheme of a remote path; of a chained one those in front of it, too, from the outermost on.

    >>> schemes("simplecache::s3://a/b")
    ['simplecache', 's3']
    """
    found = _SCHEME.match(path)
    assert found is not None
    return found[1].split("::")


def local_form(path: str) -> str | None:
    """The local path that a remote one stands for, as ``file:///tmp/a`` does; None where there is none."""
    if schemes(path)[0] not in ON_THIS_MACHINE or "::" in path:
        return None
    _, name = filesystem_of(path)
    return name


def allow_protocols(*protocols: str) -> None:
    """Allow paths that chain file systems of fsspec, such as ``simplecache::s3://bucket/a``, or use ``reference``.

    A path with one scheme needs no permission. Others do, because file names may come out of data, while what a chain
    does is up to each of its parts: it may write to this machine, ask other hosts, or, with ``reference`` and fsspec
    before 2026.1, run code. So the program says which parts it wants, all but the last of a chain, before it uses them.

    The permission is for this process and for those that it starts afterwards: it is kept in the environment variable
    ``DATASET_ALLOW_PROTOCOLS``, which may also be set outside, to names with commas between them.

    Args:
        protocols: names of fsspec's, such as "simplecache", "zip" or "reference".

    Raises:
        TypeError: if a name is not text.
        ValueError: if it is not the name of a protocol.

    >>> import dataset
    >>> dataset.io.allow_protocols("simplecache", "zip")
    """
    for protocol in protocols:
        if not isinstance(protocol, str):
            raise TypeError(f"allow_protocols(): a protocol must be text, got {protocol!r:.100}")
        if not re.fullmatch(r"[A-Za-z][\w.+-]*", protocol):
            raise ValueError(f"allow_protocols(): a protocol is a name such as 'simplecache', got {protocol!r:.100}")
    os.environ[ALLOWED] = ",".join(sorted(_allowed() | {protocol.lower() for protocol in protocols}))


def _allowed() -> set[str]:
    return {name.strip().lower() for name in os.environ.get(ALLOWED, "").split(",")} - {""}


def _check_allowed(path: str) -> None:
    """Raise ValueError for a path that needs a permission that the program has not given."""
    *chain, last = [link.partition("://")[0].lower() for link in path.split("::")]
    needed = {*chain, *({last} & _UNTRUSTED)} - _allowed()
    if needed:
        names = ", ".join(map(repr, sorted(needed)))
        raise ValueError(
            f"{redacted(path)}: a path that chains file systems, or lets the content of a file name other files, needs "
            f"the permission of the program, since file names may come out of data; if this is meant, call "
            f"dataset.io.allow_protocols({names:.200}) first"
        )


def filesystem_of(path: str) -> tuple[FileSystem, str]:
    """The file system that a remote path is in, and what the path is called there. Nothing is sent anywhere.

    Credentials and endpoints are what fsspec's own configuration says: its files, or the variables ``FSSPEC_...``.

    Raises:
        ImportError: fsspec, or what it needs for the scheme, is not installed.
        ValueError: there is no such scheme, or the configuration is wrong, or the path chains file systems, and the
            program has not allowed that with ``allow_protocols``.
    """
    _check_allowed(path)
    fsspec = load_extra("fsspec", "remote", "paths with a scheme, such as s3://, need")
    try:
        system, name = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise ImportError(f"{redacted(path)}: {_way_out(path)}", name=error.name) from error
    except ValueError as error:
        words = text_without_secrets(str(error), path)
        refused = ValueError(f"{redacted(path)}: no file system can be opened for this path: {words}")
        raise_redacted(refused, error, path)
    return system, str(name)


def _way_out(path: str) -> str:
    """What to install for the first file system of the path that cannot be imported."""
    registry = importlib.import_module("fsspec.registry")
    for scheme in [*schemes(path), *re.findall(r"::([A-Za-z][\w.+-]+)://", path)]:
        try:
            registry.get_filesystem_class(scheme)
        except ImportError as error:
            known = registry.known_implementations.get(scheme, {}).get("class", "")
            package = known.split(".")[0]
            if not package or package == "fsspec":  # one of fsspec's own, which needs something else
                return str(error)
            return f'{scheme}:// needs {package} beside fsspec: pip install {package} "dataset-combinators[remote]".'
        except ValueError:
            continue
    return "a library that fsspec needs for this path is not installed"

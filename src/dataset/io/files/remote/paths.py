"""Remote paths and their file systems. fsspec is imported here, when the first remote path is used."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from dataset.extras import load_extra
from dataset.redaction import raise_redacted, redacted, text_without_secrets

FileSystem = Any
"""An ``fsspec.AbstractFileSystem``. fsspec has no type annotations."""

ALLOWED = "DATASET_ALLOW_PROTOCOLS"
"""The environment variable that stores the protocols allowed by ``allow_protocols``; worker processes inherit it."""

_UNTRUSTED = {"reference", "generic", "kerchunk"}
"""The content of such a file names other files and hosts to read; fsspec 2024.6.1 to 2025.12 even executes it."""

# A single letter is a Windows drive. A path with a slash before "://" is local: no scheme contains a slash.
_SCHEME = re.compile(r"((?:[A-Za-z][\w.+-]*::)*[A-Za-z][\w.+-]+)://")

ON_THIS_MACHINE = {"file", "local"}


def is_remote(path: str) -> bool:
    """Return whether fsspec handles a path: it begins with a scheme, or with several chained ones.

    >>> [is_remote(path) for path in ("s3://a/b", "simplecache::s3://a/b", "a/b", "C://a", "odd/a://b")]
    [True, True, False, False, False]
    """
    return "://" in path and _SCHEME.match(path) is not None


def schemes(path: str) -> list[str]:
    """Return the schemes of a remote path, outermost first; more than one if the path is chained.

    >>> schemes("simplecache::s3://a/b")
    ['simplecache', 's3']
    """
    found = _SCHEME.match(path)
    assert found is not None
    return found[1].split("::")


def local_form(path: str) -> str | None:
    """Return the local path of a path with a local scheme, such as ``file:///tmp/a``; None for all others."""
    if schemes(path)[0] not in ON_THIS_MACHINE or "::" in path:
        return None
    _, name = filesystem_of(path)
    return name


def allow_protocols(*protocols: str) -> None:
    """Allow paths that chain file systems of fsspec, such as ``simplecache::s3://bucket/a``, or use ``reference``.

    A path with a single scheme needs no permission. A chained path does, because file names may come from untrusted
    data and each part of a chain can have effects: it may write to this machine, contact other hosts, or, with
    ``reference`` and fsspec before 2026.1, run code. So a program must allow all parts of a chain but the last before
    it uses them.

    The permission holds for this process and for processes that it starts afterwards. It is stored in the environment
    variable ``DATASET_ALLOW_PROTOCOLS``, which may also be set by the user to a comma-separated list of names.

    Args:
        protocols: names of fsspec's protocols, such as "simplecache", "zip" or "reference".

    Raises:
        TypeError: a name is not a string.
        ValueError: a name is not the name of a protocol.

    >>> import dataset
    >>> dataset.io.allow_protocols("simplecache", "zip")
    """
    for protocol in protocols:
        if not isinstance(protocol, str):
            raise TypeError(f"allow_protocols(): a protocol must be a string, got {protocol!r:.100}")
        if not re.fullmatch(r"[A-Za-z][\w.+-]*", protocol):
            raise ValueError(
                f"allow_protocols(): a protocol must be a name such as 'simplecache', got {protocol!r:.100}"
            )
    os.environ[ALLOWED] = ",".join(sorted(_allowed() | {protocol.lower() for protocol in protocols}))


def _allowed() -> set[str]:
    return {name.strip().lower() for name in os.environ.get(ALLOWED, "").split(",")} - {""}


def _check_allowed(path: str) -> None:
    """Raise ValueError if a path needs a permission that the program has not granted."""
    *chain, last = [link.partition("://")[0].lower() for link in path.split("::")]
    needed = {*chain, *({last} & _UNTRUSTED)} - _allowed()
    if needed:
        names = ", ".join(map(repr, sorted(needed)))
        raise ValueError(
            f"{redacted(path)}: a path that chains file systems, or refers to a file whose content names other files, "
            f"must be allowed by the program, because file names may come from untrusted data; if this path is "
            f"intended, call dataset.io.allow_protocols({names:.200}) first"
        )


def filesystem_of(path: str) -> tuple[FileSystem, str]:
    """Return the file system of a remote path, and the name of the file in it. No request is sent.

    Credentials and endpoints come from fsspec's own configuration: its files, or the variables ``FSSPEC_...``.

    Raises:
        ImportError: fsspec, or a package that it needs for the scheme, is not installed.
        ValueError: the scheme is unknown, the configuration is wrong, or the path chains file systems that the program
            has not allowed with ``allow_protocols``.
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
    """Return what to install for the first file system of the path that cannot be imported."""
    registry = importlib.import_module("fsspec.registry")
    for scheme in [*schemes(path), *re.findall(r"::([A-Za-z][\w.+-]+)://", path)]:
        try:
            registry.get_filesystem_class(scheme)
        except ImportError as error:
            known = registry.known_implementations.get(scheme, {}).get("class", "")
            package = known.split(".")[0]
            if not package or package == "fsspec":  # one of fsspec's own classes, which needs another package
                return str(error)
            return f'{scheme}:// needs {package} and fsspec: pip install {package} "dataset-combinators[remote]".'
        except ValueError:
            continue
    return "a package that fsspec needs for this path is not installed"

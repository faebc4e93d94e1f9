"""Which paths are remote, and the file system of one. fsspec is imported here, when the first such path is used."""

from __future__ import annotations

import importlib
import re
from typing import Any

from dataset.extras import load_extra

__all__ = ["ON_THIS_MACHINE", "FileSystem", "filesystem_of", "is_remote", "local_form", "schemes"]

FileSystem = Any
"""An ``fsspec.AbstractFileSystem``. The library has no types."""

# One letter is a drive of Windows. What has a slash before "://" is a local path: no file system has such a name.
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


def filesystem_of(path: str) -> tuple[FileSystem, str]:
    """The file system that a remote path is in, and what the path is called there. Nothing is sent anywhere.

    Credentials and endpoints are what fsspec's own configuration says: its files, or the variables ``FSSPEC_...``.

    Raises:
        ImportError: fsspec, or what it needs for the scheme, is not installed.
        ValueError: there is no such scheme, or the configuration is wrong.
    """
    fsspec = load_extra("fsspec", "remote", "paths with a scheme, such as s3://, need")
    try:
        system, name = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise ImportError(f"{path}: {_way_out(path)}", name=error.name) from error
    except ValueError as error:
        raise ValueError(f"{path}: no file system can be opened for this path: {error}") from error
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

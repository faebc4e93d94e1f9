"""Source node of list_files(pattern): the names of the matching files, listed when the function is called.

The names are slices of an array, so everything that holds for array slices (shuffled indices, a known cardinality)
holds for files, too.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.io.files import remote
from dataset.io.files.opening import path_string
from dataset.io.files.remote.paths import is_remote
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.redaction import redacted


@dataclass(frozen=True, eq=False)
class ListFiles(TensorSlices):
    """Source of file names, in the given order."""

    op: ClassVar[str] = "list_files"

    def label(self) -> str:
        count = self.cardinality()
        return f"list_files({count} file{'s' if count != 1 else ''})"


def is_pattern(path: str) -> bool:
    """Return whether a path has wildcards and is not the name of a file."""
    wildcards = "*[" if "://" in path else "*[?"  # in a URL, a question mark begins the query string
    return any(wildcard in path for wildcard in wildcards) and not os.path.lexists(path)


def note_pattern(error: Exception, op: str, path: str) -> None:
    """Add a note to the error of a missing file if its name is a pattern, which readers do not take."""
    if isinstance(error, FileNotFoundError) and is_pattern(path):
        error.add_note(f"{op} takes the names of files; for a pattern, pass Dataset.list_files({redacted(path)!r})")


def matching_files(file_pattern: Any, op: str = "list_files", *, recursive: bool = False) -> list[str]:
    """Return the names that match one or more patterns, sorted. A name that matches n patterns is listed n times.

    Directories match as well, as in tf.data. As in a shell, a wildcard does not match the dot of a hidden file or
    directory. The name of an existing file is not taken as a pattern.

    Args:
        file_pattern: a path with ``*``, ``?``, ``[...]`` and ``[^...]``, or a list of such paths. A backslash escapes
            the next character, except on Windows. Patterns with a scheme are listed by fsspec, where ``**`` matches
            any number of directories; over HTTP, ``?`` is an ordinary character.
        op: the name of the op for messages.
        recursive: whether ``**`` matches any number of directories in local patterns, too; tf.data takes it as ``*``.

    Raises:
        FileNotFoundError: nothing matches.
        OSError: a storage can't be reached, or denies access.
        TypeError: a pattern is not a path.
    """
    patterns = _patterns(op, file_pattern)
    found = [name for pattern in patterns for name in _matching(pattern, recursive=recursive)]
    if not found:
        shown = ", ".join(repr(redacted(pattern)) for pattern in patterns)
        raise FileNotFoundError(f"{op}(): no file matches {shown} (working directory {os.getcwd()!r})")  # noqa: PTH109  # text
    return sorted(found, key=os.fsencode)  # as bytes, which need not be valid UTF-8


def _matching(pattern: str, *, recursive: bool) -> list[str]:
    if is_remote(pattern):
        return remote.matching_remote_files(pattern, _as_glob(pattern))
    if os.path.lexists(pattern):
        return [pattern]
    return glob.glob(_as_glob(pattern), recursive=recursive)  # noqa: PTH207  # keeps names as the user wrote them


def _as_glob(pattern: str) -> str:
    """Return the pattern in the syntax of Python's glob: ``[!...]`` for ``[^...]``, and ``[*]`` for an escaped star."""
    if os.sep != "\\":
        pattern = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)
    return pattern.replace("[^", "[!")


def _patterns(op: str, file_pattern: Any) -> list[str]:
    if isinstance(file_pattern, np.ndarray):
        file_pattern = file_pattern.tolist()
    if isinstance(file_pattern, str | bytes | os.PathLike):
        return [path_string(file_pattern)]
    if not isinstance(file_pattern, Sequence) or not file_pattern:
        raise TypeError(f"{op}(): file_pattern must be a path or a list of paths, got {file_pattern!r}")
    return [path_string(pattern) for pattern in file_pattern]

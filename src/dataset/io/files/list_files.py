"""list_files(pattern): the names of the files that match, found when it is called.

To the rest of the library the names are slices of an array, so what holds for those (shuffling indices, a known
cardinality) holds for files.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.io.files.opening import path_string
from dataset.io.files.remote.paths import is_remote
from dataset.ops.tensor_slices import TensorSlices
from dataset.redaction import redacted


@dataclass(frozen=True, eq=False)
class ListFiles(TensorSlices):
    """File names, in the order given."""

    op: ClassVar[str] = "list_files"

    def described(self) -> str:
        count = self.cardinality()
        return f"list_files({count} file{'s' if count != 1 else ''})"


def matching_files(file_pattern: Any) -> list[str]:
    """The names that match one pattern or any of several, sorted; one that matches twice is named twice.

    Directories and hidden files match as well, as in tf.data.

    Args:
        file_pattern: a path with ``*``, ``?``, ``[...]`` and ``[^...]``, or a list of such paths; a backslash takes the
            meaning from the character behind it, except on Windows. Patterns with a scheme are listed by fsspec, where
        ``**`` stands for any number of folders, and over HTTP ``?`` for itself.

    Raises:
        FileNotFoundError: if nothing matches.
        OSError: if a storage can't be reached, or refuses.
        TypeError: if a pattern is no path.
    """
    patterns = _patterns(file_pattern)
    found = sorted(name for pattern in patterns for name in _matching(pattern))
    if not found:
        shown = ", ".join(repr(redacted(pattern)) for pattern in patterns)
        raise FileNotFoundError(f"list_files(): no file matches {shown} (working directory {os.getcwd()!r})")  # noqa: PTH109  # text
    return found


def _matching(pattern: str) -> list[str]:
    if is_remote(pattern):
        from dataset.io.files.remote.listing import matching_remote_files  # noqa: PLC0415  # more than local names need

        return matching_remote_files(_as_glob(pattern))
    return glob.glob(_as_glob(pattern), include_hidden=True)  # noqa: PTH207  # names stay as the user wrote them


def _as_glob(pattern: str) -> str:
    """The pattern as Python's glob writes it: ``[!...]`` for ``[^...]``, ``[*]`` for a star behind a backslash."""
    if os.sep != "\\":
        pattern = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)
    return pattern.replace("[^", "[!")


def _patterns(file_pattern: Any) -> list[str]:
    if isinstance(file_pattern, np.ndarray):
        file_pattern = file_pattern.tolist()
    if isinstance(file_pattern, str | bytes | os.PathLike):
        return [path_string(file_pattern)]
    if not isinstance(file_pattern, Sequence) or not file_pattern:
        raise TypeError(f"list_files(): file_pattern must be a path or a list of paths, got {file_pattern!r}")
    return [path_string(pattern) for pattern in file_pattern]

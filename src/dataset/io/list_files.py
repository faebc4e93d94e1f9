"""list_files(pattern): the names of the files that match, found when it is called.

To the rest of the library the names are slices of an array, so what holds for those (shuffling indices, a known
cardinality) holds for files.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.io.files import path_string
from dataset.ops.tensor_slices import TensorSlices


@dataclass(frozen=True, eq=False)
class ListFiles(TensorSlices):
    """File names, in the order given."""

    op: ClassVar[str] = "list_files"

    def described(self) -> str:
        count = self.cardinality()
        return f"list_files({count} file{'s' if count != 1 else ''})"


def matching_files(file_pattern: Any) -> list[str]:
    """The files that match one pattern or any of several, sorted; one that matches twice is named twice.

    Args:
        file_pattern: a path with ``*``, ``?`` and ``[...]``, or a list of such paths.

    Raises:
        FileNotFoundError: if nothing matches.
        TypeError: if a pattern is no path.
    """
    patterns = _patterns(file_pattern)
    found = sorted(name for pattern in patterns for name in glob.glob(pattern) if os.path.isfile(name))  # noqa: PTH113, PTH207  # names stay as the user wrote them
    if not found:
        raise FileNotFoundError(
            f"list_files(): no file matches {', '.join(map(repr, patterns))} (working directory {os.getcwd()!r})"  # noqa: PTH109  # text
        )
    return found


def _patterns(file_pattern: Any) -> list[str]:
    if isinstance(file_pattern, np.ndarray):
        file_pattern = file_pattern.tolist()
    if isinstance(file_pattern, str | bytes | os.PathLike):
        return [path_string(file_pattern)]
    if not isinstance(file_pattern, Sequence) or not file_pattern:
        raise TypeError(f"list_files(): file_pattern must be a path or a list of paths, got {file_pattern!r}")
    return [path_string(pattern) for pattern in file_pattern]

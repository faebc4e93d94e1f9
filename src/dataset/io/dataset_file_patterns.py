"""Files of tables: names given as patterns, and arguments that all sources of columns have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from dataset.io.files.list_files import is_pattern, matching_files
from dataset.io.files.opening import path_string
from dataset.ops.interleave.flat_map import FlatMap
from dataset.ops.interleave.interleave import Interleave
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node
from dataset.plan.structure import LEAF

BLOCK_LENGTH = 1024  # rows per file in an interleave: enough to keep chunks large


def listed_files(op: str, filenames: Any) -> Any:
    """Return ``filenames`` with patterns replaced by the matching files, sorted.

    Raises:
        FileNotFoundError: no file matches a pattern.
    """
    if is_dataset(filenames):
        return filenames
    if isinstance(filenames, str | bytes | os.PathLike):
        return _matching(op, filenames)
    if not isinstance(filenames, Iterable):
        return filenames  # file_names() raises for it
    return [name for one in filenames for name in (_matching(op, one) if isinstance(one, str | bytes) else [one])]


def _matching(op: str, name: Any) -> list[str]:
    path = path_string(name)
    return matching_files(path, op, recursive=True) if is_pattern(path) else [path]


def known_paths(names: Node) -> tuple[str, ...] | None:
    """Return the file names that a plan yields, in any order; None if they are known only by running it."""
    while isinstance(names, Shuffle):
        names = names.source
    if not isinstance(names, TensorSlices) or names.structure is not LEAF:
        return None
    (column,) = names.rows_as_columns()
    return tuple(path_string(path) for path in column)


def read_each_file(
    names: Node, read_one_file: Callable[[bytes], Any], num_parallel_reads: int | None, name: str | None
) -> Node:
    """Return a plan in which each file becomes a dataset, for names that are known only by running another dataset."""
    if num_parallel_reads is None:
        return FlatMap(names, read_one_file, name=name)
    reads = num_parallel_reads
    return Interleave(names, read_one_file, reads, BLOCK_LENGTH, num_parallel_calls=reads, name=name)

"""Counting of the elements of each part of the files by counting records, if the plan's cardinality is unknown.

Nothing downstream of the records runs, so no user's function is called with an element; the number of elements of the
output follows from the plan. A file is read once, and its count is cached until the file changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.io.dataset_files import FileSource, known_names
from dataset.io.files.opening import FileStamp, file_stamp
from dataset.ops.interleave.flat_map import FlatMap
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, total
from dataset.plan.fingerprints.fingerprint import content_fingerprint
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.context import open_plan
from dataset.runtime.state.held_elements import run_through

_SOME = 1000
_STEP = 1024

_counted: dict[tuple[int, FileStamp], int] = {}
"""Counts by the reading plan and the stamp of the file. Two threads may count the same file, with the same result."""


class CannotCountError(Exception):
    """Internal error: the elements of a plan cannot be counted without calling a user's function on them."""


@dataclass(frozen=True)
class Counts:
    """Counts of the elements of several plans, computed when ``EqualizeShards`` needs them."""

    parts: tuple[Node, ...]

    def known(self) -> list[int] | None:
        """Return the counts, if they are known without counting."""
        found = [part.cardinality() for part in self.parts]
        return None if UNKNOWN_CARDINALITY in found else found

    def __call__(self) -> list[int]:
        """Return the counts, reading the files if necessary.

        Raises:
            ValueError: if the datasets that a function returns cannot be counted.
        """
        try:
            return [count(part) for part in self.parts]
        except CannotCountError as error:
            raise ValueError(
                f"shard_by_process(): cannot determine how many elements each process gets from its files: {error}; "
                'use by="elements", or repeat() the dataset before it, so that no process ends before the others'
            ) from None


def count(plan: Node) -> int:
    """Return the number of elements of a plan, without those that fail; or INFINITE_CARDINALITY.

    Raises:
        CannotCountError: if counting requires running more than the ops that read the files.
    """
    return _count(plan, _records)


def require_countable(plan: Node) -> None:
    """Raise CannotCountError if ``count`` would. Reads nothing; a flat_map function is called for one file."""
    _count(plan, _some_records)


@dataclass(frozen=True, eq=False)
class _Counted(UnaryNode):
    """Placeholder node with the known cardinality of ``source``. Never run."""

    op: ClassVar[str] = "counted"
    number: int

    def cardinality(self) -> int:
        return self.number


def _count(plan: Node, records: Callable[[Node], int]) -> int:
    """Return the cardinality of a plan; ``records`` returns that of the lowest op whose cardinality is unknown."""
    above: list[Node] = []
    node = plan
    while node.cardinality() == UNKNOWN_CARDINALITY and len(node.inputs) == 1:
        if node.inputs[0].cardinality() != UNKNOWN_CARDINALITY:
            break
        above.append(node)
        (node,) = node.inputs
    found = node.cardinality()
    if found == UNKNOWN_CARDINALITY:
        found = records(node)
    if not above or found == INFINITE_CARDINALITY:
        return found
    stand_in: Node = _Counted(node, found)
    for part in reversed(above):
        stand_in = part.with_inputs([stand_in])
        if stand_in.cardinality() == UNKNOWN_CARDINALITY:
            raise CannotCountError(f"the number of elements of {part.location()} is unknown before it runs")
    return stand_in.cardinality()


def _records(node: Node) -> int:
    """Return the number of elements of an op that reads files."""
    names = _names(node)
    if isinstance(node, FileSource):
        return sum(_records_in(node, name) for name in names)
    return total([count(_opened(node, name)) for name in names])


def _some_records(node: Node) -> int:
    if isinstance(node, FlatMap) and not isinstance(node, FileSource):
        for name in _names(node)[:1]:
            require_countable(_opened(node, name))
    elif not isinstance(node, FileSource):
        raise CannotCountError(f"the number of elements of {node.location()} is unknown before it runs")
    return _SOME


def _names(node: Node) -> Sequence[Any]:
    """Return the elements of the input of an op that reads files."""
    if isinstance(node, FileSource):
        return known_names("shard_by_process", node.source)
    if not isinstance(node, FlatMap):
        raise CannotCountError(f"the number of elements of {node.location()} is unknown before it runs")
    chunks = run_through(node.source)
    for part in chunks:
        if isinstance(part, Exception):
            raise part
    return [row for part in chunks for row in part.rows()]  # type: ignore[union-attr]  # just checked


def _opened(node: Node, name: Any) -> Node:
    """Return the plan of the dataset that the function of a flat_map or interleave returns for an element."""
    assert isinstance(node, FlatMap)
    plan: Node = node.function(*name if isinstance(name, tuple) else (name,)).plan
    return plan


def _records_in(source: FileSource, path: str) -> int:
    one = source.over(os.fsencode(path))
    try:
        key = content_fingerprint(one), file_stamp(path)
    except OSError:
        return 0  # the reader raises the error in its place
    if key not in _counted:
        _counted[key] = _passed_over(one)
    return _counted[key]


def _passed_over(plan: Node) -> int:
    """Return the number of elements by skipping them, without producing them if the op supports it."""
    found = 0
    coordinator, operator = open_plan(plan, probing=True)
    try:
        while True:
            try:
                passed = operator.skip(_STEP)
            except Exception:  # noqa: BLE001, S112  # the reader raises the error in its place
                continue
            if not passed:
                return found
            found += passed
    finally:
        coordinator.shut_down(operator.close, wait=True)

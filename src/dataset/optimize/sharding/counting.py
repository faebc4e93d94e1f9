"""Counting of the elements of each part of the files by counting records, if the plan's cardinality is unknown.

Nothing downstream of the records runs, so no user's function is called with an element; the number of elements of the
output follows from the plan. A file is read once, and its count is cached until the file changes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

from dataset.amounts import STEP_ELEMENTS
from dataset.io.dataset_files import known_names
from dataset.io.files.opening import FileStamp, file_stamp
from dataset.ops.assert_cardinality import AssertCardinality
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, total
from dataset.plan.fingerprints.fingerprint import content_fingerprint
from dataset.plan.node import Node
from dataset.runtime.chunks.file_trace import OpensDatasets, ReadsFiles
from dataset.runtime.context import open_plan
from dataset.runtime.state.held_elements import run_through

_OP = "shard_by_process"
_SOME = 1000

_counted: dict[tuple[int, FileStamp], int] = {}
"""Counts by the reading plan and the stamp of the file. Two threads may count the same file, with the same result."""


class CannotCountError(Exception):
    """Internal error: the elements of a plan cannot be counted without calling a user's function on them."""


def count(plan: Node) -> int:
    """Return the number of elements of a plan, without those that fail; or INFINITE_CARDINALITY. May read files.

    Raises:
        ValueError: if the datasets that a function returns cannot be counted.
    """
    try:
        return _count(plan, _records)
    except CannotCountError as error:
        raise ValueError(
            f"{_OP}(): cannot determine how many elements each process gets from its files: {error}; "
            'use by="elements", or repeat() the dataset before it, so that no process ends before the others'
        ) from None


def require_countable(plan: Node) -> None:
    """Raise CannotCountError if ``count`` would fail. Reads nothing; a flat_map function is called for one file."""
    _count(plan, _some_records)


def _count(plan: Node, records: Callable[[Node], int]) -> int:
    """Return the cardinality of a plan; ``records`` returns that of the lowest op whose cardinality is unknown."""
    above: list[Node] = []
    lowest = plan
    while len(lowest.inputs) == 1 and lowest.cardinality() == lowest.inputs[0].cardinality() == UNKNOWN_CARDINALITY:
        above.append(lowest)
        (lowest,) = lowest.inputs
    found = records(lowest) if lowest.cardinality() == UNKNOWN_CARDINALITY else lowest.cardinality()
    for node in reversed(above):
        if found == INFINITE_CARDINALITY:
            break
        found = node.with_inputs([AssertCardinality(node.inputs[0], found)]).cardinality()
        if found == UNKNOWN_CARDINALITY:
            raise CannotCountError(f"the number of elements of {node} is unknown before it runs")
    return found


def _records(node: Node) -> int:
    """Return the number of elements of an op that reads files."""
    if isinstance(node, ReadsFiles):
        return sum(_records_in(node.over(os.fsencode(name)), name) for name in known_names(_OP, *node.inputs))
    return total([_count(plan, _records) for plan in _opened(node)])


def _some_records(node: Node) -> int:
    if not isinstance(node, ReadsFiles):
        for plan in itertools.islice(_opened(node), 1):
            require_countable(plan)
    return _SOME


def _opened(node: Node) -> Iterator[Node]:
    """Yield the plans of the datasets that the function of a flat_map or interleave returns."""
    if not isinstance(node, OpensDatasets):
        raise CannotCountError(f"the number of elements of {node} is unknown before it runs")
    for part in run_through(node.inputs[0]):
        if isinstance(part, Exception):
            raise part
        for row in part.rows():
            yield node.function(*row if isinstance(row, tuple) else (row,)).plan


def _records_in(source: Node, path: str) -> int:
    try:
        key = content_fingerprint(source), file_stamp(path)
    except OSError:
        return 0  # the reader raises the error in its place
    if key not in _counted:
        _counted[key] = _passed_over(source)
    return _counted[key]


def _passed_over(plan: Node) -> int:
    """Return the number of elements by skipping them, without producing them if the op supports it."""
    found = 0
    coordinator, operator = open_plan(plan, probing=True)
    try:
        while True:
            try:
                passed = operator.skip(STEP_ELEMENTS)
            except Exception:  # noqa: BLE001, S112  # the reader raises the error in its place
                continue
            if not passed:
                return found
            found += passed
    finally:
        coordinator.shut_down(operator.close, wait=True)

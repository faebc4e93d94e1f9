"""How many elements each part of the files gives, where the plan does not tell: the records are counted.

Nothing above the records is run for that, so no user's function sees an element; how many come out in the end follows
from the plan. A file is passed over once, and its number remembered until it changes.
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
from dataset.plan.fingerprint import content_fingerprint
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.context import open_plan
from dataset.runtime.state.elements import run_through

_SOME = 1000
_STEP = 1024

_counted: dict[tuple[int, FileStamp], int] = {}
"""By what is read and the stamp of the file. Two threads may count one file at once, and come to the same number."""


class CannotCountError(Exception):
    """Internal: how many elements a plan gives can't be told without running a user's function on them."""


@dataclass(frozen=True)
class Counts:
    """How many elements each of some plans gives: what ``EvenOut`` asks when it needs to know."""

    parts: tuple[Node, ...]

    def known(self) -> list[int] | None:
        """Return the numbers, if the plans tell them."""
        found = [part.cardinality() for part in self.parts]
        return None if UNKNOWN_CARDINALITY in found else found

    def __call__(self) -> list[int]:
        """Return the numbers, counted where the plans don't tell.

        Raises:
            ValueError: if the datasets that a function returns cannot be counted.
        """
        try:
            return [count(part) for part in self.parts]
        except CannotCountError as error:
            raise ValueError(
                f"shard_by_process(): how many elements each process gets of its files can't be told, because {error}; "
                'give by="elements", or repeat() the dataset before it, so that none ends before the others'
            ) from None


def count(plan: Node) -> int:
    """Return how many elements come out, without those that fail; or INFINITE_CARDINALITY.

    Raises:
        CannotCountError: if that takes running more than the plan's reading part.
    """
    return _count(plan, _records)


def require_countable(plan: Node) -> None:
    """Raise CannotCountError where ``count`` would. Nothing is read; a function of flat_map is called for one file."""
    _count(plan, _some_records)


@dataclass(frozen=True, eq=False)
class _Counted(UnaryNode):
    """``source``, of which is known how many elements it gives. Never run."""

    op: ClassVar[str] = "counted"
    number: int

    def cardinality(self) -> int:
        return self.number


def _count(plan: Node, records: Callable[[Node], int]) -> int:
    """Return the cardinality of a plan, with that of the lowest op that does not know its own put in by ``records``."""
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
            raise CannotCountError(f"only running {part.located()} tells how many elements come out")
    return stand_in.cardinality()


def _records(node: Node) -> int:
    """Return how many elements an op gives that reads files."""
    names = _names(node)
    if isinstance(node, FileSource):
        return sum(_records_in(node, name) for name in names)
    return total([count(_opened(node, name)) for name in names])


def _some_records(node: Node) -> int:
    if isinstance(node, FlatMap) and not isinstance(node, FileSource):
        for name in _names(node)[:1]:
            require_countable(_opened(node, name))
    elif not isinstance(node, FileSource):
        raise CannotCountError(f"only running {node.located()} tells how many elements come out")
    return _SOME


def _names(node: Node) -> Sequence[Any]:
    """Return what the input of an op that reads files gives."""
    if isinstance(node, FileSource):
        return known_names("shard_by_process", node.source)
    if not isinstance(node, FlatMap):
        raise CannotCountError(f"only running {node.located()} tells how many elements come out")
    chunks = run_through(node.source)
    for part in chunks:
        if isinstance(part, Exception):
            raise part
    return [row for part in chunks for row in part.rows()]  # type: ignore[union-attr]  # just looked at


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
        return 0  # raised at its place by who reads it
    if key not in _counted:
        _counted[key] = _passed_over(one)
    return _counted[key]


def _passed_over(plan: Node) -> int:
    """Return how many elements come, each of which is left unmade where its op knows how to."""
    found = 0
    coordinator, operator = open_plan(plan, probing=True)
    try:
        while True:
            try:
                passed = operator.pass_over(_STEP)
            except Exception:  # noqa: BLE001, S112  # raised at its place by who reads it
                continue
            if not passed:
                return found
            found += passed
    finally:
        coordinator.shut_down(operator.close, wait=True)

"""Position: where an operator and its inputs are, as plain data.

The runtime reads five fields: it moves a position by arithmetic, converts it for another number of processes, validates
it, and describes it in words. The sixth belongs to the operator alone.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dataset.errors import StateError

Run: TypeAlias = tuple[int, int, int]
"""The number of an input, and how many inputs from there on, and then how many outputs of the next one, were given."""

AHEAD = "ahead"
"""The op in the position of an iterator that had pulled elements ahead of the last one handed out."""

INPUT = "input"
"""The op in the positions of buffered inputs."""

BATCH_SIZE = "batch_size"
"""The own entry of an operation that has counted inputs, and makes this many of them one element."""

_T = TypeVar("_T")
_COUNT_MAX = (1 << 64) - 1
_FIELDS = frozenset({"op", "at", "inputs", "held", "given", "own"})


@dataclass(slots=True)  # not frozen: creating a frozen one takes four times as long; positions are never modified
class Position:
    """Where an operator is.

    Attributes:
        op: the name of the operation.
        at: the number of the next element: of the input, or, without one, of the operator.
        inputs: the positions of the inputs; None for an input that is at its end or not open.
        held: elements by value that the operator or an input has computed or read already, as plain data, by the name
            of what holds them. What holds nothing has no entry.
        given: runs of elements after the positions of the inputs that were given already, and are to be skipped. Their
            numbers are counted like ``at``.
        own: what only the operator reads: counts, flags and other plain data, by name.
    """

    op: str
    at: int = 0
    inputs: tuple[Position | None, ...] = ()
    held: dict[str, Any] = dataclasses.field(default_factory=dict)
    given: tuple[Run, ...] = ()
    own: dict[str, Any] = dataclasses.field(default_factory=dict)

    def input(self, index: int) -> Position:
        """Return the position of an input.

        Raises:
            StateError: if there is none.
        """
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise StateError(f"the state is damaged: {self.op!r:.40} has no position of its input {index}")
        return found

    @property
    def source(self) -> Position:
        """The position of the first input."""
        return self.input(0)

    @property
    def skipped(self) -> int:
        """How many elements of the input after its position are to be skipped."""
        return sum(inputs for _, inputs, _ in self.given)

    def having(self, **changes: Any) -> Position:
        """Return this position with other values of some fields."""
        fields = {"op": self.op, "at": self.at, "inputs": self.inputs, "held": self.held, "given": self.given}
        return Position(**{**fields, "own": self.own, **changes})

    def with_held(self, **parts: Any) -> Position:
        """Return this position with parts that are held in addition; those that hold nothing have no entry."""
        added = holding(**parts)
        return self.having(held={**self.held, **added}) if added else self

    def with_own(self, **own: Any) -> Position:
        """Return this position with other own entries, or more of them."""
        return self.having(own={**self.own, **own})

    def after(self, count: int, *inputs: Position | None, **own: Any) -> Position:
        """Return the position ``count`` elements later, with other positions of the inputs, and own entries."""
        own = {**self.own, **own} if own else self.own
        return Position(self.op, self.at + count, inputs or self.inputs, self.held, self.given, own)

    def count(self, name: str) -> int:
        """Return an own entry that is a count.

        Raises:
            StateError: if it is not.
        """
        return counts_in(self.own, name)[0]

    def like(self, name: str, value: _T) -> _T:
        """Return an own entry of the type of ``value``: a flag, or a number that is at least 0 or at least ``value``.

        Raises:
            StateError: if it is something else.
        """
        found: Any = self.own.get(name)
        least = value if isinstance(value, int) and value < 0 else 0
        if type(found) is not type(value) or (type(found) is int and not _is_count(found, least)):
            raise StateError(f"the state is damaged: {name!r} of {self.op!r:.40} is {found!r:.40}")
        kept: _T = found
        return kept

    def to_plain(self) -> dict[str, Any]:
        """Return the position as plain data. Fields with their default value are left out."""
        plain: dict[str, Any] = {"op": self.op}
        if self.at:
            plain["at"] = self.at
        if self.inputs:
            plain["inputs"] = [None if position is None else position.to_plain() for position in self.inputs]
        if self.held:
            plain["held"] = self.held
        if self.given:
            plain["given"] = [list(run) for run in self.given]
        if self.own:
            plain["own"] = self.own
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> Position:
        """Return the position of which ``plain`` is the plain form.

        Raises:
            StateError: if it is not a position.
        """
        if type(plain) is not dict or type(plain.get("op")) is not str or not plain.keys() <= _FIELDS:
            raise StateError(f"the state is damaged: expected the position of an operator, got {plain!r:.100}")
        at, inputs, given = plain.get("at", 0), plain.get("inputs", []), plain.get("given", [])
        held, own = plain.get("held", {}), plain.get("own", {})
        if not _is_count(at) or not (type(inputs) is type(given) is list) or not (type(held) is type(own) is dict):
            raise StateError(f"the state is damaged: the position of {plain['op']!r:.40} is {plain!r:.200}")
        positions = tuple(None if position is None else cls.from_plain(position) for position in inputs)
        return cls(plain["op"], at, positions, held, _runs(given), own)


def counts_in(own: dict[str, Any], *names: str) -> list[int]:
    """Return entries that are counts.

    Raises:
        StateError: if one is not.
    """
    found: list[Any] = [own.get(name) for name in names]
    if not all(map(_is_count, found)):
        raise StateError(f"the state is damaged: {' or '.join(map(repr, names))} is not a count: {found!r:.100}")
    return found


def skipping(count: int) -> tuple[Run, ...]:
    """Return ``given`` for an operator that only counts the elements to skip."""
    return ((0, count, 0),) if count else ()


def holding(**parts: Any) -> dict[str, Any]:
    """Return ``held`` with the parts that hold something."""
    return {name: part for name, part in parts.items() if part}


def _is_count(value: Any, least: Any = 0) -> bool:
    return type(value) is int and least <= value <= _COUNT_MAX


def _runs(given: list[Any]) -> tuple[Run, ...]:
    found: list[Run] = []
    for run in given:
        if type(run) not in {list, tuple} or len(run) != 3 or not all(map(_is_count, run)):
            raise StateError(f"the state is damaged: its runs of skipped elements are invalid: {run!r:.100}")
        found.append(tuple(run))
    if any(after[0] < before[0] for before, after in itertools.pairwise(found)):
        raise StateError(f"the state is damaged: its runs of skipped elements are invalid: {given!r:.100}")
    return tuple(found)

"""Resharding: resumes from the state of another process, with the same or another number of processes.

If a split distributes counted elements and all processes have been given equally many, they are together at the start
of a round, after ``base`` elements of a pass. Any of their states contains this position. It becomes the state of a
current process: the split restarts there, and distributes the rest of the pass like a separate sequence. Later passes
are distributed as usual. Above the split, only ops are allowed whose position follows from the split's position
(``Traits.elastic``). Ops that use the global positions of elements store ``base``, to which the elements ``since`` then
are added by arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataset.errors import StateError
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, share_of, walk
from dataset.runtime.position import BATCH_SIZE, INPUT, Position

_SPLIT = "shard_by_process"
_PADDING = "shard_by_process.pad"
_REPEAT = "repeat"
_NUMBERING = frozenset({"enumerate", "random_map"})
"""The ops that number the elements of all processes: ``base`` elements, and those since the element ``since``."""

_FILES = "files are distributed"
_NUMBERS = frozenset({int, float, str, bool, type(None)})


def shares(plan: Node) -> list[list[int]]:
    """Return the rank and world size of each split in a plan, as stored in states."""
    found = [share for share in map(share_of, walk(plan)) if share is not None]
    return [[share.rank, share.world_size] for share in found]


def are_shares(value: Any) -> bool:
    """Return whether a value has the form of the result of ``shares``."""
    return type(value) is list and all(
        type(share) is list and len(share) == 2 and all(type(number) is int for number in share) for share in value
    )


def words(found: Sequence[Sequence[int]]) -> str:
    """Describe shares for messages."""
    return " and ".join(f"process {rank} of {world_size}" for rank, world_size in found) or "an unshared pipeline"


def difference(saved: Sequence[Sequence[int]], plan: Node) -> str:
    """Return an addition to the message that a state belongs to another pipeline."""
    mine = shares(plan)
    if list(saved) == mine:
        return ""
    splits, _ = _topmost_splits(plan)
    why = "not all pipelines can resume from the state of other processes"
    if not all(split.traits.elastic for split in splits):
        why = f"if {_FILES}, each process can only resume from its own state"
    return f"; the state is from {words(saved)}, this is {words(mine)}: {why} (docs/howto/sharding.md)"


def reshard_position(position: Position, saved: list[list[int]], plan: Node) -> Position:
    """Convert the position of an operator with the shares ``saved`` to one for the shares of ``plan``.

    Raises:
        StateError: if that is not possible, with the reason.
    """
    mine = shares(plan)
    try:
        counting = _check(plan, saved, mine)
        (_, old_size), (rank, world_size) = saved[0], mine[0]
        return _Conversion(old_size, rank, world_size, counting).moved(position, 0)
    except _ImmovableError as error:
        raise StateError(
            f"the state is from {words(saved)}, but this is {words(mine)}: it cannot resume from that state "
            f"because {error}; restore each process from its own state, with the same number of processes"
        ) from None


class _ImmovableError(Exception):
    """Internal: the reason why only one process can use a state."""


def _check(plan: Node, saved: list[list[int]], mine: list[list[int]]) -> frozenset[str]:
    """Raise if only the original process can continue from some part of the plan.

    Returns:
        The ops above the split that count the elements of one process.
    """
    splits, above = _topmost_splits(plan)
    if len(saved) != len(mine):
        raise _ImmovableError("the pipelines are split at different places")
    if len(splits) < len(mine) or len({tuple(share) for share in saved + mine}) > 2:
        raise _ImmovableError("shares are split again")
    if not all(split.traits.elastic for split in splits):
        raise _ImmovableError(f'{_FILES}; by="elements" distributes their elements instead')
    same_world = [size for _, size in saved] == [size for _, size in mine]
    for node in above:
        if not (node.traits.elastic or (same_world and node.traits.seekable)):
            raise _ImmovableError(f"{node} is above the split and has a position of its own")
    return frozenset(node.op for node in above if not node.traits.elastic)


def _topmost_splits(plan: Node) -> tuple[list[Node], list[Node]]:
    """Return the splits of a plan that are not upstream of another, and the nodes downstream of all splits."""
    splits: list[Node] = []
    above: list[Node] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if share_of(node) is not None:
            splits.append(node)
        else:
            above.append(node)
            waiting.extend(reversed(node.inputs))
    return splits, above


@dataclass(frozen=True)
class _Conversion:
    """Conversion of the positions of a plan's operators for process ``rank`` of ``world_size``.

    Attributes:
        old_size: the number of processes that the state was saved by.
        counting: the ops that count the elements of one process.
    """

    old_size: int
    rank: int
    world_size: int
    counting: frozenset[str]

    def moved(self, position: Position | None, behind: int, *, repeats: bool = False) -> Position:
        """Return the position of an op, advanced by ``behind`` elements of the op.

        If an op ``repeats`` this one, these elements may belong to a later pass.
        """
        if position is None:
            raise _ImmovableError("it contains no position of the split")
        op, own = position.op, dict(position.own)
        if op == _SPLIT:
            return self._begun_anew(position, behind, repeats=repeats)
        if behind and op in self.counting:
            raise _ImmovableError(f"{op} counts elements that were read ahead; save it one step later")
        behind *= own.get(BATCH_SIZE, 1)
        skipped, given = _skipped(position), position.given
        # Processes of the same number have read ahead equally many of their own elements, and can do so again.
        if self.old_size != self.world_size:
            behind, given = behind + skipped, ()
        at = position.at + behind
        given = tuple((at, inputs, outputs) for _, inputs, outputs in given)
        # The element that padding holds is an example for the shapes of zeros; any element will do.
        if not position.inputs or (position.held and op != _PADDING) or not all(map(_is_number, own.values())):
            raise _ImmovableError(f"{op} holds elements of the original process")
        if op == INPUT:  # the number of elements left is that of this process; -1 (infinite) does not change
            own["left"] = -1 if own["left"] == -1 else None
        if op in _NUMBERING:
            own["base"] += (at - own["since"]) * self.old_size
            own["since"] = at
        repeats |= behind > 0 and op == _REPEAT
        inputs = tuple(self.moved(source, behind, repeats=repeats) for source in position.inputs)
        return position.having(at=at, inputs=inputs, given=given, own=own)

    def _begun_anew(self, position: Position, behind: int, *, repeats: bool) -> Position:
        """Return the position of a split that restarts after all elements given to its processes."""
        if position.own["elements"] == UNKNOWN_CARDINALITY:
            raise _ImmovableError(
                "the number of elements that shard_by_process divides is unknown, or some of them may fail"
            )
        base = position.own["base"] + self._given_to_all(position.own, position.at + behind, is_this_pass=not repeats)
        place = {"rank": self.rank, "world_size": self.world_size, "base": base, "ended": False}
        return position.having(at=0, held={}).with_own(**place)

    def _given_to_all(self, own: dict[str, Any], given: int, *, is_this_pass: bool) -> int:
        """Return how many elements all processes have been given, if each has as many as this one."""
        turn = own["turn"]
        if own["elements"] != INFINITE_CARDINALITY:
            left = own["elements"] - own["base"]
            if given > left // (self.old_size * turn) * turn:  # this process has its part of the last round
                if not is_this_pass:
                    raise _ImmovableError("it may be after the end of a pass; save it one step later")
                return int(left)
        if given % turn:
            raise _ImmovableError("it is inside a batch")
        return int(given * self.old_size)


def _skipped(position: Position) -> int:
    """Return how many elements of the input were given after its position, if they are one run that begins there."""
    if not position.given:
        return 0
    (start, inputs, outputs), *others = position.given
    if others or start != position.at or (outputs and BATCH_SIZE in position.own):
        raise _ImmovableError(f"{position.op} holds elements of the original process")
    return inputs + outputs


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, a name, or empty."""
    return type(value) in _NUMBERS or (type(value) in {list, dict} and not value)

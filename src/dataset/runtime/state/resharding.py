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
from dataset.runtime.contract import State

AHEAD = "ahead"
"""The op in the state of an iterator that had pulled elements ahead of the last one handed out."""

_SPLIT = "shard_by_process"
_PADDING = "shard_by_process.pad"
_FILES = "files are distributed"
_INPUTS = frozenset({"source", "feeds"})
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


def reshard_state(state: State, saved: list[list[int]], plan: Node) -> State:
    """Convert the state of an operator with the shares ``saved`` to a state for the shares of ``plan``.

    Raises:
        StateError: if that is not possible, with the reason.
    """
    mine = shares(plan)
    try:
        counting = _check(plan, saved, mine)
        (_, old_size), (rank, world_size) = saved[0], mine[0]
        return _Conversion(old_size, rank, world_size, counting).moved(state, 0)
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
    """Conversion of the states of a plan's operators for process ``rank`` of ``world_size``.

    Attributes:
        old_size: the number of processes that the state was saved by.
        counting: the ops that count the elements of one process.
    """

    old_size: int
    rank: int
    world_size: int
    counting: frozenset[str]

    def moved(self, state: Any, behind: int, *, repeats: bool = False) -> State:
        """Return the state of an op, advanced by ``behind`` elements of the op.

        If an op ``repeats`` this one, these elements may belong to a later pass.
        """
        if type(state) is not dict:
            raise _ImmovableError("it contains no position of the split")
        op = state.get("op", "an op")
        if op == _SPLIT:
            return self._begun_anew(state, behind, repeats=repeats)
        size = state.get("batch_size", 1)
        if behind and op in self.counting:
            raise _ImmovableError(f"{op} counts elements that were read ahead; save it one step later")
        same_world = self.old_size == self.world_size
        # Processes of the same number have read ahead equally many of their own elements, and can do so again.
        found, passed = (
            (dict(state), 0)
            if same_world and "behind" in state and "held" in state
            else _passed(state, batches=size > 1)
        )
        behind = behind * size + passed
        repeats |= behind > 0 and "finished" in state
        if _holds_elements(found, op):
            raise _ImmovableError(f"{op} holds elements of the original process")
        if "position" in state:
            found["position"] += behind
        if state.get("source") is not None:
            found["source"] = self.moved(state["source"], behind, repeats=repeats)
        if "feeds" in state:
            # ``left`` counts elements of this process; -1 (infinite) does not change.
            feeds = [(self.moved(feed, behind, repeats=repeats), feed["left"]) for feed in state["feeds"]]
            found["feeds"] = [{**feed, "left": -1 if left == -1 else None} for feed, left in feeds]
        if "since" in state:
            found["base"] = state["base"] + (found["position"] - state["since"]) * self.old_size
            found["since"] = found["position"]
        return found

    def _begun_anew(self, state: State, behind: int, *, repeats: bool) -> State:
        """Return the state of a split that restarts after all elements given to its processes."""
        if state["elements"] == UNKNOWN_CARDINALITY:
            raise _ImmovableError(
                "the number of elements that shard_by_process divides is unknown, or some of them may fail"
            )
        base = state["base"] + self._given_to_all(state, state["given"] + behind, is_this_pass=not repeats)
        place = {"rank": self.rank, "world_size": self.world_size, "base": base, "given": 0}
        return {**state, **place, "held": [], "first": [], "ended": False}

    def _given_to_all(self, state: State, given: int, *, is_this_pass: bool) -> int:
        """Return how many elements all processes have been given, if each has as many as this one."""
        turn = state["turn"]
        if state["elements"] != INFINITE_CARDINALITY:
            left = state["elements"] - state["base"]
            if given > left // (self.old_size * turn) * turn:  # this process has its part of the last round
                if not is_this_pass:
                    raise _ImmovableError("it may be after the end of a pass; save it one step later")
                return int(left)
        if given % turn:
            raise _ImmovableError("it is inside a batch")
        return int(given * self.old_size)


def _passed(state: State, *, batches: bool) -> tuple[State, int]:
    """Return a part of a state as of its input's position, and the number of elements already passed after it.

    This is a number of elements (``behind``), or one run that begins at the position (``given`` of a parallel
    operator), of inputs and then of outputs. Inputs and outputs are equally many unless it ``batches``.
    """
    if "behind" in state:
        return {**state, "behind": 0}, state["behind"]
    match state.get("given"):
        case [[start, int(inputs), int(outputs)]] if start == state.get("position") and not (outputs and batches):
            return {key: value for key, value in state.items() if key != "given"}, inputs + outputs
    return dict(state), 0


def _holds_elements(state: State, op: str) -> bool:
    """Return whether the state of an op contains more than numbers and the states of its inputs."""
    if not _INPUTS & state.keys():
        return True
    if op == _PADDING:
        return False  # the last element, an example for the shapes of zeros; any element will do
    return not all(_is_number(value) for key, value in state.items() if key not in _INPUTS)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, a name, or empty."""
    return type(value) in _NUMBERS or (type(value) in {list, dict} and not value)

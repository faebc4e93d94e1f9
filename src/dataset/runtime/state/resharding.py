"""Resharding: resumes from the state of another process, with the same or another number of processes.

If a split distributes counted elements and all processes have been given equally many, they are together at the start
of a round, after ``base`` elements of a pass. Any of their states contains this position. It becomes the state of a
current process: the split restarts there, and distributes the rest of the pass like a separate sequence. Later passes
are distributed as usual. Above the split, only ops are allowed whose position follows from the split's position
(``Traits.elastic``). Ops that use the global positions of elements store ``base``, to which the elements ``since`` then
are added by arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dataset.errors import StateError
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node, walk
from dataset.runtime.contract import State

_SPLIT = "shard_by_process"
_STAND_IN = "shard_by_process.pad"
_FILES = "files are distributed"
_INPUTS = frozenset({"source", "feeds"})
_NUMBERS = frozenset({int, float, str, bool, type(None)})


def shares(plan: Node) -> list[list[int]]:
    """Return the rank and world size of each split in a plan, as stored in states."""
    return [list(node.share) for node in walk(plan) if node.share is not None]


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
    why = "not all pipelines can resume from the state of other processes"
    if not all(split.traits.elastic for split in _splits(plan)):
        why = f"if {_FILES}, each process can only resume from its own state"
    return f"; the state is from {words(saved)}, this is {words(mine)}: {why} (docs/howto/sharding.md)"


def reshard_state(state: State, saved: list[list[int]], plan: Node) -> State:
    """Convert the state of an operator with the shares ``saved`` to a state for the shares of ``plan``.

    Raises:
        StateError: if that is not possible, with the reason.
    """
    mine = shares(plan)
    try:
        _check(plan, saved, mine)
        return _moved(state, mine[0], 0)
    except _ImmovableError as error:
        raise StateError(
            f"the state is from {words(saved)}, but this is {words(mine)}: it cannot resume from that state "
            f"because {error}; restore each process from its own state, with the same number of processes"
        ) from None


class _ImmovableError(Exception):
    """Internal: the reason why only one process can use a state."""


def _check(plan: Node, saved: list[list[int]], mine: list[list[int]]) -> None:
    """Raise if only the original process can continue from some part of the plan."""
    if len(saved) != len(mine):
        raise _ImmovableError("the pipelines are split at different places")
    splits = list(_splits(plan))
    if len(splits) < len(mine) or len({tuple(share) for share in saved + mine}) > 2:
        raise _ImmovableError("shares are split again")
    if not all(split.traits.elastic for split in splits):
        raise _ImmovableError(f'{_FILES}; by="elements" distributes their elements instead')
    same_world = [size for _, size in saved] == [size for _, size in mine]
    for node in _above(plan):
        if not (node.traits.elastic or (same_world and node.traits.seekable)):
            raise _ImmovableError(f"{node.location()} is above the split and has a position of its own")


def _splits(node: Node) -> Iterator[Node]:
    """Yield the topmost splits of a plan."""
    if node.share is not None:
        yield node
        return
    for source in node.inputs:
        yield from _splits(source)


def _above(node: Node) -> Iterator[Node]:
    """Yield the ops above all splits."""
    if node.share is None:
        yield node
        for source in node.inputs:
            yield from _above(source)


def _moved(state: Any, share: list[int], behind: int, *, repeats: bool = False) -> State:
    """Return a part of a state for the share ``share``, advanced by ``behind`` elements of the op.

    If an op ``repeats`` this one, these elements may belong to a later pass.
    """
    if type(state) is not dict:
        raise _ImmovableError("it contains no position of the split")
    op = state.get("op", "an op")
    if op == _SPLIT:
        return _begun_anew(state, share, behind, repeats=repeats)
    size = state.get("batch_size", 1)
    found, passed = _passed(state, batches=size > 1)
    behind = behind * size + passed
    repeats |= behind > 0 and "finished" in state
    if _holds_elements(found, op):
        raise _ImmovableError(f"{op} holds elements of the original process")
    if "position" in state:
        found["position"] += behind
    if state.get("source") is not None:
        found["source"] = _moved(state["source"], share, behind, repeats=repeats)
    if "feeds" in state:
        # ``left`` counts elements of this process; -1 (infinite) does not change.
        feeds = [(_moved(feed, share, behind, repeats=repeats), feed["left"]) for feed in state["feeds"]]
        found["feeds"] = [{**feed, "left": -1 if left == -1 else None} for feed, left in feeds]
    if "since" in state:
        (world_size,) = {size for _, size in _shares_in(state)} or {1}
        found["base"] = state["base"] + (found["position"] - state["since"]) * world_size
        found["since"] = found["position"]
    return found


def _passed(state: State, *, batches: bool) -> tuple[State, int]:
    """Return a part of a state as of its input's position, and the number of elements already passed after it.

    This is a number of elements (``behind``; ``given`` of rows), or one run that begins at the position (``given`` of a
    parallel operator), of inputs and then of outputs. Inputs and outputs are equally many unless it ``batches``.
    """
    if "behind" in state:
        return {**state, "behind": 0}, state["behind"]
    match state.get("given"):
        case int(count) if "position" not in state and "ended" not in state:
            return {**state, "given": 0}, count
        case [[start, int(inputs), int(outputs)]] if start == state.get("position") and not (outputs and batches):
            return {key: value for key, value in state.items() if key != "given"}, inputs + outputs
    return dict(state), 0


def _holds_elements(state: State, op: str) -> bool:
    """Return whether the state of an op contains more than numbers and the states of its inputs."""
    if not _INPUTS & state.keys():
        return True
    if op == _STAND_IN:
        return False  # the last element, an example for the shapes of zeros; any element will do
    return not all(_is_number(value) for key, value in state.items() if key not in _INPUTS)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, a name, or empty."""
    return type(value) in _NUMBERS or (type(value) in {list, dict} and not value)


def _shares_in(state: State) -> Iterator[list[int]]:
    """Yield the shares that a part of a state was saved for."""
    if "share" in state:
        yield state["share"]
        return
    for below in [state.get("source"), *state.get("feeds", [])]:
        if below is not None:
            yield from _shares_in(below)


def _begun_anew(state: State, share: list[int], behind: int, *, repeats: bool) -> State:
    """Return the state of a split that restarts after all elements given to its processes."""
    if "base" not in state:
        raise _ImmovableError("the number of elements is unknown, or some elements may fail")
    base = state["base"] + _given_to_all(state, state["given"] + behind, is_this_pass=not repeats)
    return {**state, "share": share, "base": base, "given": 0, "first": None}


def _given_to_all(state: State, given: int, *, is_this_pass: bool) -> int:
    """Return how many elements all processes have been given, if each has as many as this one."""
    (_, world_size), turn = state["share"], state["turn"]
    if state["elements"] != INFINITE_CARDINALITY:
        left = state["elements"] - state["base"]
        if given > left // (world_size * turn) * turn:  # this process has its part of the last round
            if not is_this_pass:
                raise _ImmovableError("it may be after the end of a pass; save it one step later")
            return int(left)
    if given % turn:
        raise _ImmovableError("it is inside a batch")
    return int(given * world_size)

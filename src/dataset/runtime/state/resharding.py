"""Going on from the state of another process: of as many processes as there are now, or of more or fewer.

Where a split deals out elements that are counted, all processes that have been given equally many stand, together, in
front of a round, behind ``base`` elements of a pass. Any of their states tells so. Here it becomes the state of a
process of now: the split begins anew there, and deals out the rest of the pass like a sequence of its own. Later passes
are dealt out as ever. Above the split only such ops may stand that have their place by the split's: ``Node.elastic``.
Those that tell the places of elements among all say theirs as ``base``, plus what arithmetic says of the elements
``since`` then.
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
_FILES = "files are dealt out"
_INPUTS = frozenset({"source", "feeds"})
_NUMBERS = frozenset({int, float, str, bool, type(None)})


def shares(plan: Node) -> list[list[int]]:
    """For each split in a plan, the number of this process and that of all, as a state has them."""
    return [list(node.share) for node in walk(plan) if node.share is not None]


def are_shares(value: Any) -> bool:
    """Whether this is what ``shares`` gives."""
    return type(value) is list and all(
        type(share) is list and len(share) == 2 and all(type(number) is int for number in share) for share in value
    )


def words(found: Sequence[Sequence[int]]) -> str:
    """Shares as messages say them."""
    return " and ".join(f"process {rank} of {world_size}" for rank, world_size in found) or "an unshared pipeline"


def difference(saved: Sequence[Sequence[int]], plan: Node) -> str:
    """What to add to the message that a state is of another pipeline."""
    mine = shares(plan)
    if list(saved) == mine:
        return ""
    why = "not all pipelines can go on from the state of other processes"
    if not all(split.elastic for split in _splits(plan)):
        why = f"where {_FILES}, each process can only go on from its own"
    return f"; the state is that of {words(saved)}, this is {words(mine)}: {why} (docs/howto/sharding.md)"


def moved(state: State, saved: list[list[int]], plan: Node) -> State:
    """The state of an operator of a plan, out of that of an operator which had other shares, ``saved``.

    Raises:
        StateError: if that is not possible; it says why.
    """
    mine = shares(plan)
    try:
        _check(plan, saved, mine)
        return _moved(state, mine[0], 0)
    except _ImmovableError as error:
        raise StateError(
            f"the state is that of {words(saved)}, and this is {words(mine)}: they cannot go on from each other, "
            f"because {error}; restore each process from its own state, with as many processes"
        ) from None


class _ImmovableError(Exception):
    """Internal: why a state is of use to one process only."""


def _check(plan: Node, saved: list[list[int]], mine: list[list[int]]) -> None:
    """Raise if there is anything in the plan that only the process itself can go on with."""
    if len(saved) != len(mine):
        raise _ImmovableError("they are split in other places")
    splits = list(_splits(plan))
    if len(splits) < len(mine) or len({tuple(share) for share in saved + mine}) > 2:
        raise _ImmovableError("shares are shared again")
    if not all(split.elastic for split in splits):
        raise _ImmovableError(f'{_FILES}; by="elements" deals out what is in them')
    same_world = [size for _, size in saved] == [size for _, size in mine]
    for node in _above(plan):
        if not (node.elastic or (same_world and node.seeks)):
            raise _ImmovableError(f"{node.located()} stands above the split and has a place of its own")


def _splits(node: Node) -> Iterator[Node]:
    """The splits of a plan that are below no other."""
    if node.share is not None:
        yield node
        return
    for source in node.inputs:
        yield from _splits(source)


def _above(node: Node) -> Iterator[Node]:
    """The ops above all splits."""
    if node.share is None:
        yield node
        for source in node.inputs:
            yield from _above(source)


def _moved(state: Any, share: list[int], behind: int, *, repeats: bool = False) -> State:
    """A part of a state, which is ``behind`` elements of the op further on than it says.

    They may belong to a later pass than it if an op ``repeats`` this one that they are elements of.
    """
    if type(state) is not dict:
        raise _ImmovableError("it holds no place of the split")
    op = state.get("op", "an op")
    if op == _SPLIT:
        return _begun_anew(state, share, behind, repeats=repeats)
    size = state.get("batch_size", 1)
    found, passed = _passed(state, batches=size > 1)
    behind = behind * size + passed
    repeats |= behind > 0 and "finished" in state
    if _holds_elements(found, op):
        raise _ImmovableError(f"{op} holds elements of this process")
    if "position" in state:
        found["position"] += behind
    if state.get("source") is not None:
        found["source"] = _moved(state["source"], share, behind, repeats=repeats)
    if "feeds" in state:
        # Its ``left`` counts elements of this process; -1, which is endless, stays so.
        feeds = [(_moved(feed, share, behind, repeats=repeats), feed["left"]) for feed in state["feeds"]]
        found["feeds"] = [{**feed, "left": -1 if left == -1 else None} for feed, left in feeds]
    if "since" in state:
        (world_size,) = {size for _, size in _shares_in(state)} or {1}
        found["base"] = state["base"] + (found["position"] - state["since"]) * world_size
        found["since"] = found["position"]
    return found


def _passed(state: State, *, batches: bool) -> tuple[State, int]:
    """A part of a state without what it says of elements behind the place of its input, and how many of them it passed.

    These are a number behind the place (``behind``; ``given`` of rows), or one run that begins there (``given`` of what
    several workers make), of inputs and then of outputs, which are as many unless it ``batches``.
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
    """Whether an op has more in its state than numbers and the places of its inputs."""
    if not _INPUTS & state.keys():
        return True
    if op == _STAND_IN:
        return False  # the last element, whose shapes zeros have; any will do
    return not all(_is_number(value) for key, value in state.items() if key not in _INPUTS)


def _is_number(value: Any) -> bool:
    """Whether this is a number, a name, or nothing."""
    return type(value) in _NUMBERS or (type(value) in {list, dict} and not value)


def _shares_in(state: State) -> Iterator[list[int]]:
    """Those that the splits in a part of a state were for."""
    if "share" in state:
        yield state["share"]
        return
    for below in [state.get("source"), *state.get("feeds", [])]:
        if below is not None:
            yield from _shares_in(below)


def _begun_anew(state: State, share: list[int], behind: int, *, repeats: bool) -> State:
    """The state of a split that begins behind all that its processes have been given, if all have as many as this."""
    if "base" not in state:
        raise _ImmovableError("it is not known how many elements there are, or some may fail")
    base = state["base"] + _given_to_all(state, state["given"] + behind, is_this_pass=not repeats)
    return {**state, "share": share, "base": base, "given": 0, "first": None}


def _given_to_all(state: State, given: int, *, is_this_pass: bool) -> int:
    """How many elements all processes have been given, where each has as many as this one."""
    (_, world_size), turn = state["share"], state["turn"]
    if state["elements"] != INFINITE_CARDINALITY:
        left = state["elements"] - state["base"]
        if given > left // (world_size * turn) * turn:  # it has its part of the last round
            if not is_this_pass:
                raise _ImmovableError("it may be behind the end of a pass; save it a step later")
            return int(left)
    if given % turn:
        raise _ImmovableError("it is inside of a batch")
    return int(given * world_size)

"""Plans of ``Dataset.split``: checks the arguments, and puts the split where the parts cannot overlap."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dataset.ops.shard.split_by_key import KeyIsInPart, SplitByKey
from dataset.ops.shard.split_by_position import ConsecutivePart, DrawnPart, Part, PermutedPart, SplitByPosition
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.optimize.sharding.agreement import in_order
from dataset.optimize.sharding.by_files import joining_op
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, is_known
from dataset.plan.checks import require_int, require_seed
from dataset.plan.node import Node, UnaryNode, is_exact, is_infallible, rebuilt, walk
from dataset.plan.random_state import is_unseeded
from dataset.runtime.random.streams import seed_sequence

_OP = "split"
_REST = -1  # the count of a part that has all remaining elements


def split_plans(plan: Node, parts: Any, seed: Any, by: Any, name: str | None) -> list[Node]:
    """Return a plan for each part. The arguments are those of the method."""
    sizes = _require_sizes(parts)
    seed = require_seed(_OP, seed)
    if callable(by):
        return _by_key(plan, sizes, seed, by, name)
    if by == "file":
        return _by_file(plan, sizes, seed)
    if by == "element":
        return _by_position(plan, sizes, seed, name)
    raise ValueError(f'{_OP}(): by must be "element", "file" or a function that returns a key, got {by!r}')


def _require_sizes(parts: Any) -> Sequence[float]:
    """Return counts, as ints, or fractions, as floats."""
    sizes = parts.tolist() if isinstance(parts, np.ndarray) else parts
    if not isinstance(sizes, Sequence) or isinstance(sizes, str | bytes) or len(sizes) < 2:
        raise TypeError(f"{_OP}(): parts must be a list of at least two fractions or counts, got {parts!r}")
    if all(isinstance(size, float | np.floating) for size in sizes):
        if not (all(size > 0 for size in sizes) and math.isclose(math.fsum(sizes), 1)):
            raise ValueError(f"{_OP}(): fractions must be positive and add up to 1, got {parts!r}")
        return list(map(float, sizes))
    counts = [require_int(_OP, "a count", size, minimum=1, allow=(_REST,)) for size in sizes]
    if counts.count(_REST) > 1:
        raise ValueError(f"{_OP}(): only one count may be {_REST}, for the remaining elements, got {parts!r}")
    return counts


def _is_fractions(sizes: Sequence[float]) -> bool:
    return isinstance(sizes[0], float)


def _ends(fractions: Sequence[float]) -> list[float]:
    """Return the sums of the first fractions; the last one is above every number from 0 to 1."""
    return [*itertools.accumulate(fractions[:-1]), math.inf]


def _counts(sizes: Sequence[float], available: int, what: str) -> list[int]:
    """Return the number of elements in each part, given that of all."""
    if _is_fractions(sizes):
        ends = [0, *(round(end * available) for end in _ends(sizes)[:-1]), available]
        counts = [after - before for before, after in itertools.pairwise(ends)]
    else:
        rest = available - sum(size for size in sizes if size != _REST)
        counts = [int(rest if size == _REST else size) for size in sizes]
        if sum(counts) != available:
            raise ValueError(
                f"{_OP}(): the counts {sizes} add up to {sum(counts):,}, but there are {available:,} {what}; use "
                f"{_REST} for one of them to get the rest"
            )
    if min(counts) < 1:
        raise ValueError(f"{_OP}(): {available:,} {what} are not enough for the parts {sizes}: {counts}")
    return counts


def _parts(sizes: Sequence[float], seed: int | None, available: int, what: str) -> list[Part]:
    """Return the parts of ``available`` elements, which may be unknown or infinitely many."""
    if is_known(available):
        counts = _counts(sizes, available, what)
        if seed is not None:
            return [PermutedPart(seed, tuple(counts), index) for index in range(len(counts))]
        return _consecutive(counts)
    if _is_fractions(sizes):
        if seed is None:
            raise ValueError(
                f"{_OP}(): the number of {what} is {_name_of(available)}, so fractions need a seed, which divides them "
                "at random; or state the number by assert_cardinality(), or pass counts such as [1000, -1]"
            )
        return [DrawnPart(seed, start, end) for start, end in itertools.pairwise([0.0, *_ends(sizes)])]
    if seed is not None or _REST in sizes[:-1] or sizes[-1] != _REST:
        raise ValueError(
            f"{_OP}(): the number of {what} is {_name_of(available)}, so only the last count may be, and must be, "
            f"{_REST}, for the remaining elements, and seed must be None, got {sizes} and seed={seed}; or state the "
            "number by assert_cardinality()"
        )
    return _consecutive([int(size) for size in sizes[:-1]], has_rest=True)


def _consecutive(counts: list[int], *, has_rest: bool = False) -> list[Part]:
    ends: list[int | None] = [*itertools.accumulate(counts, initial=0), *([None] if has_rest else [])]
    return [ConsecutivePart(start or 0, end) for start, end in itertools.pairwise(ends)]


def _name_of(cardinality: int) -> str:
    return "infinite" if cardinality == INFINITE_CARDINALITY else "unknown"


def _by_key(
    plan: Node, sizes: Sequence[float], seed: int | None, function: Callable[..., Any], name: str | None
) -> list[Node]:
    if not _is_fractions(sizes):
        raise ValueError(f"{_OP}(): by a key, parts must be fractions, got {sizes}")
    bounds = list(itertools.pairwise([0.0, *_ends(sizes)]))
    found: list[Node] = []
    for number, (start, end) in enumerate(bounds):
        predicate = KeyIsInPart(function, seed or 0, start, end)
        found.append(SplitByKey(plan, predicate, number, len(bounds), name=name))
    return found


def _by_file(plan: Node, sizes: Sequence[float], seed: int | None) -> list[Node]:
    """Return plans over parts of the list of files, which stays a list of files, so that processes can share it."""
    above = joining_op(plan)
    if above is not None:
        raise ValueError(
            f'{_OP}(): by="file" is not possible, because {above} needs the elements of all files together; split '
            'before it, or by="element"'
        )
    *_, last = walk(plan)
    names: Any = last  # slices of names, if a list of files can be sharded
    if names.sharded(BlockCyclicShard(1, 0, "keep"), lambda source, _: source) is None:
        raise ValueError(f'{_OP}(): by="file" needs a dataset of files, but {names} is not a list of file names')
    listed = names.tensors[np.asarray(names.places)]
    files = [os.path.realpath(name) for name in listed.tolist()]  # one that is listed twice must not be in two parts
    numbers = {file: number for number, file in enumerate(dict.fromkeys(files))}
    places = [numbers[file] for file in files]
    found: list[Node] = []
    for part in _parts(sizes, seed, len(numbers), "files"):
        chosen = np.isin(places, part.between(0, len(numbers)))
        own = dataclasses.replace(names, tensors=listed[chosen], rows=None)
        found.append(rebuilt(plan, lambda node, own=own: own if node is names else node))  # type: ignore[misc]
    return found


def _by_position(plan: Node, sizes: Sequence[float], seed: int | None, name: str | None) -> list[Node]:
    _require_same_positions(plan)
    plan = rebuilt(plan, in_order)
    parts = _parts(sizes, seed, plan.cardinality(), "elements")

    def split(node: Node, number: int) -> Node:
        part = parts[number]
        if isinstance(node, UnaryNode) and node.traits.aligned and node.traits.elastic:
            return node.with_inputs([split(node.source, number)])  # it does no work for the elements of other parts
        if isinstance(part, ConsecutivePart) and is_exact(node):
            rest = Skip(node, part.start, name=name) if part.start else node
            return rest if part.stop is None else Take(rest, part.stop - part.start, name=name)
        return SplitByPosition(node, part, number, len(parts), name=name)

    return [split(plan, number) for number in range(len(parts))]


def _require_same_positions(plan: Node) -> None:
    """Raise ValueError if an element may be at several positions, or at another one in the next iteration."""
    for node in walk(plan):
        if not node.traits.stable:
            problem = "returns other elements, or another order, in each iteration"
        elif is_unseeded(node.random) and not node.traits.elastic and seed_sequence().seed is None:
            problem = "has no seed, so it returns another order in each run of the program"
        elif node.traits.passes != 1:
            problem = "returns each element several times"
        elif node.traits.keeps_pass and not is_infallible(node.inputs[0]):
            problem = "leaves out elements that failed, in later iterations"
        else:
            continue
        raise ValueError(
            f"{_OP}(): {node} {problem}, so an element could get into several parts; call {_OP}() before it (to split "
            "the names of list_files, pass shuffle=False), pass it a seed if it keeps its order, or split by a key"
        )

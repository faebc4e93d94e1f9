"""Leave out operations that pass on every element as it is.

    before:  range(10) -> take(-1) -> repeat(1) -> prefetch(0)
    after:   range(10)

    before:  skip(2) -> skip(3)
    after:   skip(5)

Legal for: take of a negative count, skip(0), repeat(1), shard(1, 0), prefetch(0), shuffle(1), and options, which have
been read by then. shuffle(1) moves nothing, and the epoch it counts is seen by nobody else.

take of at least as many elements as there are does nothing where it is certain that they come: it would stop at the
last of them, where a source with user code goes on to its end. select of all parts of a tuple, in order, gives the
tuple; any other structure would become one. concatenate leaves out datasets that are known to be empty, without running
anything, where what is left is not known to have another spec.

Of two takes the smaller decides, two skips add up, and a shard of a shard is a shard, because all three count the same
elements: those that do not fail.

A map that gives back what it is given is left out over numbers that are counted. Elsewhere it stays: that its spec is
only told by running it decides what the ops above check and when, and its results may be written to where the rows of
the user's arrays may not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from dataset.ops.concatenate import Concatenate
from dataset.ops.gather import Gather
from dataset.ops.map import Map
from dataset.ops.prefetch import Prefetch
from dataset.ops.range import Range
from dataset.ops.repeat import Repeat
from dataset.ops.select import Select
from dataset.ops.shard.shard import Shard
from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.ops.with_options import WithOptions
from dataset.optimize.rule import Miss
from dataset.plan.cardinality import is_known
from dataset.plan.node import Node, holds_user_code, spec_is_static, walk
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import is_tuple


def eliminate_noop(node: Node) -> Node | Miss | None:
    """Return the input of an operation that does nothing, or one operation in the place of two of a kind."""
    match node:
        case Take(count=count) if count < 0 or _has_at_most(node.source, count):
            return node.source
        case Skip(count=0) | Shard(num_shards=1) | Prefetch(buffer_size=0) | Shuffle(buffer_size=1) | WithOptions():
            return node.source
        case Repeat() if node.times == 1:
            return node.source
        case ShardByProcess(deal=deal) if deal.world_size == 1 and not node.is_counted:
            return node.source
        case Select() if _selects_all(node):
            return node.source
        case Concatenate():
            return _without_empty(node)
        case Take() | Skip() | Shard():
            return _joined(node)
        case Map() if _gives_back(node.function, node.source):
            return node.source if _counts(node.source) else Miss("it gives back what it is given; leave it out")
    return None


def _has_at_most(node: Node, count: int) -> bool:
    # Asked last how many there are: sources of files read a footer of each for it.
    return node.is_certain and is_known(node.cardinality()) and node.cardinality() <= count


def _selects_all(node: Select) -> bool:
    if not spec_is_static(node.source):
        return False
    structure = flatten_spec(node.source.element_spec)[0]
    selection = node.selection(structure)
    return selection.structure == structure and selection.components == tuple(range(structure.num_components))


def _without_empty(node: Concatenate) -> Node | None:
    left = tuple(source for source in node.sources if source.cardinality() != 0 or holds_user_code(source))
    left = left or node.sources[-1:]
    if len(left) == len(node.sources):
        return None
    rest = left[0] if len(left) == 1 else dataclasses.replace(node, sources=left)
    if not spec_is_static(rest) or repr(rest.element_spec) == repr(node.element_spec):
        return rest
    return None


def _joined(node: Take | Skip | Shard) -> Node | None:
    """Return one operation for two of a kind."""
    match node, node.source:
        case Take(count=outer), Take(count=inner, source=source):
            return dataclasses.replace(node, source=source, count=min(inner, outer))
        case Skip(count=outer), Skip(count=inner, source=source):
            count = -1 if inner < 0 or outer < 0 else inner + outer
            return dataclasses.replace(node, source=source, count=count)
        case Shard(), Shard(num_shards=inner, source=source):
            index = node.source.index + node.index * inner
            return dataclasses.replace(node, source=source, num_shards=node.num_shards * inner, index=index)
    return None


# What functions that give back their arguments are compiled to.
_ONE = (lambda a: a).__code__
_TUPLE = [(lambda a: (a,)).__code__, (lambda a, b: (a, b)).__code__, (lambda a, b, c: (a, b, c)).__code__]


def _gives_back(function: Callable[..., Any], source: Node) -> bool:
    """Return whether a function returns each element of ``source`` as it is, by its bytecode."""
    if type(function) is not FunctionType or not spec_is_static(source):
        return False
    structure, code = flatten_spec(source.element_spec)[0], function.__code__
    if not is_tuple(structure):
        return _are_alike(code, _ONE)
    return code.co_argcount == len(structure.children) and any(_are_alike(code, example) for example in _TUPLE)


def _counts(node: Node) -> bool:
    """Return whether there are elements, all numbers made by range, which are the same to whoever gets them."""
    parts = list(walk(node))
    if (
        not node.is_certain
        or not node.cardinality()
        or any(type(part) is Gather or not (part.inputs or type(part) is Range) for part in parts)
    ):
        return False
    return all(spec.shape == () for spec in flatten_spec(node.element_spec)[1])


def _are_alike(code: CodeType, other: CodeType) -> bool:
    return (code.co_code, code.co_argcount) == (other.co_code, other.co_argcount)

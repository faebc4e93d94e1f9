"""Do not decode the features of Examples that nobody reads.

    before:  map(ExampleParser), batch(128), select("label")              decodes images, and drops batches of them
    after:   map(ExampleParser), on columns, select("label"), batch(128)  looks whether there is an image

Legal where select is above a map that only parses, with nothing between them but what passes elements on whatever is in
them; a batch is that where it can stack all features. What is wrong with a feature is found whether or not somebody
reads it: that it is missing, of another kind, or has the wrong number of values. So only those features are left out
that can be checked without decoding them, which are bytes and floats. What stands in their place goes no further than
to the select, which has been moved down to the map.
"""

from __future__ import annotations

import dataclasses

from dataset.io.example.features import FixedLenFeature, VarLenFeature
from dataset.io.example.parse import ExampleParser
from dataset.ops.batch.batch import Batch
from dataset.ops.map import Map
from dataset.ops.prefetch import Prefetch
from dataset.ops.select import Select
from dataset.ops.shard.shard import Shard
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.optimize.column_parser import ColumnParser, column_parser_of
from dataset.plan.node import Node
from dataset.plan.structure import structure_of

_PASSING_ON = (Batch, Prefetch, Shard, Shuffle, Skip, Take)
"""Ops that do not care what is in an element. A cache is none of them: others may read from it, too."""


def project_parser(node: Node) -> Node | None:
    """Return the same select directly over the map, which decodes no more than that reads."""
    if type(node) is not Select:
        return None
    between: list[Node] = []
    below = node.source
    while type(below) in _PASSING_ON:
        between.append(below)
        (below,) = below.inputs
    found = column_parser_of(below)
    if found is None or found.result is not None or not all(_goes_above(passing, below) for passing in between):
        return None
    read = _read(node, found)
    if read is None or read == found.read or not found.parser.skips(read):
        return None
    assert isinstance(below, Map)
    projected = dataclasses.replace(found, read=read).put_into(below)
    rewritten: Node = dataclasses.replace(node, source=projected)
    for passing in reversed(between):
        rewritten = passing.with_inputs([rewritten])
    return rewritten


def _goes_above(passing: Node, parsing: Node) -> bool:
    """Return whether an op between the select and the map may as well come behind the select."""
    assert isinstance(parsing, Map)
    if not isinstance(parsing.function, ExampleParser):
        return False  # the features of a function may become others, and the select may fail
    features = parsing.function.features.values()
    return type(passing) is not Batch or all(isinstance(part, FixedLenFeature | VarLenFeature) for part in features)


def _read(select: Select, found: ColumnParser) -> frozenset[str] | None:
    """Return the features that somebody reads; None where the select is mistaken."""
    structure = structure_of(dict.fromkeys(found.parser.features, 0))
    try:
        components = select.selection(structure).components
    except ValueError:
        return None
    return frozenset(structure.child_keys()[component] for component in components)

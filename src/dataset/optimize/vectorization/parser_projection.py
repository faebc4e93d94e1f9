"""Do not decode the features of Examples that a select drops.

    before:  map(ExampleParser), batch(128), select("label")              decodes images, and drops batches of them
    after:   map(ExampleParser), on columns, select("label"), batch(128)  only checks that there is an image

Legal if select is downstream of a map that only parses, and all ops between them are independent of the elements'
content; a batch is, if it can stack all features. Unused features are still checked: an error is raised if one is
missing, of another kind, or has the wrong number of values. So only features that can be checked without decoding them
are left out, which are all without partitions. Their placeholders do not get past the select, which is moved directly
above the map.
"""

from __future__ import annotations

import dataclasses

from dataset.io.example.features import FixedLenFeature, VarLenFeature
from dataset.io.example.parse import ExampleParser
from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.column_parser import ColumnParser, SelectsComponents, column_parser_of
from dataset.plan.node import Node
from dataset.plan.structure import structure_of


def project_parser(node: Node) -> Node | None:
    """Return the select directly above the map, which then decodes only the selected features."""
    if not isinstance(node, SelectsComponents):
        return None
    between: list[Node] = []
    (below,) = node.inputs
    while _is_independent(below):
        between.append(below)
        (below,) = below.inputs
    found = column_parser_of(below)
    if found is None or found.result is not None or not all(_goes_above(passing, below) for passing in between):
        return None
    read = _read(node, found)
    if read is None or read == found.read or not found.parser.skips(read):
        return None
    assert isinstance(below, Elementwise)
    projected = dataclasses.replace(found, read=read).put_into(below)
    rewritten: Node = node.with_inputs([projected])
    for passing in reversed(between):
        rewritten = passing.with_inputs([rewritten])
    return rewritten


def _is_independent(node: Node) -> bool:
    """Return whether an op does not depend on the elements' content. A cache does: other pipelines may read from it."""
    traits = node.traits
    passes_on = traits.positional or (traits.only_reorders and traits.aligned)
    return bool(traits.stacks) or (passes_on and traits.passes == 1 and len(node.inputs) == 1)


def _goes_above(passing: Node, parsing: Node) -> bool:
    """Return whether an op between the select and the map may be moved after the select."""
    assert isinstance(parsing, Elementwise)
    if not isinstance(parsing.called, ExampleParser):
        return False  # the features that a function uses may change, and then the select would fail
    features = parsing.called.features.values()
    return not passing.traits.stacks or all(isinstance(part, FixedLenFeature | VarLenFeature) for part in features)


def _read(select: SelectsComponents, found: ColumnParser) -> frozenset[str] | None:
    """Return the selected features; None if the select is invalid."""
    structure = structure_of(dict.fromkeys(found.parser.features, 0))
    try:
        components = select.selection(structure).components
    except ValueError:
        return None
    return frozenset(structure.child_keys()[component] for component in components)

"""Rules for maps that parse Examples: parse many records at once, and decode and convert no more than is used.

``parser_vectorization`` parses many records at once if a function only parses one record:

    before:  map(lambda record: io.parse_single_example(record, FEATURES))["label"]              record by record
    after:   map(lambda record: io.parse_single_example(record, FEATURES))["label"], on columns  chunk by chunk

Legal if the function's expression graph only contains a call of parse_single_example with a dict of features from
outside of the function, and the result or some of its features (parsing_functions.py). Before each chunk, it is
checked that what the function reads is unchanged. If it has changed, or a chunk cannot be parsed at once, the function
itself is called for each record, so that errors name the right record and source line.

``parser_and_batch_fusion`` keeps the values of a batch of parsed Examples contiguous:

    before:  map(ExampleParser), batch(128)              128 sparse tensors, then one of them
    after:   map(ExampleParser), on columns, batch(128)  the values of 128 records, then a sparse tensor of them

Legal if a batch is directly above a map that only parses, or above a select of one: batch, padded_batch, ragged_batch
and bucket_by_sequence_length produce the same result from contiguous values as from single ones. Records that cannot be
parsed together are parsed one by one, as before. Features with a fixed shape are already arrays. It also keeps the
records of a batch in the blocks of their file:

    before:  batch(128), map(parse_example)                       an array of 128 objects, then parsed
    after:   batch(128), map(parse_example) on records in blocks  where the 128 are in the file's blocks, then parsed

Legal if it is proved that the map's function uses the batch only as the argument of parse_example. Before each batch,
it is checked that the names in the function still refer to the library.

``parser_projection`` does not decode the features of Examples that a select drops:

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
from typing import Any, Protocol, runtime_checkable

from dataset.io.example.features import FixedLenFeature, VarLenFeature
from dataset.io.example.parse import ExampleParser
from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.parsing_functions import ColumnParser, batch_parsing_function, parsing_function
from dataset.plan.node import Node
from dataset.plan.structure import Structure, structure_of


@runtime_checkable
class SelectsComponents(Protocol):
    """A node whose elements are some components of the elements of its input."""

    def selection(self, structure: Structure) -> Any:
        """Return the selection for elements of this structure: its ``components`` are their indices.

        Raises:
            ValueError: if there is none.
        """


@runtime_checkable
class KeepsBlocks(Protocol):
    """A node that stacks elements."""

    def keeping_blocks(self) -> Node | None:
        """Return this node, set to return a BytesColumn instead of an array of byte strings; None if it cannot."""


def vectorize_parser(node: Node) -> Node | None:
    """Return the map, set to parse whole columns of records."""
    if not isinstance(node, Elementwise) or not node.traits.aligned:
        return None
    if node.takes_columns or node.columnwise is not None or node.executor != "thread":
        return None
    found = parsing_function(node.called)
    return None if found is None else dataclasses.replace(node, column_function=found)


def fuse_parser_and_batch(node: Node) -> Node | None:
    """Return the batch, over a map that keeps the values contiguous; or the map, over a batch in blocks."""
    if isinstance(node, Elementwise):
        return _over_blocks(node)
    if not node.traits.takes_packed:
        return None
    (source,) = node.inputs
    parsing: Any = source.inputs[0] if isinstance(source, SelectsComponents) else source
    found = _column_parser_of(parsing)
    if found is None or found.packed or not found.parser.packs(found.read):
        return None
    packing: Node = dataclasses.replace(parsing, column_function=dataclasses.replace(found, packed=True))
    return node.with_inputs([packing if parsing is source else source.with_inputs([packing])])


def project_parser(node: Node) -> Node | None:
    """Return the select directly above the map, which then decodes only the selected features."""
    if not isinstance(node, SelectsComponents):
        return None
    between: list[Node] = []
    below: Any
    (below,) = node.inputs
    while _is_independent(below):
        between.append(below)
        (below,) = below.inputs
    found = _column_parser_of(below)
    if found is None or found.result is not None or not all(_goes_above(passing, below) for passing in between):
        return None
    read = _read(node, found)
    if read is None or read == found.read or not found.parser.skips(read):
        return None
    projected = dataclasses.replace(below, column_function=dataclasses.replace(found, read=read))
    rewritten: Node = node.with_inputs([projected])
    for passing in reversed(between):
        rewritten = passing.with_inputs([rewritten])
    return rewritten


def _column_parser_of(node: Any) -> ColumnParser | None:
    """Return a column parser for a map; None if its function is not a parser or runs in worker processes."""
    if not isinstance(node, Elementwise) or not node.traits.aligned or node.executor != "thread":
        return None
    if isinstance(node.column_function, ColumnParser):
        return node.column_function
    parser = node.called
    if type(parser) is not ExampleParser:  # a subclass may do anything
        return None
    return ColumnParser(parser, lambda: True, None, frozenset(parser.features))


def _over_blocks(node: Elementwise) -> Node | None:
    is_set = node.function_of_blocks is not None
    if is_set or not isinstance(node.source, KeepsBlocks) or not node.traits.aligned or node.executor != "thread":
        return None
    batch, function = node.source.keeping_blocks(), batch_parsing_function(node.called)
    if batch is None or function is None:
        return None
    return dataclasses.replace(node, function_of_blocks=function).with_inputs([batch])


def _is_independent(node: Node) -> bool:
    """Return whether an op does not depend on the elements' content. A cache does: other pipelines may read from it."""
    traits = node.traits
    passes_on = traits.positional or (traits.only_reorders and traits.aligned)
    return bool(traits.stacks) or (passes_on and traits.passes == 1 and len(node.inputs) == 1)


def _goes_above(passing: Node, parsing: Elementwise) -> bool:
    """Return whether an op between the select and the map may be moved after the select."""
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

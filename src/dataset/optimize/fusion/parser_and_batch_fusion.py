"""Keep the values of a batch of parsed Examples contiguous, and the records of a batch in the blocks of their file.

    before:  map(ExampleParser), batch(128)              128 sparse tensors, then one of them
    after:   map(ExampleParser), on columns, batch(128)  the values of 128 records, then a sparse tensor of them

Legal if a batch is directly above a map that only parses, or above a select of one: batch, padded_batch, ragged_batch
and bucket_by_sequence_length produce the same result from contiguous values as from single ones. Records that cannot be
parsed together are parsed one by one, as before. Features with a fixed shape are already arrays.

    before:  batch(128), map(parse_example)                       an array of 128 objects, then parsed
    after:   batch(128), map(parse_example) on records in blocks  where the 128 are in the file's blocks, then parsed

Legal if the bytecode of the map's function proves that it uses the batch only as the argument of parse_example
(batch_parsing.py). Before each batch, it is checked that the names in the function still refer to the library.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol, runtime_checkable

from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.batch_parsing import batch_parsing_function
from dataset.optimize.vectorization.column_parser import SelectsComponents, column_parser_of
from dataset.plan.node import Node


@runtime_checkable
class KeepsBlocks(Protocol):
    """A node that stacks elements."""

    def keeping_blocks(self) -> Node | None:
        """Return this node, set to return a BytesColumn instead of an array of byte strings; None if it cannot."""


def fuse_parser_and_batch(node: Node) -> Node | None:
    """Return the batch, over a map that keeps the values contiguous; or the map, over a batch in blocks."""
    if isinstance(node, Elementwise):
        return _over_blocks(node)
    if not node.traits.takes_packed:
        return None
    (source,) = node.inputs
    parsing = source.inputs[0] if isinstance(source, SelectsComponents) else source
    found = column_parser_of(parsing)
    if found is None or found.packed or not found.parser.packs(found.read):
        return None
    assert isinstance(parsing, Elementwise)
    packing: Node = dataclasses.replace(found, packed=True).put_into(parsing)
    return node.with_inputs([packing if parsing is source else source.with_inputs([packing])])


def _over_blocks(node: Elementwise) -> Node | None:
    is_set = node.function_of_blocks is not None
    if is_set or not isinstance(node.source, KeepsBlocks) or not node.traits.aligned or node.executor != "thread":
        return None
    batch, function = node.source.keeping_blocks(), batch_parsing_function(node.called)
    if batch is None or function is None:
        return None
    return dataclasses.replace(node, function_of_blocks=function).with_inputs([batch])

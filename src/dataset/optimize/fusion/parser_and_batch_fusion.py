"""Keep the values of a batch of parsed Examples contiguous, instead of splitting and joining them again.

    before:  map(ExampleParser), batch(128)              128 sparse tensors, then one of them
    after:   map(ExampleParser), on columns, batch(128)  the values of 128 records, then a sparse tensor of them

Legal if a batch is directly above a map that only parses, or above a select of one: batch, padded_batch, ragged_batch
and bucket_by_sequence_length produce the same result from contiguous values as from single ones. Records that cannot be
parsed together are parsed one by one, as before. Features with a fixed shape are already arrays.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.column_parser import SelectsComponents, column_parser_of
from dataset.plan.node import Node


def fuse_parser_and_batch(node: Node) -> Node | None:
    """Return the batch, over a map that keeps the values contiguous."""
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

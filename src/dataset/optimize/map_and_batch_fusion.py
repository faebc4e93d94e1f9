"""Have the results of a map written straight into the arrays of the batch above it.

    before:  map(decode), batch(32)              a list of 32 images, then an array of them
    after:   map(decode), into arrays, batch(32)  an array, into which each image is written when it is made

Legal wherever a batch is directly above a map: the elements stay what they are. Those that do not fit into one array
wait side by side, as before, for the batch to say what is wrong with them.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.batch.batch import Batch
from dataset.ops.map import Map
from dataset.ops.random_map import RandomMap
from dataset.plan.node import Node


def fuse_map_and_batch(node: Node) -> Node | None:
    """Return the same batch, over a map that knows of it."""
    if type(node) is not Batch or node.batch_size == 1:  # the ops derived from it do not stack arrays of one shape
        return None
    match node.source:
        case Map(into_arrays=False) | RandomMap(into_arrays=False):
            return node.with_inputs([dataclasses.replace(node.source, into_arrays=True)])
    return None

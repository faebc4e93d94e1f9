"""Write the results of a map, or the values of a generator, directly into the arrays of the batch that follows it.

    before:  map(decode), batch(32)              a list of 32 images, then an array of them
    after:   map(decode), into arrays, batch(32)  an array into which each image is written as soon as it is decoded

Legal whenever a batch is directly above a map or a generator: the elements do not change. Elements that do not fit into
one array are kept separately, as before, and the batch raises the error.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from dataset.plan.node import Node


def fuse_map_and_batch(node: Node) -> Node | None:
    """Return the batch, over a map or a generator that writes into its arrays."""
    if node.traits.stacks <= 1:
        return None
    (source,) = node.inputs
    if getattr(source, "write_into_batch", True):  # it cannot, or does so already
        return None
    return node.with_inputs([dataclasses.replace(cast("Any", source), write_into_batch=True)])

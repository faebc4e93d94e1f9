"""Whether the elements of a dataset are batches, according to its plan."""

from __future__ import annotations

from dataset.plan.node import Node

_BATCHING = {"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"}
_ENDING = {"flat_map", "interleave", "unbatch", "window", "group_by_window"}
"""Ops that do not preserve the elements of their input, so a batch op upstream of them says nothing."""


def makes_batches(node: Node) -> bool:
    """Return whether an op has combined several elements into one."""
    while node.op not in _BATCHING:
        if len(node.inputs) != 1 or node.op in _ENDING:
            return False
        (node,) = node.inputs
    return True

"""Let a sequential interleave read ahead from all datasets of its cycle.

    before:  interleave(TFRecordDataset, cycle_length=8)    waits for one file after the other
    after:   interleave(TFRecordDataset, cycle_length=8), AUTOTUNE parallel calls

Opt-in: the function is then called, and its datasets are read, in other threads and before their elements are
requested. The order of the elements does not change.

tf.data's option of this name has the same result but works differently: it replaces a parallel interleave with a fixed
order by a sequential one whose datasets each prefetch. Here both are one op, since a parallel interleave reads each
dataset into its own buffer, in a bounded number of threads. So only the sequential one needs rewriting.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.interleave.interleave import Interleave
from dataset.options import AUTOTUNE
from dataset.plan.node import Node


def prefetch_interleaved(node: Node) -> Node | None:
    """Return the interleave, set to read from all datasets of its cycle at once, in order."""
    if not isinstance(node, Interleave) or node.num_parallel_calls is not None:
        return None
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)

"""Have an interleave that reads from one dataset at a time read from all of its cycle, ahead.

    before:  interleave(TFRecordDataset, cycle_length=8)    waits for one file after the other
    after:   interleave(TFRecordDataset, cycle_length=8), AUTOTUNE parallel calls

Only where a user asks for it: the function is then called, and what it returns is read, before that is asked for, in
other threads. The order of the elements stays.

tf.data's option of this name comes to the same from the other side: it turns a parallel interleave whose order is fixed
into a sequential one whose datasets each prefetch. Here both are one op, since the parallel one reads each dataset into
a buffer of its own, in a bounded number of threads; so what is left to do is to have the sequential one read ahead.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.interleave.interleave import Interleave
from dataset.options import AUTOTUNE
from dataset.plan.node import Node


def prefetch_interleaved(node: Node) -> Node | None:
    """Return the same interleave, reading from all datasets of its cycle at once, in order."""
    if not isinstance(node, Interleave) or node.num_parallel_calls is not None:
        return None
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)

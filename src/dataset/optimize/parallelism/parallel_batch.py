"""Stack batches in several threads.

    before:  batch(32)
    after:   batch(32), AUTOTUNE parallel calls

Opt-in: batches and their elements are then produced before they are requested, which user code upstream can observe.
The order of the elements does not change.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.batch.batch import Batch
from dataset.options import AUTOTUNE
from dataset.plan.node import Node


def parallelize_batch(node: Node) -> Node | None:
    """Return the batch, set to stack as many batches at once as there are cores, in order."""
    if type(node) is not Batch or node.num_parallel_calls is not None:  # its subclasses have no such argument
        return None
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)

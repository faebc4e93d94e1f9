"""Have batches stacked by several threads.

    before:  batch(32)
    after:   batch(32), AUTOTUNE parallel calls

Only where a user asks for it: batches are then made before they are asked for, and with them their elements, which user
code below notices. The order stays.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.batch.batch import Batch
from dataset.options import AUTOTUNE
from dataset.plan.node import Node


def parallelize_batch(node: Node) -> Node | None:
    """Return the same batch, with as many being stacked at once as there are cores, in order."""
    if type(node) is not Batch or node.num_parallel_calls is not None:  # the ops derived from it have no such argument
        return None
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)

"""End a pipeline of batches with a prefetch, so that the next batch is made while the consumer works on this one.

    before:  TFRecordDataset(files) -> shuffle(1000) -> batch(32)
    after:   TFRecordDataset(files) -> shuffle(1000) -> batch(32) -> prefetch(AUTOTUNE), once it pays

The thread is started when it has been seen that making a batch and using it both take long; until then the consumer
makes what it asks for, as before.

Legal where no user code is run, because that would be called for elements that nobody may ever ask for. With
``Options().optimization.inject_prefetch = True`` it is added above user code, too. Not where the elements are no
batches, because to hand them over takes longer than to make them; nor where batches are parts of arrays as they are, or
numbers that are counted and go through no user code.
"""

from __future__ import annotations

from dataset.ops.batch.batch import Batch
from dataset.ops.batch.rebatch import Rebatch
from dataset.ops.counter import Counter
from dataset.ops.gather import Gather
from dataset.ops.prefetch import Prefetch
from dataset.ops.random import Random
from dataset.ops.range import Range
from dataset.ops.repeat import Repeat
from dataset.ops.shard.shard import Shard
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.ops.tensor_slices import TensorSlices
from dataset.optimize.rule import Miss
from dataset.options import AUTOTUNE
from dataset.plan.node import Node, UnaryNode, holds_user_code, walk


def inject_prefetch(plan: Node, *, asked_for: bool) -> Node | Miss | None:
    """Return the whole plan under a prefetch. ``asked_for``: the user has switched this on, and accepts calls ahead."""
    if isinstance(plan, Prefetch) or not _makes_batches(plan) or _takes_no_time(plan):
        return None
    if holds_user_code(plan) and not asked_for:
        return Miss(
            "it would call your functions for elements that nobody may ask for; end the pipeline with "
            "prefetch(AUTOTUNE), or set optimization.inject_prefetch to True"
        )
    return Prefetch(plan, AUTOTUNE, patient=True, origin=plan.origin)


def _makes_batches(node: Node) -> bool:
    while not isinstance(node, Batch | Rebatch):
        if not isinstance(node, UnaryNode):
            return False
        node = node.source
    return True


def _takes_no_time(plan: Node) -> bool:
    """Return whether all that is done is to count, or to look at parts of arrays."""
    nodes = list(walk(plan))
    if all(isinstance(node, TensorSlices | Batch | Repeat | Shard | Skip | Take) for node in nodes):
        return True
    sources = [node for node in nodes if not node.inputs]
    if not all(isinstance(node, Range | Counter | Random) for node in sources):
        return False
    return Gather not in map(type, nodes) and not holds_user_code(plan)

"""Rules about single ops: each op says in ``RewritableNode.rewritten`` how it can run otherwise.

    skip_by_seeking           from_tensor_slices(x) -> batch(100) -> skip(1000)   seeks to row 100,000
    repeat_pushdown           range(10) -> repeat(100)           holds ten numbers and returns them a hundred times
    map_parallelization       map(decode)                        AUTOTUNE parallel calls
    filter_parallelization    filter(is_sharp)                   AUTOTUNE parallel calls
    parallel_batch            batch(32)                          AUTOTUNE parallel calls
    seq_interleave_prefetch   interleave(TFRecordDataset)        AUTOTUNE parallel calls

The last four are opt-in: functions are then called concurrently, in other threads than the consumer's, and for elements
that have not been requested yet. Whether a Python function supports this cannot be determined automatically. The order
of the elements does not change.

tf.data's ``seq_interleave_prefetch`` has the same result but works differently: it replaces a parallel interleave with
a fixed order by a sequential one whose datasets each prefetch. Here both are one op, since a parallel interleave reads
each dataset into its own buffer, in a bounded number of threads. So only the sequential one needs rewriting.
"""

from __future__ import annotations

from dataset.optimize.rule import Rule
from dataset.plan.node import Miss, Node, RewritableNode


def rule_of_op(name: str) -> Rule:
    """Return the rule that applies to the ops which name it."""

    def rule(node: Node) -> Node | Miss | None:
        return node.rewritten() if isinstance(node, RewritableNode) and node.rule == name else None

    return rule

"""End a pipeline of batches with a prefetch, so that the next batch is produced while the consumer uses this one.

    before:  TFRecordDataset(files) -> shuffle(1000) -> batch(32)
    after:   TFRecordDataset(files) -> shuffle(1000) -> batch(32) -> prefetch(AUTOTUNE), once it pays

The thread is started once a comparison has shown that it pays (ops/prefetch.py). Until then, the consumer's thread
produces the batches, as before.

Legal if no user code runs, because it would be called for elements that may never be requested. With
``Options().optimization.inject_prefetch = True`` the prefetch is added downstream of user code, too. It is not added if
the elements are not batches, because passing them to another thread takes longer than producing them. Nor is it added
if batches are slices of arrays, or generated numbers that no user code processes.
"""

from __future__ import annotations

from dataset.ops.prefetch import Prefetch
from dataset.options import AUTOTUNE
from dataset.plan.node import Miss, Node, UnaryNode, holds_user_code, sources, walk


def inject_prefetch(plan: Node, *, asked_for: bool) -> Node | Miss | None:
    """Return the plan with a prefetch at its end. ``asked_for``: the user has turned this on, accepting early calls."""
    if plan.traits.prefetches or not _makes_batches(plan) or _takes_no_time(plan):
        return None
    if holds_user_code(plan) and not asked_for:
        return Miss(
            "it would call your functions for elements that may never be requested; end the pipeline with "
            "prefetch(AUTOTUNE), or set optimization.inject_prefetch to True"
        )
    return Prefetch(plan, AUTOTUNE, adaptive=True, origin=plan.origin)


def _makes_batches(node: Node) -> bool:
    while not node.traits.batches:
        if not isinstance(node, UnaryNode):
            return False
        node = node.source
    return True


def _takes_no_time(plan: Node) -> bool:
    """Return whether the plan only generates numbers or slices arrays."""
    if all(node.traits.views for node in walk(plan)):
        return True
    return all(source.traits.generated for source in sources(plan)) and not holds_user_code(plan)

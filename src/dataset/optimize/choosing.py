"""Random access to several elements of a plan with a single pipeline.

Looking up elements one by one opens a pipeline for each. If the source rows of element ``i`` can be computed from
``i``, the rows of all elements can be read from the source at once, and one pipeline produces all elements.
"""

from __future__ import annotations

from dataset.ops.gather import Gather
from dataset.ops.map import Map
from dataset.ops.prefetch import Prefetch
from dataset.ops.repeat import Repeat
from dataset.ops.select import Select
from dataset.ops.shard.shard import Shard
from dataset.ops.skip import Skip
from dataset.ops.sources.row_source import RowSource
from dataset.ops.take import Take
from dataset.ops.with_options import WithOptions
from dataset.ops.zip import Zip
from dataset.plan.node import Node
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.state.held_elements import Elements


def chosen(plan: Node, places: Array) -> Node | None:
    """Return a plan of the elements at these existing positions, in this order; None if not supported."""
    match plan:
        case RowSource():
            numbers = plan.places.start + places * plan.places.step
            return Gather(Elements(Chunk(LEAF, len(numbers), [numbers])), plan.with_rows(plan.all_rows))
        case Map() | Select() | Prefetch() | WithOptions() | Zip() | Take():
            below = places
        case Skip():
            below = places + plan.count
        case Shard():
            below = plan.index + places * plan.num_shards
        case Repeat():
            below = places % plan.source.cardinality()
        case _:
            return None
    inputs = [chosen(source, below) for source in plan.inputs]
    if any(part is None for part in inputs):
        return None
    if isinstance(plan, Map | Select | Zip):
        return plan.with_inputs([part for part in inputs if part is not None])
    return inputs[0]  # the effect of the other ops is already in the positions

"""Sharding by files: each process reads its own files, and runs everything downstream on their records.

    before:  list_files(8 files) -> shuffle -> TFRecordDataset -> map(parse)     for process 1 of 4
    after:   list_files(2 files) -> shuffle -> TFRecordDataset -> map(parse)     files 1 and 5 of the list

Legal if all ops between the split and the list of names are ``separable``.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataset.io.files.list_files import ListFiles
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.optimize.sharding.agreement import Agreement
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF


@dataclass(frozen=True)
class FileList:
    """List of file names, and the ops above it.

    Attributes:
        names: the list, in its original order.
        above: the ops between the list and the split, the lowest first.
    """

    names: TensorSlices
    above: tuple[Node, ...]

    def __len__(self) -> int:
        return self.names.cardinality()

    @property
    def is_endless(self) -> bool:
        """Whether the output is infinite; none of these ops makes it finite again."""
        return any(node.cardinality() == INFINITE_CARDINALITY for node in self.above)

    @property
    def are_opened(self) -> bool:
        """Whether a file may yield many elements."""
        return any(node.traits.expands_elements for node in self.above)

    def part(self, world_size: int, rank: int, agreement: Agreement | None = None) -> Node:
        """Return the plan over the files of one process. Without an agreement, it can only be used for counting."""
        found: Node = self.names.dealt_to(rank, world_size)
        for node in self.above:
            found = node.over_shard([found], None)
            if agreement is not None:
                found = agreement.on(found, node)
        return found


def file_list(plan: Node) -> FileList | str:
    """Return the list of files that a plan reads, or the reason why they cannot be split."""
    above: list[Node] = []
    node = plan
    while node.inputs:
        if len(node.inputs) > 1 or not node.traits.separable:
            return f"{node.location()} follows the files and needs the elements of all of them together"
        above.insert(0, node)
        (node,) = node.inputs
    opened = any(part.traits.expands_elements for part in above)
    if isinstance(node, ListFiles) or (opened and isinstance(node, TensorSlices) and _is_text(node)):
        return FileList(node, tuple(above))
    return f"{node.location()} is not a list of file names"


def _is_text(node: TensorSlices) -> bool:
    return node.structure is LEAF and TensorSpec((), bytes).is_compatible_with(node.element_spec)

"""Dealing out files: each process reads its own, and does all that is above them on what they hold.

    before:  list_files(8 files) -> shuffle -> TFRecordDataset -> map(parse)     for process 1 of 4
    after:   list_files(2 files) -> shuffle -> TFRecordDataset -> map(parse)     files 1 and 5 of the list

Legal where an op says of itself that it ``separates``, from the place of the split down to the list of names.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataset.io.files.list_files import ListFiles
from dataset.ops.tensor_slices import TensorSlices
from dataset.optimize.sharding.agreement import Agreement
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF


@dataclass(frozen=True)
class FileList:
    """A list of file names, and the ops above it.

    Attributes:
        names: the list, in its own order.
        above: the ops between it and the place of the split, the lowest first.
    """

    names: TensorSlices
    above: tuple[Node, ...]

    def __len__(self) -> int:
        return self.names.cardinality()

    @property
    def is_endless(self) -> bool:
        """Whether what comes out has no end: none of these ops makes one."""
        return any(node.cardinality() == INFINITE_CARDINALITY for node in self.above)

    @property
    def are_opened(self) -> bool:
        """Whether many elements come of a file."""
        return any(node.opens_elements for node in self.above)

    def part(self, world_size: int, rank: int, agreement: Agreement | None = None) -> Node:
        """Return the plan over the files of one process. Without an agreement it is only there to be counted."""
        found: Node = self.names.dealt_to(rank, world_size)
        for node in self.above:
            found = node.over_part([found])
            if agreement is not None:
                found = agreement.on(found, node)
        return found


def file_list(plan: Node) -> FileList | str:
    """Return the list of files that a plan reads, or why there is none that can be split."""
    above: list[Node] = []
    node = plan
    while node.inputs:
        if len(node.inputs) > 1 or not node.separates:
            return f"{node.located()} stands above the files, and needs the elements of all of them together"
        above.insert(0, node)
        (node,) = node.inputs
    opened = any(part.opens_elements for part in above)
    if isinstance(node, ListFiles) or (opened and isinstance(node, TensorSlices) and _is_text(node)):
        return FileList(node, tuple(above))
    return f"{node.located()} is no list of file names"


def _is_text(node: TensorSlices) -> bool:
    return node.structure is LEAF and TensorSpec((), bytes).is_compatible_with(node.element_spec)

"""The contract of kernels: how a function runs on a chunk.

A kernel computes the outcomes of the inputs in a chunk. It stops at the first exception, and returns what it has done.
It neither reads inputs nor keeps outcomes: the operator puts back the inputs that are left (elementwise_operator.py).
A kernel that cannot take a chunk leaves it to another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dataset.runtime.chunks.chunk import Chunk, Outcome, descended


@dataclass(slots=True)
class Done:
    """What a kernel has done.

    Attributes:
        count: how many inputs are done, from the first one on.
        outcomes: their outcomes, in order; an input may have none.
        interrupt: an exception such as KeyboardInterrupt. It concerns the program and not the next input.
    """

    count: int
    outcomes: list[Outcome]
    interrupt: BaseException | None = None


class Kernel(ABC):
    """A way to run a function on chunks."""

    runs_on_columns = False
    """Whether the function is not called, because its operations are applied to columns instead."""

    @abstractmethod
    def run(self, inputs: Chunk, position: int) -> Done:
        """Compute the outcomes of these inputs, whose first one has this number.

        Raises only what is no ``Exception``. Then nothing is done.
        """


def outcomes_of_output(output: Chunk | None, inputs: Chunk) -> list[Outcome]:
    """Return the outcomes of these inputs, which are the elements in a chunk, or none."""
    if output is None:
        return []
    if inputs.lineage is not None:
        descended(output, inputs)
    return [output]

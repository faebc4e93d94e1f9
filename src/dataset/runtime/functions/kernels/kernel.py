"""The contract of kernels: how a function runs on a chunk.

A kernel computes the outcomes of the inputs in a chunk. It stops at the first exception, and returns what it has done.
It neither reads inputs nor keeps outcomes: the operator puts back the inputs that are left (elementwise_operator.py).
A kernel that cannot take a chunk leaves it to another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dataset.plan.node import Node
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk, Outcome, descended
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.resources.exceptions import concerns_iteration


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


class Calls(Protocol):
    """The operator of a function: how it is called, and what becomes of its results."""

    structure: Structure | None
    writer: RowWriter
    parses_blocks: bool

    @property
    def node(self) -> Node:
        """The node of the operator, for messages."""

    @property
    def returns_results(self) -> bool:
        """Whether the outputs are the results of the function."""

    @property
    def stops(self) -> bool:
        """Whether the function need not be called for the last of the inputs."""

    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:
        """Call the function for these inputs, and append the results, or WRITTEN for those that ``writer`` holds."""

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        """Return the output for these inputs, or None. If it raises, each element is finished separately."""

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        """Return the output for the result of a vectorized function for all of these inputs."""

    def mismatch(self, result: Any) -> str:
        """Return the error message for a result of a different structure."""


class Kernel(ABC):
    """A way to run a function on chunks. It does not refer to the operator, which would be a reference cycle."""

    runs_on_columns = False
    """Whether the function is not called, because its operations are applied to columns instead."""

    @abstractmethod
    def run(self, calls: Calls, inputs: Chunk, position: int) -> Done:
        """Compute the outcomes of these inputs, whose first one has this number.

        Raises only exceptions such as KeyboardInterrupt, and has done nothing then.
        """


def outcomes_of_output(output: Chunk | None, inputs: Chunk) -> list[Outcome]:
    """Return the outcomes of these inputs, which are the elements in a chunk, or none."""
    if output is None:
        return []
    if inputs.lineage is not None:
        descended(output, inputs)
    return [output]


def all_outcomes(run: Callable[[Chunk, int], Done], inputs: Chunk, position: int) -> list[Outcome]:
    """Return the outcomes of all these inputs. In a worker, an interrupt of a function is an outcome like any other."""
    outcomes: list[Outcome] = []
    done = Done(0, [])
    count = 0
    try:
        while count < inputs.length:
            done = _run(run, inputs.slice(count, inputs.length), position + count)
            outcomes += done.outcomes
            if outcomes and isinstance(outcomes[-1], Exception) and concerns_iteration(outcomes[-1]):
                raise outcomes[-1]
            count += done.count
            if done.interrupt is not None:
                done.interrupt.took_place = True  # type: ignore[attr-defined]  # see save_pending
                outcomes.append(done.interrupt)
                count += 1
        return outcomes
    finally:
        del outcomes, done  # see runtime/contract.py on exceptions that are kept


def _run(run: Callable[[Chunk, int], Done], inputs: Chunk, position: int) -> Done:
    try:
        return run(inputs, position)
    except Exception:
        raise
    except BaseException as error:  # noqa: BLE001  # nothing was done
        return Done(0, [], error)

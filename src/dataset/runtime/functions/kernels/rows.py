"""Row kernel: calls a function for each element.

The calls for a chunk run in one loop in C (row_writer.py), which costs little beside the calls themselves. If the
function raises in the middle, its earlier results are the outcomes before the exception.
"""

from __future__ import annotations

from typing import Any, Protocol

from dataset.errors import SpecError
from dataset.plan.node import Node
from dataset.plan.structure import Structure, StructureMismatchError
from dataset.runtime.chunks.chunk import Chunk, Outcome, descended
from dataset.runtime.chunks.ownership import WRITTEN
from dataset.runtime.functions.kernels.kernel import Done, Kernel, outcomes_of_output
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.resources.exceptions import as_error_of_element, with_location


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


class RowKernel(Kernel):
    """Kernel that calls the function for each element."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def run(self, inputs: Chunk, position: int) -> Done:
        if self._calls.parses_blocks and inputs.is_packed:
            inputs = inputs.unpacked()
        results: list[Any] = []
        error: BaseException | None = None
        try:
            self._calls.collect(results, inputs, position)
        except BaseException as raised:  # noqa: BLE001  # an outcome, or raised by the operator
            error = as_error_of_element(raised)
        if error is None and len(results) == inputs.length:
            return Done(inputs.length, self._outcomes(inputs, results, position))
        try:
            return self._done(inputs, results, error, position)
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _done(self, inputs: Chunk, results: list[Any], error: BaseException | None, position: int) -> Done:
        count = len(results)
        outcomes = self._outcomes(inputs.slice(0, count), results, position) if count else []
        if error is not None and not isinstance(error, Exception):
            return Done(count, outcomes, error)
        if count == inputs.length or (error is None and self._calls.stops):
            return Done(count, outcomes)
        error = StopIteration() if error is None else error  # which ends a loop silently
        return Done(count + 1, [*outcomes, with_location(error, self._calls.node, position + count)])

    def _outcomes(self, inputs: Chunk, results: list[Any], position: int) -> list[Outcome]:
        calls, writer = self._calls, self._calls.writer
        if results[0] is WRITTEN:
            written = writer.take(results)
            calls.structure, count = written.structure, written.length
            descended(written, inputs.slice(0, count))
            rest = inputs.slice(count, inputs.length)
            return [written, *(self._outcomes(rest, results, position + count) if results else [])]
        try:
            output = calls.finish(inputs, results)
        except Exception:  # noqa: BLE001  # an unusable result fails only its own element
            return self._outcomes_singly(inputs, results, position)
        if calls.returns_results and (inputs.length > 1 or writer.is_new):
            writer.learn(results[0], output)
        return outcomes_of_output(output, inputs)

    def _outcomes_singly(self, inputs: Chunk, results: list[Any], position: int) -> list[Outcome]:
        return [
            outcome
            for index, result in enumerate(results)
            if (outcome := self._outcome(inputs.slice(index, index + 1), result, position + index)) is not None
        ]

    def _outcome(self, element: Chunk, result: Any, position: int) -> Outcome | None:
        try:
            return descended(self._calls.finish(element, [result]), element)
        except StructureMismatchError:
            return with_location(SpecError(self._calls.mismatch(result)), self._calls.node, position)
        except Exception as error:  # noqa: BLE001  # raised in its place
            return with_location(error, self._calls.node, position)

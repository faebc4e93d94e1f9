"""Row kernel: calls a function for each element.

The calls for a chunk run in one loop in C (row_writer.py), which costs little beside the calls themselves. If the
function raises in the middle, its earlier results are the outcomes before the exception.
"""

from __future__ import annotations

from typing import Any

from dataset.errors import SpecError
from dataset.plan.structure import StructureMismatchError
from dataset.runtime.chunks.chunk import Chunk, Outcome, descended
from dataset.runtime.chunks.ownership import WRITTEN
from dataset.runtime.functions.kernels.kernel import Calls, Done, Kernel, outcomes_of_output
from dataset.runtime.resources.exceptions import as_error_of_element, with_location


class RowKernel(Kernel):
    """Kernel that calls the function for each element."""

    def run(self, calls: Calls, inputs: Chunk, position: int) -> Done:
        if calls.parses_blocks and inputs.is_packed:
            inputs = inputs.unpacked()
        results: list[Any] = []
        error: BaseException | None = None
        try:
            calls.collect(results, inputs, position)
        except BaseException as raised:  # noqa: BLE001  # an outcome, or raised by the operator
            error = as_error_of_element(raised)
        if error is None and len(results) == inputs.length:
            return Done(inputs.length, self._outcomes(calls, inputs, results, position))
        try:
            return self._done(calls, inputs, results, error, position)
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _done(
        self, calls: Calls, inputs: Chunk, results: list[Any], error: BaseException | None, position: int
    ) -> Done:
        count = len(results)
        outcomes = self._outcomes(calls, inputs.slice(0, count), results, position) if count else []
        if error is not None and not isinstance(error, Exception):
            return Done(count, outcomes, error)
        if count == inputs.length or (error is None and calls.stops):
            return Done(count, outcomes)
        error = StopIteration() if error is None else error  # which ends a loop silently
        return Done(count + 1, [*outcomes, with_location(error, calls.node, position + count)])

    def _outcomes(self, calls: Calls, inputs: Chunk, results: list[Any], position: int) -> list[Outcome]:
        writer = calls.writer
        if results[0] is WRITTEN:
            written = writer.take(results)
            calls.structure, count = written.structure, written.length
            descended(written, inputs.slice(0, count))
            rest = inputs.slice(count, inputs.length)
            return [written, *(self._outcomes(calls, rest, results, position + count) if results else [])]
        try:
            output = calls.finish(inputs, results)
        except Exception:  # noqa: BLE001  # an unusable result fails only its own element
            return self._outcomes_singly(calls, inputs, results, position)
        if calls.returns_results:
            writer.learn(results[0], output)
        return outcomes_of_output(output, inputs)

    def _outcomes_singly(self, calls: Calls, inputs: Chunk, results: list[Any], position: int) -> list[Outcome]:
        return [
            outcome
            for index, result in enumerate(results)
            if (outcome := self._outcome(calls, inputs.slice(index, index + 1), result, position + index)) is not None
        ]

    def _outcome(self, calls: Calls, element: Chunk, result: Any, position: int) -> Outcome | None:
        try:
            return descended(calls.finish(element, [result]), element)
        except StructureMismatchError:
            return with_location(SpecError(calls.mismatch(result)), calls.node, position)
        except Exception as error:  # noqa: BLE001  # raised in its place
            return with_location(error, calls.node, position)

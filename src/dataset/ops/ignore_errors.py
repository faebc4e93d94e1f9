"""Node and operator of ignore_errors(log_warning): drop the elements that fail."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from dataset.amounts import FAILURES_MAX
from dataset.plan.checks import require_bool
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.resources.exceptions import concerns_iteration

_log = logging.getLogger("dataset")


@dataclass(frozen=True, eq=False)
class IgnoreErrors(UnaryNode, separable=True, counted=False):
    """Node that passes on the elements that do not fail."""

    op: ClassVar[str] = "ignore_errors"
    log_warning: bool = False

    def __post_init__(self) -> None:
        self._set("log_warning", require_bool("ignore_errors", "log_warning", self.log_warning))

    def lower(self, context: ExecutionContext) -> Operator:
        return IgnoreErrorsOperator(context(self.source), self, context)


class IgnoreErrorsOperator(UnaryOperator):
    """Operator that pulls again if its input fails. Interrupts and similar exceptions are raised, not dropped.

    Attributes:
        dropped: the number of elements dropped.
    """

    saved = ("dropped",)

    def __init__(self, source: Operator, node: IgnoreErrors, context: ExecutionContext) -> None:
        super().__init__(source)
        self.node = node
        self.coordinator = context.iteration.coordinator
        self.skipped = context.skipped
        self.dropped = 0

    def pull(self, n: int) -> Chunk | None:
        failures = 0
        while True:
            try:
                chunk = self.source.pull(n)
                break
            except Exception as error:
                if concerns_iteration(error):
                    raise
                failures += 1
                self.dropped += 1
                if self.node.log_warning:
                    _warn(self.node, self.at + self.dropped - 1, error)
                if failures == FAILURES_MAX:
                    error.add_note(
                        f"in {self.node}: this is the last of {failures:,} consecutive errors without an "
                        "element between them; the next call continues after it"
                    )
                    raise
                self.skipped.add(1)
            self.coordinator.check_usable()  # closing the iterator must not wait for many failures
        self.at += chunk.length if chunk else 0
        return chunk


def _warn(node: Node, position: int, error: Exception) -> None:
    """Log a text, not the exception: a log record that is kept would keep everything the exception's frames hold."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", []))
    _log.warning("%s dropped element %d: %s: %s%s", str(node), position, type(error).__name__, str(error), notes)

"""Selectors: they choose the input of the next element for the mixing operator (ops/mix/mixing.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.node import Node, holds_user_code
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position, holding

Choices: TypeAlias = npt.NDArray[np.int64]

SELECTOR = "selector"
"""The op in the positions of selectors."""


class Selector(ABC):
    """Source of choices, which are indices of inputs."""

    seen_early: bool = False
    """Whether a user could observe that choices are drawn ahead."""

    changed_from: int | None = None
    """The first element whose choice may differ from that in the pipeline that saved the loaded state, if any may."""

    @abstractmethod
    def draw(self, n: int) -> Choices | None:
        """Return the next 1 to ``n`` choices; None at the end. An exception replaces one choice and its element."""

    def leave_out(self, index: int, unused: int) -> bool:  # noqa: ARG002  # for subclasses
        """Drop an input that has ended. Return whether the last ``unused`` choices are void and will be redrawn."""
        return False

    def live(self) -> list[int] | None:
        """Return the inputs that it may choose; None if the elements it reads decide that."""
        return None

    @abstractmethod
    def save(self) -> Position:
        """Return the position."""

    def position_before(self, unused: int) -> Position | None:  # noqa: ARG002  # for subclasses
        """Return the position before the last ``unused`` choices; None if they must be saved by value."""
        return None

    @abstractmethod
    def load(self, position: Position) -> None:
        """Restore a saved position."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Close the input, if any."""


class ReadSelector(Selector):
    """Selector that reads its choices from a dataset; an invalid choice raises an error in place of its element."""

    def __init__(self, node: Node, plan: Node, source: Operator) -> None:
        self.node = node
        self.seen_early = holds_user_code(plan)
        self._reader = _SelectedInput(source, self)
        self._later = OutcomeQueue()  # choices before an exception, and the exception

    @abstractmethod
    def convert(self, inputs: Chunk) -> Choices:
        """Return the choices. Raise SpecError, without changing any state, if an element is not a valid choice."""

    @property
    def position(self) -> int:
        """The position of the element being converted."""
        return self._reader.at

    def draw(self, n: int) -> Choices | None:
        chunk = self._later.collect(self._reader.pull, n)
        if chunk is None:
            return None
        column = chunk.columns()[0]
        assert isinstance(column, np.ndarray)
        return column

    def save(self) -> Position:
        return Position(SELECTOR, inputs=(self._reader.save(),), held=holding(later=self._later.save()))

    def load(self, position: Position) -> None:
        self._reader.load(position.source)
        self._later.load(position.held.get("later", ()), lambda: None)

    def close(self) -> None:
        self._reader.close()


class _SelectedInput(ChunkTransformOperator):
    """Operator that converts elements into choices."""

    def __init__(self, source: Operator, selector: ReadSelector) -> None:
        super().__init__(source, selector.node)
        self._selector = selector

    def convert(self, inputs: Chunk) -> Chunk:
        return Chunk(LEAF, inputs.length, [self._selector.convert(inputs)])

"""Who says from which input the next element comes, where datasets are mixed (ops/mix/mixing.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.node import Node, holds_user_code
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator, State
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator
from dataset.runtime.parallel.pending import Pending

Choices: TypeAlias = npt.NDArray[np.int64]


class Selector(ABC):
    """Makes the choices: numbers of inputs."""

    seen_early: bool = False
    """Whether a user could notice that choices are drawn ahead."""

    @abstractmethod
    def draw(self, n: int) -> Choices | None:
        """The next 1 to ``n`` choices; None at the end. An exception has the place of a choice, and of its element."""

    def leave_out(self, index: int, unused: int) -> bool:  # noqa: ARG002  # for those who can
        """An input has ended. Whether the last ``unused`` choices are void, and made anew among the others."""
        return False

    def live(self) -> list[int] | None:
        """Which inputs it may choose; None where the elements that it reads decide that."""
        return None

    @abstractmethod
    def state_dict(self) -> State:
        """Where it stands, as plain data."""

    def state_before(self, unused: int) -> State | None:  # noqa: ARG002  # for those who can
        """Where it stood before the last ``unused`` choices; None where they have to be saved by value."""
        return None

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go there."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Let go of what it reads from."""


class ReadSelector(Selector):
    """Makes choices out of the elements of a dataset; what cannot be one fails in its place."""

    def __init__(self, node: Node, plan: Node, source: Operator) -> None:
        self.node = node
        self.seen_early = holds_user_code(plan)
        self._reader = _SelectedInput(source, self)
        self._later = Pending()  # an exception behind choices that came first

    @abstractmethod
    def convert(self, inputs: Chunk) -> Choices:
        """The choices; SpecError if an element is no choice, before anything has changed."""

    @property
    def position(self) -> int:
        """The number of the element that is converted."""
        return self._reader.position

    def draw(self, n: int) -> Choices | None:
        chunk = self._later.give(n) if self._later else self._later.collect(self._reader.pull, n)
        if chunk is None:
            return None
        column = chunk.columns()[0]
        assert isinstance(column, np.ndarray)
        return column

    def state_dict(self) -> State:
        return {"reader": self._reader.state_dict(), "later": self._later.save()}

    def load_state_dict(self, state: State) -> None:
        self._reader.load_state_dict(state["reader"])
        self._later.load(state["later"], lambda: None)

    def close(self) -> None:
        self._reader.close()


class _SelectedInput(ChunkTransformOperator):
    """Turns elements into choices."""

    def __init__(self, source: Operator, selector: ReadSelector) -> None:
        super().__init__(source, selector.node)
        self._selector = selector

    def convert(self, inputs: Chunk) -> Chunk:
        return Chunk(LEAF, inputs.length, [self._selector.convert(inputs)])

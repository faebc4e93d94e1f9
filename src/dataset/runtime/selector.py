"""Who says from which input the next element comes, where datasets are mixed (runtime/mixing.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.node import Node, holds_user_code
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Operator, State
from dataset.runtime.pending import Pending

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

    @abstractmethod
    def state_dict(self) -> State:
        """Where it stands, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go there."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Let go of what it reads from."""


class ReadSelector(Selector):
    """Makes choices out of the elements of a dataset, and puts what cannot be one in its place as an exception."""

    def __init__(self, node: Node, plan: Node, source: Operator) -> None:
        self.node = node
        self.seen_early = holds_user_code(plan)
        self.source = source
        self.position = 0  # elements read
        self._ready = Pending()  # what one pull gave
        self._later = Pending()  # an exception behind choices that came first

    @abstractmethod
    def convert(self, inputs: Chunk) -> Choices:
        """The choices; SpecError if an element is no choice, before anything has changed."""

    def draw(self, n: int) -> Choices | None:
        chunk = self._later.give(n) if self._later else self._later.collect(self._next, n)
        if chunk is None:
            return None
        column = chunk.columns()[0]
        assert isinstance(column, np.ndarray)
        return column

    def _next(self, n: int) -> Chunk | None:
        if not self._ready:
            try:
                inputs = self.source.pull(n)
            except Exception:
                self.position += 1
                raise
            if inputs is None:
                return None
            self._read(inputs)
        return self._ready.give(n)

    def _read(self, inputs: Chunk) -> None:
        try:
            choices = self.convert(inputs)
        except SpecError as error:
            if inputs.length > 1:
                for index in range(inputs.length):
                    self._read(inputs.slice(index, index + 1))
                return
            self._ready.put(error)
        else:
            self._ready.put(Chunk(LEAF, inputs.length, [choices]))
        self.position += inputs.length

    def state_dict(self) -> State:
        return {
            "source": self.source.state_dict(),
            "position": self.position,
            "ready": self._ready.save(),
            "later": self._later.save(),
        }

    def load_state_dict(self, state: State) -> None:
        self.source.load_state_dict(state["source"])
        self.position = int(state["position"])
        self._ready.load(state["ready"], lambda: None)
        self._later.load(state["later"], lambda: None)

    def close(self) -> None:
        self.source.close()

"""The contract of everything that runs: operators pull chunks from their inputs.

Demand decides the size. ``pull(n)`` gives between 1 and ``n`` elements, and an operator never asks its input for more
than it needs to answer; so nothing runs for elements that nobody asked for. An operator that reads ahead says how far.

An exception takes the place of one element: it comes out after everything before it, once, and the next ``pull`` goes
on behind it. An exception that is kept until then refers, once raised, to the frames that it passes, and through them
to the iterator. So a function that raises a kept exception deletes its own variable for it: else exception and frame
would hold each other, and dropping the iterator would end its threads only at the next garbage collection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from dataset.plan.node import Node
from dataset.runtime.chunk import Chunk
from dataset.runtime.coordinator import Coordinator
from dataset.runtime.rng import EpochLedger

State: TypeAlias = dict[str, Any]


class Operator(ABC):
    """One node of a plan, open for one iteration."""

    @abstractmethod
    def pull(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements, ``n`` being at least 1; None at the end and ever after."""

    def seek(self, count: int) -> None:
        """Go forward over ``count`` elements without making them; there are more than that.

        For nodes that have random access, and before the first pull.
        """
        raise NotImplementedError

    @abstractmethod
    def state_dict(self) -> State:
        """Where this operator and its inputs stand, after the last element that was pulled, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go there. Called at most once, before the first pull."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files, threads and inputs. May be called twice; nothing is pulled afterwards."""


class UnaryOperator(Operator):
    """An operator with one input and, unless it says otherwise, no state of its own."""

    def __init__(self, source: Operator) -> None:
        self.source = source

    def state_dict(self) -> State:
        return {"source": self.source.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.source.load_state_dict(state["source"])

    def close(self) -> None:
        self.source.close()


class Build:
    """Opens the operators of one iteration, and holds what these share.

    Attributes:
        coordinator: owns the iteration's threads.
        epochs: says which epoch each shuffle is in.
    """

    def __init__(self, coordinator: Coordinator, epochs: EpochLedger) -> None:
        self.coordinator = coordinator
        self.epochs = epochs

    def __call__(self, node: Node) -> Operator:
        operator: Operator = node.lower(self)
        return operator

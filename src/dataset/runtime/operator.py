"""The contract of everything that runs: operators pull chunks from their inputs.

Demand decides the size. ``pull(n)`` gives between 1 and ``n`` elements, and an operator never asks its input for more
than it needs to answer; so nothing runs for elements that nobody asked for. An operator that reads ahead says how far.

An exception takes the place of one element: it comes out after everything before it, once, and the next ``pull`` goes
on behind it. An exception that is kept until then refers, once raised, to the frames that it passes, and through them
to the iterator. So a function that raises a kept exception deletes its own variable for it: else exception and frame
would hold each other, and dropping the iterator would end its threads only at the next garbage collection.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from dataset.options import AUTOTUNE, Options
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.runtime.chunk import Chunk
from dataset.runtime.coordinator import Coordinator
from dataset.runtime.cores import usable_cores
from dataset.runtime.ledger import UNBOUNDED, Ledger
from dataset.runtime.memory import default_budget
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

    Args:
        coordinator: owns the iteration's threads.
        epochs: says which epoch each shuffle is in.
        options: of the whole pipeline.
    """

    def __init__(self, coordinator: Coordinator, epochs: EpochLedger, options: Options) -> None:
        self.coordinator = coordinator
        self.epochs = epochs
        self.options = options

    def __call__(self, node: Node) -> Operator:
        operator: Operator = node.lower(self)
        return operator

    @property
    def background(self) -> bool:
        """Whether there may be work in the background. A look at one element must not make others ahead."""
        return not self.epochs.probing

    def parallel_calls(self, requested: int | None, autotuned: int | None = None) -> int | None:
        """How many calls an op given ``num_parallel_calls=requested`` may make at once; None for no threads.

        ``autotuned`` is what AUTOTUNE means; default, the number of cores.
        """
        if requested is None or not self.background:
            return None
        if requested != AUTOTUNE:
            return requested
        return min(autotuned or self._cores, self.options.autotune.cpu_budget or sys.maxsize)

    @lazy_property
    def _cores(self) -> int:
        """Counted once, although inner datasets may be opened by the thousand: it takes reading some files."""
        return usable_cores()

    @lazy_property
    def ledger(self) -> Ledger:
        """Who holds how much of the memory budget, inner datasets included."""
        settings = self.options.autotune
        return Ledger(UNBOUNDED if settings.enabled is False else settings.ram_budget or default_budget)

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Whether an op must keep the order that was given ``deterministic``; without it the options tell."""
        if deterministic is None:
            deterministic = self.options.deterministic
        return deterministic is not False


def open_plan(plan: Node, options: Options | None = None, *, probing: bool = False) -> tuple[Coordinator, Operator]:
    """The last operator of a plan, open, and who owns its threads: ``shut_down(operator.close, ...)`` ends both.

    Args:
        plan: what to run.
        options: of the whole pipeline; default, none set.
        probing: for a look at an element or two, which uses up no random order and makes nothing ahead.
    """
    options = Options() if options is None else options
    coordinator = Coordinator(options.threading.private_threadpool_size or None)
    return coordinator, Build(coordinator, EpochLedger(probing=probing), options)(plan)

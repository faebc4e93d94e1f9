"""Datasets inside datasets: calling a user's function that returns one, and reading from it.

flat_map and interleave share this. An inner dataset is remembered by the element it was made from, so that a saved
state can make it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataset.errors import SpecError
from dataset.plan.nested import HasPlan
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.calls import arguments, placed
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State
from dataset.runtime.state import load_chunk, save_chunk


class Inner:
    """One inner dataset, open, and the element that it was made from."""

    def __init__(self, argument: Chunk, plan: Node, operator: Operator) -> None:
        self.argument = argument
        self.plan = plan
        self.operator = operator


class InnerDatasets:
    """Makes the inner datasets of one operator and checks that their elements are alike."""

    def __init__(self, build: Build, node: UnaryNode, function: Callable[..., Any]) -> None:
        self.build = build
        self.node = node
        self.function = function
        self.opened = 0
        self._seen: Chunk | None = None

    def open_next(self, source: Operator) -> Inner | None:
        """The inner dataset of the next element of ``source``; None where there is none left."""
        argument = source.pull(1)
        if argument is None:
            return None
        self.opened += 1
        return self._open(argument)

    def _open(self, argument: Chunk) -> Inner:
        try:
            (values,) = zip(*arguments(argument), strict=True)
            result = self.function(*values)
            if not isinstance(result, HasPlan):
                raise TypeError(  # noqa: TRY301  # it gets the same note as an exception of the function
                    f"{self.node.op}(): the function must return a Dataset, got {result!r} of type "
                    f"{type(result).__name__}"
                )
        except Exception as error:  # noqa: BLE001  # raised again, with its place
            shown = placed(error, self.node, self.opened - 1)
            try:
                if shown is error:
                    raise
                raise shown from None
            finally:
                del shown  # see runtime/operator.py on exceptions that are kept
        return Inner(argument, result.plan, self.build(result.plan))

    def pull(self, inner: Inner, n: int) -> Chunk | None:
        """Elements of an inner dataset.

        Raises:
            SpecError: if they have not the structure of those before.
        """
        chunk = inner.operator.pull(n)
        if chunk is None:
            return None
        if self._seen is None:
            self._seen = Chunk(chunk.structure, 0, [])
        elif chunk.structure is not self._seen.structure and chunk.structure != self._seen.structure:
            raise SpecError(
                f"{self.node.located()}: the datasets that the function returns must have one structure, got "
                f"{self._seen.structure!r} and {chunk.structure!r}"
            )
        return chunk

    def save(self, inner: Inner | None) -> Any:
        """The place of an inner dataset."""
        if inner is None:
            return None
        return {"argument": save_chunk(inner.argument), "inner": inner.operator.state_dict()}

    def load(self, state: State | None) -> Inner | None:
        """The inner dataset at a saved place: the function is called again for the element it was called for."""
        if state is None:
            return None
        argument = load_chunk(state["argument"], lambda: self.node.source.element_spec)
        assert argument is not None
        inner = self._open(argument)
        inner.operator.load_state_dict(state["inner"])
        return inner

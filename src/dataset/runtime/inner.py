"""Datasets inside datasets: calling a user's function that returns one, and reading from it.

flat_map and interleave share this. An inner dataset is remembered by the element it was made from, so that a saved
state can make it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dataset.errors import SpecError
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.calls import arguments, raise_placed
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State
from dataset.runtime.state import SpecGetter, holds_only_elements, load_chunk, save_chunk


class Inner:
    """One inner dataset, open, and the element that it was made from."""

    def __init__(self, argument: Chunk, plan: Node, operator: Operator) -> None:
        self.argument = argument
        self.plan = plan
        self.operator = operator
        self.given = 0  # elements, and exceptions in the places of elements


class InnerDatasets:
    """Makes the inner datasets of one operator and checks that their elements are alike.

    Args:
        build: opens their operators.
        node: the operation that asks for them.
        function: the user's, which returns a Dataset.
        argument_spec: of what ``function`` is given; by default the elements of the node's input.
        argument_name: the word for one of them in messages.
    """

    def __init__(
        self,
        build: Build,
        node: UnaryNode,
        function: Callable[..., Any],
        argument_spec: SpecGetter | None = None,
        argument_name: str = "element",
    ) -> None:
        self.build = build
        self.node = node
        self.function = function
        self.argument_spec = argument_spec or (lambda: node.source.element_spec)
        self.argument_name = argument_name
        self.opened = 0
        self._seen: Chunk | None = None

    def open_next(self, source: Operator) -> Inner | None:
        """The inner dataset of the next element of ``source``; None where there is none left."""
        argument = source.pull(1)
        return None if argument is None else self.open(argument)

    def open(self, argument: Chunk) -> Inner:
        """The inner dataset that the function returns for ``argument``, a chunk of one."""
        self.opened += 1
        return self._open(argument)

    def _open(self, argument: Chunk) -> Inner:
        try:
            (values,) = zip(*arguments(argument), strict=True)
            result = self.function(*values)
            if not is_dataset(result):
                raise TypeError(  # noqa: TRY301  # it gets the same note as an exception of the function
                    f"{self.node.op}(): the function must return a Dataset, got {result!r} of type "
                    f"{type(result).__name__}"
                )
        except Exception as error:  # noqa: BLE001  # raised again, with its place
            raise_placed(error, self.node, self.opened - 1, self.argument_name)
        return Inner(argument, result.plan, self.build(result.plan))

    def pull(self, inner: Inner, n: int) -> Chunk | None:
        """Elements of an inner dataset.

        Raises:
            SpecError: if they have not the structure of those before.
        """
        try:
            chunk = inner.operator.pull(n)
        except Exception:
            inner.given += 1
            raise
        if chunk is None:
            return None
        inner.given += chunk.length
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
        # A dataset that comes back from the state as its elements has another plan, where this place means nothing.
        place = inner.operator.state_dict() if holds_only_elements(inner.argument) else None
        return {"argument": save_chunk(inner.argument), "given": inner.given, "inner": place}

    def load(self, state: State | None) -> Inner | None:
        """The inner dataset at a saved place: the function is called again for the element it was called for."""
        if state is None:
            return None
        argument = load_chunk(state["argument"], self.argument_spec)
        assert argument is not None
        inner = self._open(argument)
        if state["inner"] is not None:
            inner.operator.load_state_dict(state["inner"])
            inner.given = int(state["given"])
            return inner
        self._go_to(inner, int(state["given"]))
        return inner

    def _go_to(self, inner: Inner, given: int) -> None:
        """Go on to the place behind what was given before the state was saved."""
        while inner.given < given:
            with contextlib.suppress(Exception):  # it was raised then
                if self.pull(inner, given - inner.given) is None:
                    return

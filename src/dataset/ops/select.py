"""select(*keys): some parts of each element. Values are not touched, only left out."""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import Structure, is_tuple, tuple_of
from dataset.runtime.chunks.chunk import Array, Chunk, Column
from dataset.runtime.chunks.ownership import copied_component
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator


@dataclass(frozen=True)
class Selection:
    """What is selected from elements of one structure.

    Attributes:
        structure: of what comes out.
        components: per component that comes out its number among those of the input. What is not in here is read by
            nobody behind the select.
    """

    structure: Structure
    components: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Select(UnaryNode):
    """The part of each element under the one key, or the tuple of the parts under several."""

    op: ClassVar[str] = "select"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    keys: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise TypeError("select(): give at least one key")
        for key in self.keys:
            if not isinstance(key, Hashable):
                raise TypeError(f"select(): a key must be a name or a position, got {key!r}; give keys one by one")
        if spec_is_static(self.source):
            self._element_spec()

    def selection(self, structure: Structure) -> Selection:
        """What is selected from elements of this structure.

        Raises:
            ValueError: if it has not all of the keys, or nothing would be left.
        """
        spans = [_span(structure, key) for key in self.keys]
        components = tuple(start + index for part, start in spans for index in range(part.num_components))
        if not components:
            raise ValueError(f"select(): there is nothing but None under {self._shown()}")
        parts = [part for part, _ in spans]
        return Selection(parts[0] if len(parts) == 1 else tuple_of(*parts), components)

    def _element_spec(self) -> Any:
        structure, specs = flatten_spec(self.source.element_spec)
        selection = self.selection(structure)
        return selection.structure.unflatten([specs[index] for index in selection.components])

    @property
    def is_certain(self) -> bool:
        return super().is_certain and spec_is_static(self)  # else a key that is not there shows when the elements come

    @property
    def rows_per_element(self) -> int | None:
        return self.source.rows_per_element

    def _shown(self) -> str:
        return ", ".join(map(repr, self.keys))

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: BlockCyclicShard) -> BlockCyclicShard:
        return deal

    def picked(self, positions: Array) -> Node | None:
        below = self.source.picked(positions)
        return None if below is None else self.with_inputs([below])

    def described(self) -> str:
        return f"select({self._shown()})"

    def lower(self, build: ExecutionContext) -> Operator:
        return SelectOperator(build(self.source), self)


def _span(structure: Structure, key: Any) -> tuple[Structure, int]:
    """The part of a structure under ``key``, and the number of its first component."""
    index = _index(structure, key)
    if index is None:
        raise ValueError(_no_such_key(structure, key))
    return structure.children[index], sum(child.num_components for child in structure.children[:index])


def _index(structure: Structure, key: Any) -> int | None:
    keys = structure.child_keys()
    if not is_tuple(structure):
        return keys.index(key) if key in keys else None
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not -len(keys) <= key < len(keys):
        return None
    return int(key) % len(keys)


def _no_such_key(structure: Structure, key: Any) -> str:
    keys = structure.child_keys()
    if not keys:
        return f"select(): the elements are single components, {structure!r}, and have no key {key!r}"
    similar = difflib.get_close_matches(str(key), [there for there in keys if isinstance(there, str)], n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"select(): the elements have no {key!r}, they have {', '.join(map(repr, keys))}{hint}"


class SelectOperator(ChunkTransformOperator):
    """Hands on columns. Where a key is not there, each element fails."""

    def __init__(self, source: Operator, node: Select) -> None:
        super().__init__(source, node)
        self._select = node.selection
        self._structure: Structure | None = None
        self._selection: Selection | None = None

    def convert(self, inputs: Chunk) -> Chunk:
        columns = inputs.columns()
        selection = self._selected_from(inputs.structure)
        chosen: list[Column] = []
        for index in selection.components:
            column = columns[index]
            # Selected twice, it must not be one memory for two components.
            chosen.append(_copied(column) if any(column is other for other in chosen) else column)
        return Chunk(selection.structure, inputs.length, chosen)

    def state_after(self, state: State, count: int) -> State | None:
        """As many elements come out as go in, those that fail included."""
        if state["ready"]:
            return None
        below = self.source.state_after(state["source"], count)
        return None if below is None else {**state, "source": below, "position": int(state["position"]) + count}

    def _selected_from(self, structure: Structure) -> Selection:
        if self._selection is None or structure != self._structure:
            try:
                self._selection = self._select(structure)
            except ValueError as error:
                raise SpecError(str(error)) from None
            self._structure = structure
        return self._selection


def _copied(column: Column) -> Column:
    if isinstance(column, np.ndarray):
        return column.copy() if column.flags.writeable else column
    return list(map(copied_component, column))

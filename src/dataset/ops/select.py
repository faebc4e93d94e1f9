"""Node and operator of select(*keys): keep some parts of each element; values are unchanged."""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, rows_per_element, spec_is_static
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import Structure, is_tuple, tuple_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.ownership import copied_component
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator


@dataclass(frozen=True)
class Selection:
    """Selection of components from elements of one structure.

    Attributes:
        structure: the structure of the results.
        components: for each result component, its index among the input components. Other input components are unused
            downstream.
    """

    structure: Structure
    components: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Select(UnaryNode, aligned=True, seekable=True, exact=True, separable=True, elastic=True):
    """Node that selects the part of each element under one key, or a tuple of the parts under several keys."""

    op: ClassVar[str] = "select"
    keys: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise TypeError("select(): pass at least one key")
        for key in self.keys:
            if not isinstance(key, Hashable):
                raise TypeError(f"select(): a key must be a name or a position, got {key!r}; pass keys one by one")
        if spec_is_static(self.source):
            self._element_spec()

    def selection(self, structure: Structure) -> Selection:
        """Return the selection for elements of this structure.

        Raises:
            ValueError: if a key is missing, or the selection is empty.
        """
        spans = [_span(structure, key) for key in self.keys]
        components = tuple(start + index for part, start in spans for index in range(part.num_components))
        if not components:
            raise ValueError(f"select(): there are no components under {self._shown()}")
        parts = [part for part, _ in spans]
        return Selection(parts[0] if len(parts) == 1 else tuple_of(*parts), components)

    def _element_spec(self) -> Any:
        structure, specs = flatten_spec(self.source.element_spec)
        selection = self.selection(structure)
        return selection.structure.unflatten([specs[index] for index in selection.components])

    @lazy_property
    def traits(self) -> Traits:
        has_keys = spec_is_static(self.source)  # else a missing key is detected at iteration time
        return super().traits.having(exact=has_keys, rows=rows_per_element(self.source))

    def _shown(self) -> str:
        return ", ".join(map(repr, self.keys))

    def simplified(self) -> Node | None:
        """Return the input if all parts of a tuple are selected, in order; other structures would become a tuple."""
        if not spec_is_static(self.source):
            return None
        structure = flatten_spec(self.source.element_spec)[0]
        everything = Selection(structure, tuple(range(structure.num_components)))
        return self.source if self.selection(structure) == everything else None

    def label(self) -> str:
        return f"select({self._shown()})"

    def lower(self, context: ExecutionContext) -> Operator:
        return SelectOperator(context(self.source), self)


def _span(structure: Structure, key: Any) -> tuple[Structure, int]:
    """Return the part of a structure under ``key``, and the index of its first component."""
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
        return f"select(): the elements are single components, {structure!r}, without key {key!r}"
    similar = difflib.get_close_matches(str(key), [there for there in keys if isinstance(there, str)], n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"select(): the elements have no key {key!r}; their keys are {', '.join(map(repr, keys))}{hint}"


class SelectOperator(ChunkTransformOperator):
    """Operator that passes on columns. If a key is missing, each element fails."""

    one_to_one = True

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
            # A component that is selected twice must not share memory.
            chosen.append(_copied(column) if any(column is other for other in chosen) else column)
        return Chunk(selection.structure, inputs.length, chosen, lineage=inputs.lineage)

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

"""Column parser: a function that parses many records at once, which the parsing rules put into a map.

``parser_vectorization`` proves that a user's function only parses, ``parser_and_batch_fusion`` sets the form of the
values that a batch needs, ``parser_projection`` sets the features that are used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dataset.io.example.parse import ExampleParser
from dataset.ops.elementwise import Elementwise
from dataset.plan.structure import Structure

Result = str | tuple[Any, ...] | dict[str, Any] | None
"""The features that a function returns: one by name, tuples and dicts of such, or None for all."""


class NoLongerTrueError(Exception):
    """Internal error: the optimizer's proof about a function no longer holds. The function will be called instead."""


@dataclass(frozen=True)
class ColumnParser:
    """Parser that returns for whole columns what a map's function returns for each record, or raises.

    Attributes:
        parser: a parser of the features that the function reads.
        holds: returns whether the function is unchanged since the plan was rewritten.
        result: the form of the function's result.
        read: the features that are used.
        packed: whether values of different lengths are kept contiguous.
        length_min: for fewer records, the map's function is called instead.
    """

    parser: ExampleParser
    holds: Callable[[], bool]
    result: Result
    read: frozenset[str]
    packed: bool = False
    length_min: int = 2

    __dataset_no_user_code__ = True  # nor does a function that only parses
    __dataset_takes_blocks__ = True

    @property
    def element_spec(self) -> Any:
        """The spec of the function's results."""
        spec = self.parser.element_spec
        return spec if self.result is None else _arranged(self.result, spec)

    def __call__(self, records: Any) -> Any:
        """Return the columns for a column of records."""
        if not self.holds():
            raise NoLongerTrueError
        columns = self.parser.parse_columns(records, self.read, packed=self.packed)
        return columns if self.result is None else _arranged(self.result, columns)

    def put_into(self, node: Elementwise) -> Elementwise:
        """Return the map, set to call this parser for its columns."""
        return dataclasses.replace(node, column_function=self)


@runtime_checkable
class SelectsComponents(Protocol):
    """A node whose elements are some components of the elements of its input."""

    def selection(self, structure: Structure) -> Any:
        """Return the selection for elements of this structure: its ``components`` are their indices.

        Raises:
            ValueError: if there is none.
        """


def column_parser_of(node: Any) -> ColumnParser | None:
    """Return a column parser for a map; None if its function is not a parser or runs in worker processes."""
    if not isinstance(node, Elementwise) or not node.traits.aligned or node.executor != "thread":
        return None
    if isinstance(node.column_function, ColumnParser):
        return node.column_function
    parser = node.called
    if type(parser) is not ExampleParser:  # a subclass may do anything
        return None
    return ColumnParser(parser, lambda: True, None, frozenset(parser.features))


def _arranged(result: Result, columns: dict[str, Any]) -> Any:
    """Return the columns in the form of the function's result."""
    if isinstance(result, str):
        return columns[result]
    if isinstance(result, dict):
        return {key: _arranged(part, columns) for key, part in result.items()}
    assert result is not None  # None occurs only at the top level
    return tuple(_arranged(part, columns) for part in result)

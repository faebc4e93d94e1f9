"""What the rules about parsing put into a map: a function that parses many records at once.

``parser_vectorization`` finds that a user's function does nothing but parse, ``parser_and_batch_fusion`` says in which
form a batch wants the values, ``parser_projection`` says which of them somebody reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dataset.io.example.parse import ExampleParser
from dataset.ops.map import Map

Result = str | tuple[Any, ...] | dict[str, Any] | None
"""What a function returns of the parsed features: one by its name, tuples and dicts of such, or None for all."""


class NoLongerTrueError(Exception):
    """Internal: what the optimizer has proved of a function is not so any more. The function will be called."""


@dataclass(frozen=True)
class ColumnParser:
    """Gives for whole columns what a map's function gives for each record, or raises.

    Attributes:
        parser: for the features that the function reads.
        holds: whether the function still does what it did when the plan was rewritten.
        result: what the function returns.
        read: the features that somebody reads.
        packed: whether values of different lengths stay end to end.
        length_min: of fewer records, the map's function takes care.
    """

    parser: ExampleParser
    holds: Callable[[], bool]
    result: Result
    read: frozenset[str]
    packed: bool = False
    length_min: int = 2

    def __call__(self, records: Any) -> Any:
        """Return the columns for a column of records."""
        if not self.holds():
            raise NoLongerTrueError
        columns = self.parser.parse_columns(records, self.read, packed=self.packed)
        return columns if self.result is None else _arranged(self.result, columns)

    def put_into(self, node: Map) -> Map:
        """Return the map that calls this for its columns."""
        return dataclasses.replace(node, column_function=self)


def column_parser_of(node: Any) -> ColumnParser | None:
    """What parses whole columns in the place of a map's function; None where that is no parser, or in a process."""
    if type(node) is not Map or node.executor != "thread":
        return None
    if isinstance(node.column_function, ColumnParser):
        return node.column_function
    parser = node.function
    if type(parser) is not ExampleParser:  # a class derived from it may do anything
        return None
    return ColumnParser(parser, lambda: True, None, frozenset(parser.features))


def _arranged(result: Result, columns: dict[str, Any]) -> Any:
    """Return the columns as the function returns them."""
    if isinstance(result, str):
        return columns[result]
    if isinstance(result, dict):
        return {key: _arranged(part, columns) for key, part in result.items()}
    assert result is not None  # only at the top
    return tuple(_arranged(part, columns) for part in result)

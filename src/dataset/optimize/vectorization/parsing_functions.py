"""Functions that parse: those that only call a parser of single records, and those that only pass a batch to one.

The expression graph of the first consists of one call of parse_single_example, or of an ExampleParser, and of the
features that it takes from the result and puts into tuples and dicts. Exception handling in the function does not
matter: if parsing fails, the function itself is called.

A function that uses a batch of records only as the argument of parse_example cannot tell whether it gets an array of
byte strings or a BytesColumn. What it does with the parsed features does not matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

from dataset.io.example.parse import ExampleParser, parse_column, parse_column_by, parse_example
from dataset.plan.packed import TAKES_BLOCKS, BytesColumn
from dataset.plan.values import object_column
from dataset.runtime.functions.expression import Expression, Graph, graph_of
from dataset.runtime.functions.kernels.vectorized import is_vectorized

_RECORDS_MIN = 32
"""Fewer small records, such as an image and its label, are parsed faster one by one."""


class NoLongerTrueError(Exception):
    """Internal error: the optimizer's proof about a function no longer holds. The function will be called instead."""


@dataclass(frozen=True)
class ColumnParser:
    """Parser that returns for whole columns what a map's function returns for each record, or raises.

    Attributes:
        parser: a parser of the features that the function reads.
        holds: returns whether the function is unchanged since the plan was rewritten.
        result: what the function returns; None for a dict of all features.
        read: the features that are used.
        packed: whether values of different lengths are kept contiguous.
        length_min: for fewer records, the map's function is called instead.
    """

    parser: ExampleParser
    holds: Callable[[], bool]
    result: Expression | None
    read: frozenset[str]
    packed: bool = False
    length_min: int = 2

    __dataset_no_user_code__ = True  # nor does a function that only parses
    __dataset_takes_blocks__ = True

    @property
    def element_spec(self) -> Any:
        """The spec of the function's results."""
        return _arranged(self.result, self.parser.element_spec)

    def __call__(self, records: Any) -> Any:
        """Return the columns for a column of records."""
        if not self.holds():
            raise NoLongerTrueError
        return _arranged(self.result, self.parser.parse_columns(records, self.read, packed=self.packed))


def parsing_function(function: Callable[..., Any]) -> ColumnParser | None:
    """Return a column parser to use instead of a function that only parses; None if that cannot be proved."""
    graph = graph_of(function)
    if not isinstance(graph, Graph) or graph.arity != 1 or len(graph.twins) != 1:
        return None
    (call,), end = graph.twins, graph.body.end
    parser = _parser_of(call)
    if parser is None or not graph.takes_blocks or not all(one.kind in _KINDS for one in graph.operations):
        return None
    features, uses = parser.features, graph.uses
    lookups = [one for one in graph.operations if one.kind == "item"]
    names = [one.operands[1].operands[0] for one in lookups for _ in uses.get(one, ())]
    is_form = end is call or (_is_form(end, call) and len(names) == len(set(names)))
    if not is_form or not {one.operands[1].operands[0] for one in lookups} <= features.keys():
        return None
    items = list(features.items())
    source = call.operands[2] if len(call.operands) > 2 else features

    def holds() -> bool:
        return graph.current(function) is not None and list(source.items()) == items

    result, read = (None, features) if end is call else (end, names)
    return ColumnParser(parser, holds, result, frozenset(read), length_min=_RECORDS_MIN)  # type: ignore[arg-type]  # it is a form


_KINDS = frozenset({"twin", "item", "tuple", "dict"})


def _parser_of(call: Expression) -> ExampleParser | None:
    """Return a parser of the features that a call parses; None if it doesn't parse, or would fail."""
    twin = call.operands[0]
    if twin is parse_column:
        try:
            return ExampleParser(call.operands[2])
        except (TypeError, ValueError):  # parse_single_example rejects the features
            return None
    return twin.args[0] if isinstance(twin, functools.partial) and twin.func is parse_column_by else None


def _is_form(value: Any, call: Expression) -> bool:
    """Return whether a value consists of features in tuples and dicts."""
    match value:
        case Expression("item", (owner, key)):
            return owner is call and key.is_constant and type(key.operands[0]) is str
        case Expression("tuple", (parts,)):
            return bool(parts) and all(_is_form(part, call) for part in parts)
        case Expression("dict", (keys, parts)) if parts and all(key.is_constant for key in keys):
            names = [key.operands[0] for key in keys]
            is_whole = {*map(type, names)} == {str} and len({*names}) == len(names)
            return is_whole and all(_is_form(part, call) for part in parts)
    return False


def _arranged(form: Expression | None, columns: dict[str, Any]) -> Any:
    """Return the columns in the form of the function's result."""
    match form:
        case Expression("item", (_, key)):
            return columns[key.operands[0]]
        case Expression("tuple", (parts,)):
            return tuple(_arranged(part, columns) for part in parts)
        case Expression("dict", (keys, parts)):
            return {key.operands[0]: _arranged(part, columns) for key, part in zip(keys, parts, strict=True)}
    return columns


# Functions of batches


@dataclass(frozen=True)
class BatchParsingFunction:
    """Function of a batch of records, an array or BytesColumn, that only passes it to parse_example.

    Attributes:
        function: the user function.
        holds: returns whether the names in the function still have the values for which this was proved.
    """

    function: Callable[..., Any]
    holds: Callable[[], bool]

    def __call__(self, records: Any) -> Any:
        if type(records) is BytesColumn and not self.holds():
            records = object_column(records)
        return self.function(records)


def batch_parsing_function(function: Callable[..., Any]) -> BatchParsingFunction | None:
    """Return a function that also takes a BytesColumn; None if it cannot be proved that it may."""
    if _is_parser(function):
        return BatchParsingFunction(function, functools.partial(_is_parser, function))
    graph = graph_of(function, _parses, enters_all=False)
    if not isinstance(graph, Graph) or graph.arity != 1:
        return None
    batches = [one for one in graph.uses if one.kind == "argument"]
    users = [user for batch in batches for user in graph.uses[batch]]
    if not users or not graph.kept.isdisjoint(batches) or not all(_takes(user, batches[0]) for user in users):
        return None
    return BatchParsingFunction(function, lambda: graph.current(function) is not None)


def _is_parser(function: Any) -> bool:
    """Return whether a function is parse_example, bound to features or not, or a parser of batches."""
    if type(function) is functools.partial:
        return function.func is parse_example and not function.args and "serialized" not in function.keywords
    if type(function) is MethodType:
        return function.__func__ is ExampleParser.parse_batch and type(function.__self__) is ExampleParser
    if function is parse_example:
        return True
    members = type.__getattribute__(type(function), "__dict__")
    return bool(members.get(TAKES_BLOCKS, False)) and not is_vectorized(function)


def _parses(function: Any) -> bool:
    return function is ExampleParser.parse_batch or _is_parser(function)


def _takes(user: Expression | None, batch: Expression) -> bool:
    """Return whether what uses a batch is the call of a parser that takes it as its records, and nowhere else."""
    match user:
        case Expression("call", (ExampleParser.parse_batch, (parser, found), (), ())):
            return found is batch and parser.is_constant and type(parser.operands[0]) is ExampleParser
        case Expression("call", (function, positional, names, keywords)) if _is_parser(function):
            given = [("serialized", one) for one in positional[:1]] + [*zip(names, keywords, strict=True)]
            records = [one for name, one in given if name == "serialized"]
            return records == [batch] == [one for one in (*positional, *keywords) if one is batch]
    return False

"""Detection of functions that use a batch of records only as the argument of parse_example.

Such a function cannot tell whether it gets an array of byte strings or a BytesColumn. What it does with the parsed
features does not matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

from dataset.io.example.parse import ExampleParser, parse_example
from dataset.plan.packed import TAKES_BLOCKS, BytesColumn
from dataset.plan.values import object_column
from dataset.runtime.functions.expression import Expression, Graph, trace_of
from dataset.runtime.functions.vectorized import is_vectorized


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
    graph = trace_of(function, _parses)
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

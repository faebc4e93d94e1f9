"""Detection of functions that only call parse_single_example and select features from its result.

The expression graph of such a function consists of one call of parse_single_example, or of an ExampleParser, and of the
features that it takes from the result and puts into tuples and dicts. Exception handling in the function does not
matter: if parsing fails, the function itself is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dataset.io.example.parse import ExampleParser, parse_column, parse_column_by
from dataset.optimize.vectorization.column_parser import ColumnParser, Result
from dataset.runtime.functions.expression import Expression, Graph, graph_of

_RECORDS_MIN = 32
"""Fewer small records, such as an image and its label, are parsed faster one by one."""


def parsing_function(function: Callable[..., Any]) -> ColumnParser | None:
    """Return a column parser to use instead of a function that only parses; None if that cannot be proved."""
    graph = graph_of(function)
    if not isinstance(graph, Graph) or graph.arity != 1 or len(graph.twins) != 1:
        return None
    (call,) = graph.twins
    parser = _parser_of(call)
    if parser is None or not graph.takes_blocks or not isinstance(graph.body.end, Expression):
        return None
    features = parser.features
    names: list[str] = []
    result = None if graph.body.end is call else _form(graph.body.end, call, names)
    lookups = {one.operands[1].operands[0] for one in graph.operations if one.kind == "item"}
    is_form = len(names) == len(set(names)) and all(one.kind in _KINDS for one in graph.operations)
    if result is _OTHER or not is_form or not lookups <= features.keys():
        return None
    items = list(features.items())
    source = call.operands[2] if len(call.operands) > 2 else features

    def holds() -> bool:
        return graph.current(function) is not None and list(source.items()) == items

    read = frozenset(features if result is None else names)
    return ColumnParser(parser, holds, result, read, length_min=_RECORDS_MIN)


def _parser_of(call: Expression) -> ExampleParser | None:
    """Return a parser of the features that a call parses; None if it doesn't parse, or would fail."""
    twin = call.operands[0]
    if twin is parse_column:
        try:
            return ExampleParser(call.operands[2])
        except (TypeError, ValueError):  # parse_single_example rejects the features
            return None
    return twin.args[0] if isinstance(twin, functools.partial) and twin.func is parse_column_by else None


_KINDS = frozenset({"twin", "item", "tuple", "dict"})
_OTHER: Result = "a form of another kind"


def _form(value: Expression, call: Expression, names: list[str]) -> Result:
    """Return the form of a result that consists of features, and add their names; or _OTHER."""
    match value:
        case Expression("item", (owner, Expression("constant", (str() as name,)))) if owner is call:
            names.append(name)
            return name
        case Expression("tuple", (parts,)) if parts:
            forms = tuple(_form(part, call, names) for part in parts)
            return _OTHER if _OTHER in forms else forms
        case Expression("dict", (keys, parts)) if parts and all(key.is_constant for key in keys):
            found = {key.operands[0]: _form(part, call, names) for key, part in zip(keys, parts, strict=True)}
            is_whole = len(found) == len(keys) and set(map(type, found)) == {str}
            return found if is_whole and _OTHER not in found.values() else _OTHER
    return _OTHER

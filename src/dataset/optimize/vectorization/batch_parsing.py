"""Detection of functions that use a batch of records only as the argument of parse_example.

Such a function cannot tell whether it gets an array of byte strings or a BytesColumn. The bytecode is interpreted
(runtime/functions/bytecode.py) from its beginning to the last use of the batch. What the function does with the parsed
features does not matter.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from dataset.io.example.parse import ExampleParser, parse_example
from dataset.plan.packed import TAKES_BLOCKS, BytesColumn
from dataset.plan.values import object_column
from dataset.runtime.functions.bytecode import NotProvedError, Variable, arity_of, interpret
from dataset.runtime.functions.kernels.vectorized import is_vectorized

_READ_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "f_locals"})


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
    if type(function) is not FunctionType or arity_of(function) != 1 or _READ_LOCALS & {*function.__code__.co_names}:
        return None
    parsers: list[Variable] = []
    try:
        interpret(
            function,
            functools.partial(_evaluate, parsers),
            may_catch=True,
            until_unused=function.__code__.co_varnames[0],
        )
    except NotProvedError:
        return None
    found = BatchParsingFunction(function, functools.partial(_holds, function, function.__code__, parsers))
    return found if found.holds() else None


def _is_parser(function: Any) -> bool:
    """Return whether a function is parse_example, bound to features or not, or a parser of batches."""
    if type(function) is functools.partial:
        return function.func is parse_example and not function.args and "serialized" not in function.keywords
    if type(function) is MethodType:
        return function.__func__ is ExampleParser.parse_batch and type(function.__self__) is ExampleParser
    if function is parse_example:
        return True
    return bool(vars(type(function)).get(TAKES_BLOCKS, False)) and not is_vectorized(function)


def _holds(function: FunctionType, code: CodeType, parsers: list[Variable]) -> bool:
    return function.__code__ is code and all(_is_parser(variable.value_in(function)) for variable in parsers)


_BATCH = object()
_OTHER = object()


def _evaluate(parsers: list[Variable], operation: str, *operands: Any) -> Any:
    """Evaluate an operation on the batch, variables and other values; add variables that are called with the batch."""
    match operation, *operands:
        case "argument", _:
            return _BATCH
        case "variable", variable:
            return variable
        case "attribute", Variable() as owner, str() as name:
            return dataclasses.replace(owner, attributes=(*owner.attributes, name))
        case "call", Variable() as function, positional, keywords if _has_batch(positional) or _has_batch(keywords):
            first, *others = positional or [keywords.get("serialized")]
            others += [value for name, value in keywords.items() if name != "serialized" or positional]
            if first is not _BATCH or _has_batch(others):
                raise NotProvedError
            parsers.append(function)
            return _OTHER
        case "unpack", value, count if value is not _BATCH:
            return [_OTHER] * count
    if operation == "unknown" or any(map(_has_batch, operands)):
        raise NotProvedError
    return _OTHER


def _has_batch(operand: Any) -> bool:
    held = operand.values() if isinstance(operand, dict) else operand if isinstance(operand, list) else [operand]
    return any(value is _BATCH for value in held)

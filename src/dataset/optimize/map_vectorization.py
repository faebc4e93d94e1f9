"""Run simple arithmetic functions on whole columns instead of element by element.

    before:  map(lambda x: x + 1)            a call for each element
    after:   map(lambda x: x + 1), columns   a call for each chunk, with an array as x

Legal where the function's bytecode holds nothing but its arguments, numbers, the operators of _BINARY, comparisons and
a tuple of such results: then it can have no effect that anybody sees, and on scalar components NumPy computes for an
array what it computes for each scalar in it. The operator checks the rest while it runs: it uses columns only where all
components are numeric scalars, compares the first chunk with element-by-element results (values and dtypes), and for
any exception or difference goes back to single elements.
"""

from __future__ import annotations

import dataclasses
import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dataset.ops.filter import Filter
from dataset.ops.map import Map
from dataset.plan.node import Node

# Left out on purpose: ** and @. Powers of floats may differ in the last bit between arrays and scalars.
_BINARY = frozenset({"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"})
_PLAIN = frozenset(
    {"RESUME", "CACHE", "PRECALL", "NOP", "RETURN_VALUE", "BUILD_TUPLE", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_INVERT"}
)
_ARGUMENT = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"})
_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200


def vectorize_map(node: Node) -> Node | None:
    """The same map or filter, marked to run on columns."""
    match node:
        case Map(function=function, columnwise=False) | Filter(predicate=function, columnwise=False):
            return dataclasses.replace(node, columnwise=True) if is_elementwise(function) else None
    return None


def is_elementwise(function: Callable[..., Any]) -> bool:
    """Whether a function's bytecode proves that it only computes with its arguments and numbers."""
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    if code.co_flags & _GENERATOR_OR_VARIADIC or code.co_freevars or code.co_kwonlyargcount or function.__defaults__:
        return False
    return all(map(_is_allowed, dis.get_instructions(code)))


def _is_allowed(instruction: dis.Instruction) -> bool:
    name = instruction.opname
    if name == "BINARY_OP":
        return instruction.argrepr in _BINARY
    if name in {"LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST"}:
        return type(instruction.argval) in {int, float, bool}
    return name in _PLAIN or name in _ARGUMENT

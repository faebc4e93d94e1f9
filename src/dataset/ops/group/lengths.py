"""Length functions: ``len``, and functions whose bytecode only looks up a length.

Examples: ``lambda tokens, label: len(tokens)``, ``lambda row: len(row["tokens"])``, ``lambda tokens: tokens.shape[0]``.
When and how often such a function is called is unobservable, and the lengths of many elements are known without calling
it. The bytecode is read in order. Any instruction that is not listed here ends the analysis: the function then counts
as user code.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.packed import is_packed
from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.function_arguments import arguments

Path = tuple[Any, ...]
"""The position of the argument, then the keys that are looked up in it."""

_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
_SILENT = frozenset({"RESUME", "CACHE", "PRECALL", "NOP", "PUSH_NULL"})
_LOADS_ARGUMENT = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW"})
_LOADS_CONSTANT = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_LEN, _PART, _SHAPE, _KEY, _LENGTH = range(5)  # kinds of values on the simulated stack


class LengthFunction:
    """Function that returns the length of a component of each element, or of the element itself.

    Args:
        function: the user's function.
        index: the component; None for the element itself, if it has several components.
    """

    def __init__(self, function: Callable[..., Any], index: int | None) -> None:
        self.function = function
        self._code = getattr(function, "__code__", None)
        self._index = index

    @classmethod
    def of(cls, function: Callable[..., Any], structure: Structure) -> LengthFunction | None:
        """Analyze a function for elements of a structure; return None if it may do anything else."""
        if function is len:
            index = 0 if structure is LEAF else None
            return cls(function, index) if structure is LEAF or is_dict(structure) else None
        path, count = _read(function)
        if path is None or count != (len(structure.children) if is_tuple(structure) else 1):
            return None
        index = _component(structure, path if is_tuple(structure) else path[1:])
        return None if index is None else cls(function, index)

    def holds(self) -> bool:
        """Return whether it is still a length function: its globals and its code can be modified at run time."""
        return self.function is len or (self.function.__code__ is self._code and _finds_len(self.function))

    def lengths(self, inputs: Chunk) -> npt.NDArray[np.int64]:
        """Return the lengths of the elements; an empty array if the function fails for any of them."""
        column: Column | None = None if self._index is None else inputs.columns()[self._index]
        if is_packed(column) and not column.sparse:
            return column.lengths
        if isinstance(column, np.ndarray) and column.ndim > 1:
            return np.full(inputs.length, column.shape[1])
        try:
            return np.fromiter(map(self.function, *arguments(inputs)), np.int64, inputs.length)
        except Exception:  # noqa: BLE001  # raised again at its position
            return np.zeros(0, np.int64)


def _component(structure: Structure, keys: Path) -> int | None:
    """Return the component at these keys, looked up in tuples and dicts; None for anything else."""
    first = 0
    for key in keys:
        found = structure.child_keys() if is_tuple(structure) or is_dict(structure) else ()
        if key not in found:
            return None
        position = found.index(key)
        first += sum(child.num_components for child in structure.children[:position])
        structure = structure.children[position]
    return first if structure is LEAF else None


def _read(function: Callable[..., Any]) -> tuple[Path | None, int]:
    """Return the path whose length a function returns, or None if it may do anything else, and its parameter count."""
    if type(function) is not FunctionType or function.__defaults__ or not _finds_len(function):
        return None, 0
    code = function.__code__
    if code.co_flags & _GENERATOR_OR_VARIADIC or code.co_kwonlyargcount or code.co_exceptiontable:
        return None, 0
    parameters = code.co_varnames[: code.co_argcount]
    stack: list[tuple[int, Any]] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in _SILENT:
            continue
        if instruction.opname == "RETURN_VALUE":
            return (stack[0][1], len(parameters)) if [kind for kind, _ in stack] == [_LENGTH] else (None, 0)
        found = _loaded(instruction, parameters) or _made(instruction, stack)
        if found is None:
            break
        stack.append(found)
    return None, 0


def _loaded(instruction: dis.Instruction, parameters: tuple[str, ...]) -> tuple[int, Any] | None:
    name, value = instruction.opname, instruction.argval
    if name in _LOADS_ARGUMENT and value in parameters:
        return _PART, (parameters.index(value),)
    if name in _LOADS_CONSTANT and type(value) in {str, int}:
        return _KEY, value
    return (_LEN, None) if name == "LOAD_GLOBAL" and value == "len" else None


def _made(instruction: dis.Instruction, stack: list[tuple[int, Any]]) -> tuple[int, Any] | None:
    """Return what an instruction computes from the topmost stack values, and pop them."""
    kinds = [kind for kind, _ in stack[-2:]]
    if instruction.opname == "LOAD_ATTR" and instruction.argval == "shape" and kinds[-1:] == [_PART]:
        return _SHAPE, stack.pop()[1]
    if len(kinds) < 2:
        return None
    (_, path), (_, key) = stack[-2:]
    del stack[-2:]
    if kinds == [_PART, _KEY] and _looks_up(instruction):
        return _PART, (*path, key)
    if kinds == [_SHAPE, _KEY] and _looks_up(instruction) and key == 0:
        return _LENGTH, path
    if kinds == [_LEN, _PART] and instruction.opname == "CALL" and instruction.argval == 1:
        return _LENGTH, key
    return None


def _looks_up(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (instruction.opname == "BINARY_OP" and instruction.argrepr == "[]")


def _finds_len(function: Any) -> bool:
    """Return whether the name ``len`` refers to the built-in function there."""
    names, builtin = function.__globals__, function.__builtins__
    if type(names) is not dict or type(builtin) is not dict:
        return False
    return (names["len"] if "len" in names else builtin.get("len")) is len

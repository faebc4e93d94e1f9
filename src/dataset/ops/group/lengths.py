"""Length functions: ``len``, and functions whose bytecode only looks up a length.

Examples: ``lambda tokens, label: len(tokens)``, ``lambda row: len(row["tokens"])``, ``lambda tokens: tokens.shape[0]``.
When and how often such a function is called is unobservable, and the lengths of many elements are known without calling
it. Any operation that is not listed here ends the analysis: the function then counts as user code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.packed import is_packed
from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.bytecode import Constant, NotProvedError, Variable, interpret
from dataset.runtime.functions.function_arguments import arguments

Path = tuple[Any, ...]
"""The position of the argument, then the keys that are looked up in it."""


class LengthFunction:
    """Function that returns the length of a component of each element, or of the element itself.

    Args:
        function: the user's function.
        index: the component; None for the element itself, if it has several components.
        variables: the variables that must be bound to ``len``.
    """

    def __init__(self, function: Callable[..., Any], index: int | None, variables: Sequence[Variable] = ()) -> None:
        self.function: Any = function
        self._variables = variables
        self._code = getattr(function, "__code__", None)
        self._index = index

    @classmethod
    def of(cls, function: Callable[..., Any], structure: Structure) -> LengthFunction | None:
        """Analyze a function for elements of a structure; return None if it may do anything else."""
        if function is len:
            index = 0 if structure is LEAF else None
            return cls(function, index) if structure is LEAF or is_dict(structure) else None
        domain = _Lengths(function)
        try:
            path = domain.path()
        except NotProvedError:
            return None
        if function.__code__.co_argcount != (len(structure.children) if is_tuple(structure) else 1):
            return None
        index = component_at(structure, path if is_tuple(structure) else path[1:])
        return None if index is None else cls(function, index, domain.variables)

    def holds(self) -> bool:
        """Return whether it is still a length function: its variables and its code can be modified at run time."""
        if self.function is len:
            return True
        is_same = self.function.__code__ is self._code
        return is_same and all(variable.value_in(self.function) is len for variable in self._variables)

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


def component_at(structure: Structure, keys: Path) -> int | None:
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


class _Lengths:
    """Domain of length look-ups: arguments and their parts, with their paths, ``len``, shapes and lengths."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.variables: list[Variable] = []
        self._count = 0  # of operations

    def path(self) -> Path:
        """Return the path of the part whose length the function returns.

        Raises:
            NotProvedError: if it may do anything else.
        """
        match interpret(self.function, self._evaluate):
            # An operation that does not contribute to the result, such as the look-up of another key, may fail.
            case "length", path if self._count == len(path) + 1:
                return tuple(path)
        raise NotProvedError

    def _evaluate(self, operation: str, *operands: Any) -> tuple[str, Path]:
        self._count += operation != "argument"
        match operation, *operands:
            case "argument", position:
                return "part", (position,)
            case "variable", Variable() as variable if variable.value_in(self.function) is len:
                self.variables.append(variable)
                return "len", ()
            case "subscript", ("part", path), Constant(key) if type(key) in {str, int}:
                return "part", (*path, key)
            case "attribute", ("part", path), "shape":
                return "shape", path
            case "subscript", ("shape", path), Constant(int(0)):
                return "length", path
            case "call", ("len", _), [("part", path)], keywords if not keywords:
                return "length", path
        raise NotProvedError

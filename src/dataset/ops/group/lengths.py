"""Length functions: ``len``, and functions whose bytecode only looks up a length.

Examples: ``lambda tokens, label: len(tokens)``, ``lambda row: len(row["tokens"])``, ``lambda tokens: tokens.shape[0]``.
When and how often such a function is called is unobservable, and the lengths of many elements are known without calling
it. Any operation that is not listed here ends the analysis: the function then counts as user code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.packed import is_packed
from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.expression import Expression, Graph, graph_of

Path = tuple[Any, ...]
"""The position of the argument, then the keys that are looked up in it."""


class LengthFunction:
    """Function that returns the length of a component of each element, or of the element itself.

    Args:
        function: the user's function.
        index: the component; None for the element itself, if it has several components.
        graph: the graph of the function, if it isn't ``len`` itself.
    """

    def __init__(self, function: Callable[..., Any], index: int | None, graph: Graph | None = None) -> None:
        self.function: Any = function
        self._graph = graph
        self._index = index

    @classmethod
    def of(cls, function: Callable[..., Any], structure: Structure) -> LengthFunction | None:
        """Analyze a function for elements of a structure; return None if it may do anything else."""
        if function is len:
            index = 0 if structure is LEAF else None
            return cls(function, index) if structure is LEAF or is_dict(structure) else None
        graph = graph_of(function)
        path = _path_of(graph) if isinstance(graph, Graph) else None
        count = len(structure.children) if is_tuple(structure) else 1
        if path is None or not isinstance(graph, Graph) or graph.arity != count:
            return None
        index = component_at(structure, path if is_tuple(structure) else path[1:])
        return None if index is None else cls(function, index, graph)

    def holds(self) -> bool:
        """Return whether it is still a length function: what it reads and its code can be modified at run time."""
        return self._graph is None or self._graph.current(self.function) is not None

    def lengths(self, inputs: Chunk) -> npt.NDArray[np.int64]:
        """Return the lengths of the elements; an empty array if the function fails for any of them."""
        column: Column | None = None if self._index is None else inputs.columns()[self._index]
        if is_packed(column) and not column.sparse:
            return column.lengths
        if isinstance(column, np.ndarray) and column.ndim > 1:
            return np.full(inputs.length, column.shape[1])
        try:
            return np.fromiter(map(self.function, *inputs.arguments()), np.int64, inputs.length)
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


def _path_of(graph: Graph) -> Path | None:
    """Return the path of the part whose length a function returns; None if it may do anything else."""
    end = graph.body.end
    match end:
        case Expression("call", (called, (part,), (), ())) if called is len:
            count = 1
        case Expression("item", (Expression("attribute", (part, "shape")), Expression("constant", (0,)))):
            count = 2
        case _:
            return None
    path: Path = ()
    while part.kind == "item":
        part, key = part.operands
        if not key.is_constant or type(key.operands[0]) not in {str, int}:
            return None
        path = (key.operands[0], *path)
    # An operation that does not contribute to the result, such as the look-up of another key, may fail.
    return (*part.operands, *path) if part.kind == "argument" and len(graph.operations) == len(path) + count else None

"""Proof that a function which returns a dataset has no effects: it only combines datasets that it is given.

The result of such a function depends only on its arguments and on the values that it reads elsewhere. So one call
shows what it returns for other datasets, unless it looks into them, which their plans tell (see ``looked_into``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from dataset.plan.nested import dataset_class
from dataset.plan.node import Node
from dataset.runtime.functions.expression import Expression, Graph, graph_of
from dataset.runtime.functions.places import Place

_METHODS = frozenset({"batch", "zip", "items", "keys", "values", "get"})
"""Methods of datasets that only extend a plan, and of dicts."""

_BUILTINS = frozenset({dict, tuple, list, zip, map, range, enumerate, reversed, len, int, min, max, isinstance})
_OPERATIONS = frozenset({"operator", "item", "slice", "tuple", "list", "dict", "merge", "extend", "unpack", "is"})
_OPERATIONS |= {"contains", "next", "carried"}
_SCALARS = frozenset({int, float, bool, str, bytes, type(None), *(np.dtype(code).type for code in np.typecodes["All"])})
_SCALARS -= {np.object_, np.void}  # they can be modified


@dataclass(frozen=True)
class PlanFunction:
    """Proof of a function, with everything outside its arguments that its result depends on.

    Attributes:
        function: the function.
        graph: its trace.
        reads: what it reads, by place.
    """

    function: Callable[..., Any]
    graph: Graph
    reads: dict[Place, Any]

    def holds(self) -> bool:
        """Return whether nothing has changed: variables, attributes and code can be rebound at any time."""
        reads = self.graph.current(self.function)
        return reads is not None and all(reads[place] is value for place, value in self.reads.items())


def plan_function(function: Callable[..., Any]) -> PlanFunction | None:
    """Return the proof that a function only combines the datasets that it is given; None if there is none."""
    graph = None if dataset_class() is None else graph_of(function, _is_called)
    if not isinstance(graph, Graph) or not graph.is_whole or not all(map(_has_no_effect, graph.operations)):
        return None
    reads = graph.current(function)
    if reads is None or not all(_is_harmless(reads[read.place]) for read in graph.reads):
        return None
    return PlanFunction(function, graph, {read.place: reads[read.place] for read in graph.reads})


def looked_into(plans: Iterable[Node]) -> Callable[[], bool]:
    """Return a function that tells whether code has used any of these plans since, other than as an input.

    A node computes each property once, and keeps it among its attributes: its inputs, which every walk over a plan
    requests, its cardinality, its spec.
    """
    states = [vars(plan) for plan in plans]
    before = list(map(len, states))
    return lambda: list(map(len, states)) != before


def _is_called(function: Any) -> bool:
    cls: Any = dataset_class()
    return any(function is known for known in (*_BUILTINS, cls.batch, cls.zip))


def _has_no_effect(operation: Expression) -> bool:
    """Return whether an operation changes nothing outside the function, given what it can reach."""
    match operation:
        case Expression("method", (_, name, *_)):
            return name in _METHODS
        case Expression("call", (function, *_)):
            return _is_called(function)
        case Expression("store", (target, *_)):
            return target.kind not in {"constant", "read"}
    return operation.kind in _OPERATIONS


def _is_harmless(value: Any) -> bool:
    """Return whether a value cannot be modified, and calling it has no effects."""
    if type(value) is tuple:
        return all(map(_is_harmless, value))
    return type(value) in _SCALARS or type(value) is CodeType or value is dataset_class() or _is_called(value)

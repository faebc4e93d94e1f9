"""Probing: computes the first element of a plan, to find out what user code returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from dataset.errors import SpecError
from dataset.plan.node import Node
from dataset.plan.spec import map_spec, spec_of, without_sizes
from dataset.runtime.context import open_plan
from dataset.world.interrupts import guarded


def probed_spec(node: Node) -> Any:
    """Return the element spec of a node whose output is only known by running user code: that of its first element.

    The kinds, dtypes and ranks of components are those of the first element. Its sizes say nothing about those of later
    elements, so every dimension is None.

    Raises:
        SpecError: if the plan has no elements.
    """
    found = probe(node, spec_of)
    if not found:
        raise SpecError(
            f"{node}: the element spec can only be determined by computing an element, and there is none; "
            "pass output_signature to from_generator to declare it"
        )
    return map_spec(without_sizes, found[0])


_PROBE_FAILURES_MAX = 100


@guarded
def probe(plan: Node, look: Callable[[Any], Any] = lambda element: element) -> list[Any]:
    """Return ``look(element)`` for the first element of a plan in a list, or an empty list. Uses up no shuffle order.

    If the element or ``look`` fails, for example on the spec of an inner dataset without elements, the next element is
    tried. If all fail, or too many, the last exception is raised.
    """
    coordinator, operator = open_plan(plan, probing=True)
    failure: Exception | None = None
    try:
        for failures in itertools.count(1):
            try:
                chunk = operator.pull(1)
                if chunk is not None:
                    return [look(chunk.only())]
                break
            except Exception as error:
                if failures == _PROBE_FAILURES_MAX:
                    raise
                failure = error
        if failure is not None:
            raise failure
        return []
    finally:
        del failure  # see runtime/contract.py on exceptions that are kept
        coordinator.shut_down(operator.close, wait=True)

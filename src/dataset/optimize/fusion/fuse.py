"""Joining of maps and filters: the conditions under which two ops run as one, shared by the fusion rules."""

from __future__ import annotations

import dataclasses

from dataset.ops.elementwise import Elementwise
from dataset.ops.map import Map
from dataset.optimize.rule import Miss
from dataset.plan.node import Node
from dataset.runtime.functions.vectorized import is_vectorized


def takes_columns(node: Node) -> bool:
    """Return whether the function is called for many elements at once, so that it cannot be fused."""
    if isinstance(node, Map) and node.column_function is not None:
        return True
    return isinstance(node, Elementwise) and is_vectorized(node.called)


def fuse(node: Elementwise) -> Node | Miss:
    """Return the op marked to run together with the one below, or the reason why it cannot."""
    below = node.source
    assert isinstance(below, Elementwise)  # checked by the rules
    if node.parallel_settings() != below.parallel_settings():
        return Miss(
            f"{below.label()} below it has different parallel settings ({_settings(below)}; here {_settings(node)})"
        )
    if node.executor != "thread":
        return Miss(
            "the functions may run in worker processes; call both in one function to send each element only once"
        )
    return dataclasses.replace(node, fused=True)


def _settings(node: Elementwise) -> str:
    calls = node.parallelism() or "one call at a time"
    return calls if node.executor == "thread" else f"{calls}, executor={node.executor!r}"

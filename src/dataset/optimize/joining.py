"""What the fusions of map and filter share: when two such ops may run as one."""

from __future__ import annotations

import dataclasses

from dataset.ops.elementwise import Elementwise
from dataset.ops.map import Map
from dataset.optimize.rule import Miss
from dataset.plan.node import Node
from dataset.runtime.functions.vectorized import is_vectorized
from dataset.runtime.parallel.pool import parallel_detail


def takes_columns(node: Node) -> bool:
    """Return whether the function is best called for many elements at once, which cannot go through one by one."""
    if isinstance(node, Map) and node.column_function is not None:
        return True
    return isinstance(node, Elementwise) and is_vectorized(node.called)


def joined(node: Elementwise) -> Node | Miss:
    """Return the op marked to run together with the one below, or what forbids it."""
    below = node.source
    assert isinstance(below, Elementwise)  # the rules ask
    if node.parallel_settings() != below.parallel_settings():
        return Miss(
            f"{below.described()} below it has other parallel settings ({_settings(below)}; here {_settings(node)})"
        )
    if node.runs_in_processes:
        return Miss("the functions run in worker processes; one function that calls both saves sending the elements")
    return dataclasses.replace(node, joined=True)


def _settings(node: Elementwise) -> str:
    calls = parallel_detail(node.num_parallel_calls, node.deterministic) or "one call at a time"
    return f"{calls} in processes" if node.runs_in_processes else calls

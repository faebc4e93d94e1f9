"""Plans as text: a small tree, the last operation on top, each input below its reader."""

from __future__ import annotations

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node

_COUNTS = {INFINITE_CARDINALITY: "endless", UNKNOWN_CARDINALITY: ""}


def draw(node: Node) -> str:
    """The tree below ``node``, one line for each operation: what it is, how many elements, the source line."""
    lines: list[tuple[str, str]] = []
    _draw(node, "", "", lines)
    width = max(len(left) for left, _ in lines)
    return "\n".join(f"{left:<{width}}  {right}".rstrip() for left, right in lines)


def _draw(node: Node, first: str, rest: str, lines: list[tuple[str, str]]) -> None:
    cardinality = node.cardinality()
    count = _COUNTS.get(cardinality, f"{cardinality:,} elements" if cardinality != 1 else "1 element")
    named = f" {node.name!r}" if node.name else ""
    detail = f" {node.detail()}" if node.detail() else ""
    lines.append((f"{first}{node.described()}{named}{detail}", f"{count:<18}{node.origin}"))
    for index, source in enumerate(node.inputs):
        last = index == len(node.inputs) - 1
        _draw(source, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), lines)

"""Graphviz source of a plan, for other layouts and file formats."""

from __future__ import annotations

from collections.abc import Mapping

from dataset.plan.drawing.summary import summaries
from dataset.plan.node import Node


def dot(plan: Node, rules_of: Mapping[Node, tuple[str, ...]] | None = None) -> str:
    """Return the graph, with data flowing up to the last operation, and the rules that created a node in its label."""
    known = summaries(plan)
    names = {node: f"n{number}" for number, node in enumerate(known)}
    lines = [
        "digraph plan {",
        "  rankdir=BT",
        "  ordering=in",
        '  node [shape=box, style=rounded, fontname="monospace"]',
    ]
    for node, summary in known.items():
        rules = (rules_of or {}).get(node, ())
        where = " · ".join(filter(None, [summary.count, summary.origin]))
        parts = [summary.title, summary.detail, where, summary.functions, summary.spec, *dict.fromkeys(rules)]
        lines.append(f"  {names[node]} [label={_quoted(filter(None, parts))}]")
    lines += [f"  {names[source]} -> {names[node]}" for node in known for source in node.inputs]
    return "\n".join([*lines, "}"])


def _quoted(parts: filter[str]) -> str:
    """Return the parts as lines of one label. Backslashes begin escapes, and ampersands HTML entities."""
    escaped = (part.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for part in parts)
    return '"' + "\\n".join(escaped) + '"'

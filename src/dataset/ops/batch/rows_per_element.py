"""Rows of batches: checks of element specs, shared by unbatch and rebatch."""

from __future__ import annotations

from typing import Any

from dataset.plan.node import Node, UnaryNode, rows_per_element, spec_is_static
from dataset.plan.spec import DatasetSpec, flatten_spec


def require_rows(op: str, element_spec: Any) -> None:
    """Check that every component has rows, and that all have the same number of rows.

    Raises:
        ValueError: if a component is a scalar, or its number of rows is known to differ from that of another.
    """
    structure, specs = flatten_spec(element_spec)
    for index, spec in enumerate(specs):
        if spec.shape == ():
            what = "a dataset" if isinstance(spec, DatasetSpec) else "a scalar"
            raise ValueError(f"{op}(): {structure.component_name(index)} is {what}, which has no rows")
    if len({spec.shape[0] for spec in specs if spec.shape} - {None}) > 1:
        shapes = {structure.component_name(index): spec.shape for index, spec in enumerate(specs)}
        raise ValueError(f"{op}(): all components must have the same number of rows, got the shapes {shapes}")


def known_rows(node: Node) -> int | None:
    """Return how many rows every element of ``node`` has, or None if it is unknown without running anything."""
    rows = rows_per_element(node)
    if rows is not None or not spec_is_static(node):
        return rows
    sizes = [spec.shape[0] for spec in flatten_spec(node.element_spec)[1] if spec.shape]
    return next((size for size in sizes if size is not None), None)


def require_static_rows(node: UnaryNode) -> None:
    """Call ``require_rows`` on the input's spec, if it is known without running anything."""
    if spec_is_static(node.source):
        require_rows(node.op, node.source.element_spec)

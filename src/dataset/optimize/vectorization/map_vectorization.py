"""Run functions on whole columns instead of element by element.

    before:  map(lambda x: x / 255)            a call for each element
    after:   map(lambda x: x / 255), columns   the same division for each chunk, with an array as x

Legal if the function's code, with that of the helpers that it calls, is an expression graph
(runtime/functions/expression.py): it has no side effects and computes each element independently. It may also parse
Examples and decode raw bytes, with parse_single_example, ExampleParser, decode_raw and np.frombuffer. Conditions on the
elements are checked when it runs (runtime/functions/evaluate.py), because they are unknown before. The first results
are compared with those of single elements (values, dtypes and shapes); after any exception or difference, the operator
returns to single elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dataset import io
from dataset.ops.elementwise import Elementwise
from dataset.plan.node import Miss, Node, spec_is_static
from dataset.plan.spec import BYTES, TensorSpec, flatten_spec
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.evaluate import run_on_columns, values_on_columns
from dataset.runtime.functions.expression import TWINS_OF_BUILTINS, Graph, read_function
from dataset.runtime.functions.kernels.columns import ElementwiseFunction
from dataset.runtime.functions.kernels.divided import DividedFunction


def vectorize_map(node: Node) -> Node | Miss | None:
    """Return the map or filter, marked to run on columns, or to run the beginning of its function on columns."""
    if not isinstance(node, Elementwise) or node.takes_columns:
        return None
    if node.columnwise is not None or node.divided is not None:
        return _partly(node)
    reading = read_function(node.called)
    division, graph = reading.division, reading.waiting or reading.graph
    if reading.waiting is not None and spec_is_static(node.source):
        graph = read_function(node.called, structure=flatten_spec(node.source.element_spec)[0]).graph
    found = ElementwiseFunction(node.called, graph) if isinstance(graph, Graph) else graph
    reason = None if isinstance(found, ElementwiseFunction) else found
    marks: dict[str, Any] = {}
    if isinstance(found, ElementwiseFunction):
        reason = _misfit(found, node.source, run_on_columns)
        if reason is None:
            marks["columnwise"] = found
    if division is not None and not ("columnwise" in marks and marks["columnwise"].graph.is_whole):
        beginning = ElementwiseFunction(node.called, division.graph)
        if _misfit(beginning, node.source, values_on_columns) is None:
            marks["divided"] = DividedFunction(node.called, division)
    if marks:
        return dataclasses.replace(node, **marks)
    return None if reason is None else Miss(reason)


def _partly(node: Elementwise) -> Miss | None:
    """Return why a function does not run on columns as a whole."""
    if node.divided is not None and node.divided.division.reason is not None:
        return Miss(f"only its beginning, up to line {node.divided.division.line}: {node.divided.division.reason}")
    ends = [] if node.columnwise is None else [block.end for block in node.columnwise.graph.body.blocks()]
    reasons = [end.reason for end in ends if isinstance(end, NotProvedError) and end.reason is not None]
    return Miss(f"except for elements with which {reasons[0]}") if reasons else None


def _misfit(found: ElementwiseFunction, source: Node, evaluate: Callable[..., Any]) -> str | None:
    """Return why the source's elements can never run in columns, or None if that is unknown before running."""
    if not spec_is_static(source):
        return None
    structure, specs = flatten_spec(source.element_spec)
    not_safe = f"the elements, {source.element_spec!r}, are not arguments with which it is known to be safe"
    if not found.takes(structure):
        return not_safe
    reads = found.graph.current(found.function)
    columns = [_column_of_one(spec) for spec in specs]
    if reads is None or any(column is None for column in columns):
        return None
    try:
        evaluate(found.graph, reads, structure, columns)
    except NotProvedError as error:
        return error.reason or not_safe
    except Exception:  # noqa: BLE001  # another element may not raise it
        return None
    return None


def _column_of_one(spec: object) -> np.ndarray | list[bytes] | None:
    """Return a column of one element with this spec; None if its shape is unknown."""
    if not isinstance(spec, TensorSpec) or spec.shape is None or None in spec.shape:
        return None
    return [b""] if spec.dtype == BYTES else np.zeros((1, *spec.shape), spec.dtype)  # type: ignore[arg-type]  # no None


TWINS_OF_BUILTINS[np.frombuffer] = lambda: (io.decode_raw.__dataset_column_twin__, ("buffer", "dtype"))  # type: ignore[attr-defined]  # functions have attributes

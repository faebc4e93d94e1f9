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

import numpy as np

from dataset import io
from dataset.ops.elementwise import Elementwise
from dataset.plan.node import Miss, Node, spec_is_static
from dataset.plan.spec import BYTES, TensorSpec, flatten_spec
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.columnwise import ElementwiseFunction, elementwise_function
from dataset.runtime.functions.evaluate import run_on_columns
from dataset.runtime.functions.expression import TWINS_OF_BUILTINS


def vectorize_map(node: Node) -> Node | Miss | None:
    """Return the map or filter, marked to run on columns."""
    if not isinstance(node, Elementwise) or node.columnwise is not None or node.takes_columns:
        return None
    found = elementwise_function(node.called)
    if not isinstance(found, ElementwiseFunction):
        return None if found is None else Miss(found)
    reason = _misfit(found, node.source)
    return dataclasses.replace(node, columnwise=found) if reason is None else Miss(reason)


def _misfit(found: ElementwiseFunction, source: Node) -> str | None:
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
        run_on_columns(found.graph, reads, structure, columns)  # type: ignore[arg-type]  # none of them is None
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

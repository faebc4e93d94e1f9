"""Parse many records at once if a function only parses one record.

    before:  map(lambda record: io.parse_single_example(record, FEATURES))["label"]              record by record
    after:   map(lambda record: io.parse_single_example(record, FEATURES))["label"], on columns  chunk by chunk

Legal if the function's bytecode proves that it only calls parse_single_example with a dict of features from a variable
outside the function, and returns the result or some of its features (parsing_functions.py). Before each chunk, it is
checked that the variables are unchanged. If they have changed, or a chunk cannot be parsed at once, the function itself
is called for each record, so that errors name the right record and source line.
"""

from __future__ import annotations

from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.parsing_functions import calls_parser, parsing_function
from dataset.plan.node import Miss, Node
from dataset.runtime.functions.bytecode import unknown_python


def vectorize_parser(node: Node) -> Node | Miss | None:
    """Return the map, set to parse whole columns of records."""
    if not isinstance(node, Elementwise) or not node.traits.aligned:
        return None
    if node.column_function is not None or node.columnwise is not None or node.executor != "thread":
        return None
    found = parsing_function(node.called)
    if found is None:
        return Miss(unknown_python() or _REASON) if calls_parser(node.called) else None
    return found.put_into(node)


_REASON = (
    "the function is called for each record, because it does more than parse_single_example, decode_raw and simple "
    "arithmetic, or its features are not in a dict outside the function; use a dataset.io.ExampleParser in one map, "
    "and do the rest in a second map"
)

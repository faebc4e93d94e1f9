"""Parse many records at once if a function only parses one record.

    before:  map(lambda record: io.parse_single_example(record, FEATURES))["label"]              record by record
    after:   map(lambda record: io.parse_single_example(record, FEATURES))["label"], on columns  chunk by chunk

Legal if the function's expression graph only contains a call of parse_single_example with a dict of features from
outside of the function, and the result or some of its features (parsing_functions.py). Before each chunk, it is
checked that what the function reads is unchanged. If it has changed, or a chunk cannot be parsed at once, the function
itself is called for each record, so that errors name the right record and source line.
"""

from __future__ import annotations

from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.parsing_functions import parsing_function
from dataset.plan.node import Node


def vectorize_parser(node: Node) -> Node | None:
    """Return the map, set to parse whole columns of records."""
    if not isinstance(node, Elementwise) or not node.traits.aligned:
        return None
    if node.takes_columns or node.columnwise is not None or node.executor != "thread":
        return None
    found = parsing_function(node.called)
    return None if found is None else found.put_into(node)

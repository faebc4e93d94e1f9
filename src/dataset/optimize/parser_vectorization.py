"""Parse many records at once where a function does nothing but parse one.

    before:  map(lambda record: io.parse_single_example(record, FEATURES))["label"]              record by record
    after:   map(lambda record: io.parse_single_example(record, FEATURES))["label"], on columns  chunk by chunk

Legal where the function's bytecode proves that all it does is to call parse_single_example with a dict of features that
a variable outside of it holds, and to return the result, or features of it (parsing_functions.py). Before each chunk
the plan looks whether the variables still hold what they did. For a chunk that cannot be parsed at once, or after such
a change, the function itself is called, record by record: it says what is wrong, and in which line.
"""

from __future__ import annotations

from dataset.ops.map import Map
from dataset.optimize.parsing_functions import calls_parser, parsing_function
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def vectorize_parser(node: Node) -> Node | Miss | None:
    """Return the same map, which parses whole columns of records."""
    if type(node) is not Map or node.column_function is not None or node.executor != "thread":
        return None
    found = parsing_function(node.function)
    if found is None:
        return Miss(_REASON) if calls_parser(node.function) else None
    return found.put_into(node)


_REASON = (
    "records are parsed one by one, because the function does more than pick features of what parse_single_example "
    "returns, or its features are in no dict outside of it; give one map a dataset.io.ExampleParser, and do the rest "
    "in a second map"
)

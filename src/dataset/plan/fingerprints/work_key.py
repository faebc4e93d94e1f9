"""Work key: identifies the work of an op by its code, for what was learned about its speed.

Two plans that the same lines built with the same functions have the same key, whatever data they process, in this run
of the program and the next one. So a pipeline that is built again for each epoch finds what the one before has learned.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from dataset.plan.node import Node

_DEPTH_MAX = 8  # of functions in closures, in constants, and in arguments of functools.partial


def work_key(node: Node) -> str:
    """Return a key of the work of an op and of all below it: 32 hexadecimal digits.

    Example:
        >>> from dataset import Dataset
        >>> first, second = (Dataset.range(count).map(abs).plan for count in (10, 20))
        >>> work_key(first) == work_key(second)
        True
    """
    texts = "\n".join(_texts_of_node(node))
    return hashlib.sha256(f"{sys.version_info[:2]}\n{texts}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _texts_of_node(node: Node) -> Iterator[str]:
    yield f"{node.op} {node.origin} {len(node.inputs)}"
    for value in vars(node).values():
        if callable(value):
            yield from _texts(value, _DEPTH_MAX)
    for source in node.inputs:
        yield from _texts_of_node(source)


def _texts(value: Any, depth: int) -> Iterator[str]:
    parts: tuple[Any, ...] = ()
    if isinstance(value, functools.partial):
        parts = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.MethodType):
        parts = (value.__func__, type(value.__self__))
    elif isinstance(value, types.FunctionType):
        cells = (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
        parts = (value.__code__, *cells)
    elif isinstance(value, types.CodeType):
        parts = (value.co_name, value.co_code.hex(), *value.co_names, *value.co_consts)
    elif isinstance(value, tuple):
        parts = value
    plain = isinstance(value, str | bytes | int | float | None)
    yield f"{type(value).__name__} {len(parts)} {value!r}" if plain else f"{type(value).__qualname__} {len(parts)}"
    if isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}"
    if depth:
        for part in parts:
            yield from _texts(part, depth - 1)

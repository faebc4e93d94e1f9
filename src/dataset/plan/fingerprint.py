"""Short names for what a plan computes: one for its shape, one for all that decides over its elements.

A saved state carries ``fingerprint``, so that it is not loaded into another pipeline; it lets a user mend a function
and go on. ``content_fingerprint``, over what content.py finds in values, is what ``Dataset.fingerprint`` gives and what
a snapshot goes by: it changes with the data, with the seeds, and with the code of functions.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dataset.plan.content import Content
from dataset.plan.node import Node, walk
from dataset.plan.origin import function_name
from dataset.plan.spec import ComponentSpec, component_spec
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor


def fingerprint(node: Node) -> str:
    """16 hexadecimal digits over the plan's ops and parameters.

    Functions count by name, arrays by dtype and shape: an edit inside a function, or other numbers in an array of the
    same size, do not change the fingerprint.
    """
    digest = hashlib.sha256()
    for part in walk(node):
        digest.update(own_text(part).encode())
    return digest.hexdigest()[:16]


def own_text(node: Node) -> str:
    """What of one node the fingerprint is made of."""
    parameters = "".join(f";{key}={_text(value)}" for key, value in node.lasting_parameters().items())
    return f"{node.op}/{len(node.inputs)}{parameters}"


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"array{value.dtype.str}{value.shape}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, tuple | list):
        return "(" + ",".join(map(_text, value)) + ")"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, RaggedTensor | SparseTensor):
        return repr(component_spec(value))
    if callable(value) and not isinstance(value, np.dtype):
        return function_name(value)
    return repr(value) if isinstance(value, Structure | ComponentSpec | np.dtype) else type(value).__name__


def content_fingerprint(node: Node) -> int:
    """64 bits over all that decides over the elements: ops, parameters, seeds, data, and the code of functions."""
    content = Content()
    content.add_plan(node)
    return content.digest()

"""Fingerprints of plans: one of the ops and parameters, one of everything that determines the elements.

A saved state holds ``fingerprint``, so that it cannot be loaded into another pipeline. It does not change when a user
fixes a function, so the iteration can be resumed. ``content_fingerprint`` covers the data, the seeds and the code of
functions (content.py). ``Dataset.fingerprint`` returns it, and snapshots are identified by it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dataset.plan.fingerprints.content import Content
from dataset.plan.node import Node, walk
from dataset.plan.origin import function_name
from dataset.plan.spec import ComponentSpec, component_spec
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor


def fingerprint(node: Node) -> str:
    """Return a hash of the plan's ops and parameters, as 16 hexadecimal digits.

    Functions count by name, arrays by dtype and shape: editing a function, or the values in an array of the same size,
    does not change the fingerprint.
    """
    digest = hashlib.sha256()
    for part in walk(node):
        digest.update(own_text(part).encode())
    return digest.hexdigest()[:16]


def own_text(node: Node) -> str:
    """Return the text of one node from which the fingerprint is computed."""
    parameters = "".join(f";{key}={_text(value)}" for key, value in node.parameters().items())
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
    """Return a 64-bit hash of all that determines the elements: ops, parameters, seeds, data, code of functions."""
    content = Content()
    content.add_plan(node)
    return content.digest()

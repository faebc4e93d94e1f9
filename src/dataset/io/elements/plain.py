"""Saved states as JSON: numbers, text, bytes, arrays, lists and dicts, in a form that comes back exactly."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from dataset.plan.skeleton import DIMENSION_MAX, dtype_name, dtype_named
from dataset.plan.spec import BYTES

__all__ = ["from_json", "to_json"]


def to_json(data: Any) -> Any:
    """Plain data as what the json module writes.

    >>> to_json({"at": 3, "key": b"ab"})
    {'at': 3, 'key': {'$bytes': 'YWI='}}
    """
    if type(data) is dict:
        pairs = [[key, to_json(value)] for key, value in data.items()]
        return {"$pairs": pairs} if any(key[:1] == "$" for key in data) else dict(pairs)
    if type(data) is list:
        return [to_json(item) for item in data]
    if type(data) is bytes:
        return {"$bytes": base64.b64encode(data).decode()}
    if type(data) is np.ndarray:
        content = base64.b64encode(data.tobytes()).decode()
        return {"$array": content, "dtype": dtype_name(data.dtype), "shape": list(data.shape)}
    if type(data) is float and not math.isfinite(data):
        return {"$float": str(data)}
    if data is None or type(data) in {bool, int, float, str}:
        return data
    raise TypeError(f"a {type(data).__name__} is no plain data: {data!r:.100}")


def from_json(data: Any) -> Any:
    """The inverse of ``to_json``.

    Raises:
        ValueError: if ``data`` is not what that gives.
    """
    match data:
        case list():
            return [from_json(item) for item in data]
        case {"$pairs": list(pairs)}:
            return {key: from_json(value) for key, value in pairs}
        case {"$bytes": str(content)}:
            return base64.b64decode(content, validate=True)
        case {"$float": str(content)}:
            return float(content)
        case {"$array": str(content), "dtype": name, "shape": list(shape)}:
            return _array(base64.b64decode(content, validate=True), dtype_named(name), shape)
        case dict():
            return {key: from_json(value) for key, value in data.items()}
    return data


def _array(content: bytes, dtype: np.dtype[Any], shape: list[Any]) -> Any:
    sizes_are_right = all(type(size) is int and 0 <= size < DIMENSION_MAX for size in shape)
    if dtype == BYTES or not sizes_are_right or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"no array: {dtype} of shape {shape!r:.100} in {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape).copy()

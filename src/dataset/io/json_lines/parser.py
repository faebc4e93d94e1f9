"""Parser of single lines: orjson if it is installed (the extra ``json``), else the standard library.

Both accept the same lines: UTF-8 only, no NaN or Infinity, no number outside the range of float64, no lone surrogate.
They return the same values, except that orjson rounds integers that fit into neither int64 nor uint64 to floats.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
from collections.abc import Callable
from typing import Any


@functools.cache
def line_parser() -> Callable[[bytes], Any]:
    """Return the function that parses a line; it raises ValueError, or RecursionError for deep nesting."""
    try:
        loads: Callable[[bytes], Any] = importlib.import_module("orjson").loads
    except ImportError:
        return parse_line
    return loads


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text:.40} is outside the range of float64")
    return value


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON value")


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parse_line(line: bytes) -> Any:
    """Parse a line with the standard library.

    >>> parse_line(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    text = line.decode()
    value = _DECODER.decode(text)
    if "\\u" in text:
        _ENCODER.encode(value).encode()  # raises for a lone surrogate
    return value


def text_of(value: Any) -> bytes:
    """Return the JSON text of a value, without blanks.

    >>> text_of({"a": [1, None]})
    b'{"a":[1,null]}'
    """
    return _ENCODER.encode(value).encode()


def syntax_error(line: bytes, error: Exception) -> str:
    """Return the column and the reason why a line is not valid JSON, in the words of the standard library.

    Args:
        line: the line.
        error: the exception of ``line_parser``, for what the standard library accepts.
    """
    if isinstance(error, RecursionError):
        return "column 1: the values are nested too deeply to be parsed; store the inner values as text"
    try:
        parse_line(line)
    except UnicodeDecodeError as damage:
        return f"column {damage.start + 1}: the line is not valid UTF-8 ({damage.reason})"
    except json.JSONDecodeError as damage:
        return f"column {damage.colno}: {damage.msg}"
    except ValueError as damage:
        return f"column 1: {damage}"
    except RecursionError as damage:
        return syntax_error(line, damage)
    return f"column {getattr(error, 'colno', 1)}: {getattr(error, 'msg', error)}"

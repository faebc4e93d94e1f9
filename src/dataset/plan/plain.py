"""Plain data for saved states: None, bools, numbers, text, bytes, arrays, lists, tuples and dicts.

It is written as JSON and read back exactly, without executing anything. Bytes, also those of arrays, are stored as
base64 in the JSON, or separately by the caller, as in checkpoint files.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dataset.errors import StateError
from dataset.plan.skeleton import DIMENSION_MAX, dtype_name, dtype_named
from dataset.plan.spec import BYTES

FORMAT = "dataset state as JSON, version 1"
_KEYS = {"format", "digest", "state"}

_SCALARS = frozenset({str, int, float, bool, type(None)})
_EXACT_MAX = 2**53  # other JSON readers convert larger ints to floats
_FIXED_TEXT = re.compile(r"\|S[1-9]\d{0,8}|[<>]U[1-9]\d{0,7}")

Put = Callable[[bytes], Any]
"""Function that takes bytes and returns a reference to store in the JSON."""

Get = Callable[[Any], bytes]
"""The inverse of ``Put``; raises ValueError or TypeError for an invalid reference."""


def _put(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _get(reference: Any) -> bytes:
    if type(reference) is not str:
        raise ValueError(f"invalid base64: {reference!r:.100}")
    return base64.b64decode(reference, validate=True)


def to_json(data: Any, put: Put = _put) -> Any:
    """Return plain data as data that the json module can write.

    Raises:
        TypeError: if a value is not plain data.

    >>> to_json({"at": 3, "key": b"ab"})
    {'at': 3, 'key': {'$bytes': 'YWI='}}
    """
    if type(data) is dict:
        pairs = [[to_json(key, put), to_json(value, put)] for key, value in data.items()]
        plain_keys = all(type(key) is str and key[:1] != "$" for key in data)
        return dict(pairs) if plain_keys else {"$pairs": pairs}
    if type(data) is list:
        return [to_json(item, put) for item in data]
    if type(data) is tuple:
        return {"$tuple": [to_json(item, put) for item in data]}
    if type(data) is bytes:
        return {"$bytes": put(data)}
    if type(data) is np.ndarray:
        return {"$array": put(data.tobytes()), "dtype": _dtype_name(data.dtype), "shape": list(data.shape)}
    if type(data) is float and not math.isfinite(data):
        return {"$float": str(data)}
    if type(data) is int and abs(data) > _EXACT_MAX:
        return {"$int": hex(data)}
    if type(data) in _SCALARS:
        return data
    raise TypeError(f"a state must be plain data, but it contains a {type(data).__name__}: {data!r:.100}")


def nbytes_of_plain(data: Any) -> int:
    """Return the approximate size of plain data in bytes."""
    if type(data) is np.ndarray:
        return int(data.nbytes)
    if type(data) in {bytes, str}:
        return len(data)
    if type(data) is dict:
        return sum(map(nbytes_of_plain, data.values()))
    return sum(map(nbytes_of_plain, data)) if type(data) in {list, tuple} else 8


def from_json(data: Any, get: Get = _get) -> Any:
    """Return the inverse of ``to_json``.

    Raises:
        ValueError, TypeError: if ``data`` is not a result of ``to_json``.
    """
    match data:
        case list():
            return [from_json(item, get) for item in data]
        case {"$pairs": list(pairs)}:
            return {from_json(key, get): from_json(value, get) for key, value in pairs}
        case {"$tuple": list(items)}:
            return tuple([from_json(item, get) for item in items])
        case {"$bytes": content}:
            return get(content)
        case {"$float": str(content)}:
            return float(content)
        case {"$int": str(content)}:
            return int(content, 16)
        case {"$array": content, "dtype": name, "shape": list(shape)}:
            return _array(get(content), _dtype_named(name), shape)
        case dict():
            return {_key(key): from_json(value, get) for key, value in data.items()}
    if type(data) not in _SCALARS:
        raise ValueError(f"invalid JSON: {data!r:.100}")
    return data


def _key(key: Any) -> str:
    if type(key) is not str or key[:1] == "$":
        raise ValueError(f"invalid key: {key!r:.100}")
    return key


def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype that a state may hold; columns of objects are stored as lists."""
    if dtype.hasobject:
        raise TypeError("a state must be plain data, but it contains an array of objects")
    return dtype.str if _FIXED_TEXT.fullmatch(dtype.str) else dtype_name(dtype)


def _dtype_named(name: Any) -> np.dtype[Any]:
    if type(name) is str and _FIXED_TEXT.fullmatch(name):
        return np.dtype(name)
    return dtype_named(name)


def _array(content: bytes, dtype: np.dtype[Any], shape: list[Any]) -> Any:
    sizes_are_right = all(type(size) is int and 0 <= size < DIMENSION_MAX for size in shape)
    if dtype == BYTES or not sizes_are_right or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"invalid array: {dtype} of shape {shape!r:.100} in {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape).copy()


class Blobs:
    """The content of bytes and arrays, stored in one place beside the JSON, which refers to it by [offset, length]."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def put(self, content: bytes) -> list[int]:
        """Append bytes and return their place: the ``put`` of ``to_json``."""
        place = [self.size, len(content)]
        self.pieces.append(content)
        self.size += len(content)
        return place


def blob_getter(blobs: bytes | memoryview) -> Get:
    """Return the ``get`` of ``from_json`` for the joined pieces of ``Blobs``. It does not trust the places."""

    def get(place: Any) -> bytes:
        if type(place) is not list or [type(part) for part in place] != [int, int]:
            raise ValueError(f"expected [offset, length], got {place!r:.100}")
        start, length = place
        if start < 0 or length < 0 or start + length > len(blobs):
            raise ValueError(f"bytes {start} to {start + length} are not within the {len(blobs)} bytes of the blobs")
        return bytes(blobs[start : start + length])

    return get


# Whole states.


def state_to_json(state: Any) -> dict[str, Any]:
    """Return a state as a dict that the json module can write, with a format name and a digest.

    Raises:
        StateError: if a value is not plain data.
    """
    try:
        return {"format": FORMAT, "digest": digest(state), "state": to_json(state)}
    except TypeError as error:
        raise StateError(str(error)) from None
    except RecursionError:
        raise _too_deep() from None


def state_from_json(data: Any) -> Any:
    """Return the inverse of ``state_to_json``.

    Raises:
        StateError: if ``data`` is not a result of ``state_to_json``.
    """
    try:
        return _state_of(data)
    except StateError:
        raise
    except ValueError as error:  # an integer that is too long to print
        raise StateError(f"the state is damaged: {error}") from None


def _state_of(data: Any) -> Any:
    if not is_json_form(data):
        raise StateError(f"expected a state from to_json(), a dict with the keys {sorted(_KEYS)}, got {data!r:.100}")
    if data["format"] != FORMAT:
        raise StateError(f"the state has the format {data['format']!r:.100}, but this library reads {FORMAT!r}")
    if set(data) != _KEYS:
        raise StateError(f"the state is truncated or damaged: its keys are {sorted(map(str, data))!r:.200}")
    try:
        state = from_json(data["state"])
        fits = digest(state) == data["digest"]
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise StateError(f"the state is damaged: {error!r:.200}") from None
    except RecursionError:
        raise _too_deep() from None
    if not fits:
        raise StateError("the state is damaged: its content does not match its digest")
    return state


def is_json_form(state: Any) -> bool:
    """Return whether a state is a possibly damaged result of ``state_to_json``, in any version of the format."""
    return type(state) is dict and type(state.get("format")) is str


def unwrapped(state: Any) -> Any:
    """Return a state that may be in JSON form in its original form; the first step of loading a state.

    Raises:
        StateError: as ``state_from_json``.
    """
    return state_from_json(state) if is_json_form(state) else state


def _too_deep() -> StateError:
    return StateError("the state is nested too deeply to come from an iterator")


def digest(data: Any) -> str:
    """Return a hash of plain data, as 16 hexadecimal digits, to detect damage to a saved state.

    Raises:
        StateError: if a value is not plain data.
    """
    found = hashlib.blake2b(digest_size=8)
    try:
        _digest(data, found)
    except RecursionError:
        raise _too_deep() from None
    return found.hexdigest()


def _digest(data: Any, found: hashlib.blake2b) -> None:
    if type(data) is dict:
        found.update(b"d%d" % len(data))
        for key in sorted(data, key=repr):
            _digest(key, found)
            _digest(data[key], found)
    elif type(data) is list or type(data) is tuple:
        found.update(b"%c%d" % (b"l" if type(data) is list else b"t", len(data)))
        for item in data:
            _digest(item, found)
    elif type(data) is np.ndarray and not data.dtype.hasobject:
        found.update(f"a{data.dtype.str}{data.shape}".encode())
        found.update(data.tobytes())
    elif type(data) is bytes:
        found.update(b"b%d:" % len(data))
        found.update(data)
    elif type(data) is int:
        found.update(b"int%x;" % data)  # hexadecimal: for long ints, decimal digits are slow, or refused by Python
    elif type(data) in _SCALARS:
        found.update(f"{type(data).__name__}{len(repr(data))}:{data!r}".encode(errors="backslashreplace"))
    else:
        raise StateError(f"a state must be plain data, but it contains a {type(data).__name__}: {data!r:.100}")

"""Codec for arrays in TensorFlow's wire format, the message TensorProto.

This module converts between bytes and arrays. It opens no files. messages.py defines the message.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io import example
from dataset.io.example.reference import parsed
from dataset.plan.checks import require_unmasked
from dataset.plan.spec import as_dtype
from dataset.plan.values import filled, object_column

MAX_TENSOR_BYTES: Final = 1 << 30
"""Default maximum size of an array whose message declares more values than it contains: one GiB."""

_CORRUPT: Final = "parse_tensor(): the message is corrupt"

# A dtype's number in tensorflow/core/framework/types.proto, its name, and the field with its values. If ml_dtypes is in
# use, bfloat16 is a dtype of NumPy, and has this name, too.
_TYPES = (
    "1 float32 float_val, 2 float64 double_val, 3 int32 int_val, 4 uint8 int_val, 5 int16 int_val, 6 int8 int_val, "
    "7 bytes string_val, 8 complex64 scomplex_val, 9 int64 int64_val, 10 bool bool_val, 14 bfloat16 half_val, "
    "17 uint16 int_val, 18 complex128 dcomplex_val, 19 float16 half_val, 22 uint32 uint32_val, 23 uint64 uint64_val"
)
_DTYPES = {name: (int(number), field) for number, name, field in map(str.split, _TYPES.split(", "))}


def parse_tensor(serialized: bytes, out_type: npt.DTypeLike, *, max_bytes: int = MAX_TENSOR_BYTES) -> Any:
    """Parse an array that ``serialize_tensor`` or ``tf.io.serialize_tensor`` wrote.

    Args:
        serialized: the bytes of a TensorProto.
        out_type: the dtype of the array, ``bytes`` for text. It must be that of the message; nothing is converted.
        max_bytes: the maximum size of the array if the message declares more values than it contains: as in TensorFlow,
            the last value is repeated, and without any value all are zero.

    Returns:
        An array, for shape ``()`` a NumPy scalar or ``bytes``. Arrays of text are object arrays of ``bytes``. An array
        of numbers usually shares memory with the message and is then read-only; ``.copy()`` makes it writable.

    Raises:
        ParseError: the bytes are not a TensorProto or are corrupt, or the array has another dtype, is too large or has
            more dimensions than NumPy supports, 64.
        TypeError: ``serialized`` is not bytes, or ``out_type`` has no counterpart in TensorFlow.

    >>> parse_tensor(serialize_tensor([[1, 2], [3, 4]]), np.int64)
    array([[1, 2],
           [3, 4]])
    >>> parse_tensor(serialize_tensor(["a", "bc"]), bytes)
    array([b'a', b'bc'], dtype=object)
    >>> parse_tensor(serialize_tensor(1.5), np.float32)
    Traceback (most recent call last):
    ...
    dataset.errors.ParseError: parse_tensor(): the array is float64, but out_type is float32; pass the dtype of the
    array, and convert it with astype()
    """
    dtype = as_dtype(out_type).newbyteorder("=")
    number, field = _wire_type("parse_tensor", dtype)
    message = parsed(example.messages.TensorProto, serialized, "parse_tensor()", "TensorProto")
    if message.dtype != number:
        names = {known: name for name, (known, _) in _DTYPES.items()}
        found = names.get(message.dtype, f"of TensorFlow's type {message.dtype}")
        raise ParseError(
            f"parse_tensor(): the array is {found}, but out_type is {dtype.name}; pass the dtype of the array, and "
            "convert it with astype()"
        )
    shape = tuple([dim.size for dim in message.tensor_shape.dim])
    if min(shape, default=0) < 0:
        raise ParseError(f"{_CORRUPT}: the shape {shape} is negative")
    count = math.prod(shape)
    if message.tensor_content:
        values = _from_content(message.tensor_content, dtype, count)
    else:
        values = _completed(_from_field(field, getattr(message, field), dtype), count, max_bytes)
    try:
        return values.reshape(shape)[()]
    except ValueError as error:
        raise ParseError(f"parse_tensor(): NumPy does not support the shape {shape!r:.200} ({error})") from None


def serialize_tensor(tensor: Any) -> bytes:
    r"""Return an array in TensorFlow's wire format, as ``tf.io.serialize_tensor`` does.

    Args:
        tensor: an array, a scalar, text, or nested lists of these. The dtype is NumPy's: ints become int64.

    Returns:
        The bytes of a TensorProto. The same input always produces the same bytes.

    Raises:
        TypeError: the dtype has no counterpart in TensorFlow, or the array is masked: fill it with ``.filled(value)``.

    >>> serialize_tensor(np.float32([1, 2]))
    b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    """
    require_unmasked(tensor[0] if isinstance(tensor, list) and tensor else tensor, "serialize_tensor(): ")
    array = np.asarray(tensor)
    if array.dtype.kind in "SU":
        array = np.asarray(tensor, object)  # keeps the zero bytes at the end of texts
    items = array.ravel()  # not array.flat, which supports half as many dimensions
    is_text = array.dtype == object and all(issubclass(kind, bytes | str) for kind in set(map(type, items)))
    number, _ = _wire_type("serialize_tensor", np.dtype("S") if is_text else array.dtype)
    message = example.messages.TensorProto(dtype=number)
    message.tensor_shape.SetInParent()  # present even for a scalar, as in TensorFlow
    for size in array.shape:
        message.tensor_shape.dim.add(size=size)
    if is_text:
        message.string_val.extend(text.encode() if isinstance(text, str) else text for text in items)
    else:
        message.tensor_content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return bytes(message.SerializeToString())


def _wire_type(function: str, dtype: np.dtype[Any]) -> tuple[int, str]:
    found = _DTYPES.get("bytes" if dtype.kind == "S" else dtype.name)
    if found is None:
        raise TypeError(f"{function}(): the dtype must be one of {', '.join(_DTYPES)}, got {dtype}; convert the array")
    return found


def _from_content(content: bytes, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Return the values that are stored as the memory of an array."""
    if dtype.kind == "S":
        return _text_from_content(content, count)
    if len(content) != count * dtype.itemsize:
        raise ParseError(
            f"{_CORRUPT}: {count} values of {dtype.name} were declared, but there are {len(content)} bytes"
        )
    if dtype.kind == "b" and max(content) > 1:
        raise ParseError(f"{_CORRUPT}: a bool is 0 or 1, got {max(content)}")
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False)


def _text_from_content(content: bytes, count: int) -> npt.NDArray[Any]:
    """Return texts that are stored as their lengths in varints, followed by their bytes."""
    head = content[: 10 * count]  # a varint has up to ten bytes
    ends = np.append(-1, np.flatnonzero(np.frombuffer(head, np.uint8) < 0x80)) + 1
    head = head[: ends[count]] if count < len(ends) else head
    packed = example.messages.BytesList(value=[head]).SerializeToString()  # encoded like packed integers
    damaged = "the length of a text is damaged: its bytes"
    lengths = parsed(example.messages.Int64List, packed, _CORRUPT, "varint", damaged).value
    edges = list(itertools.accumulate(lengths, initial=len(head)))
    if len(lengths) < count or min(lengths, default=0) < 0 or edges[-1] != len(content):
        raise ParseError(
            f"{_CORRUPT}: {count} texts were declared, but the {len(content)} bytes do not hold exactly that many"
        )
    return object_column([content[a:b] for a, b in itertools.pairwise(edges)])


def _from_field(field: str, values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the values of a repeated field."""
    if field == "string_val":
        return object_column(values)
    if dtype.kind == "c":
        parts = np.array(values, dtype.type(0).real.dtype)
        return parts[: len(parts) // 2 * 2].view(dtype)
    if field == "half_val":  # the bits of float16 or bfloat16
        return np.array(values, np.int32).astype(np.uint16).view(dtype)
    return np.array(values, np.int32 if field == "int_val" else dtype).astype(dtype, copy=False)


def _completed(values: npt.NDArray[Any], count: int, max_bytes: int) -> npt.NDArray[Any]:
    """Return exactly ``count`` values: the last one is repeated."""
    missing = count - len(values)
    if missing <= 0:
        return values[:count]
    if count * values.dtype.itemsize > max_bytes:
        raise ParseError(
            f"parse_tensor(): {count} values were declared, but there are only {len(values)}; repeating the last one "
            f"would take more than max_bytes = {max_bytes}; if the array is valid, pass a larger max_bytes"
        )
    last = values[-1] if len(values) else b"" if values.dtype == object else 0
    return np.concatenate([values, filled([missing], last, values.dtype)])

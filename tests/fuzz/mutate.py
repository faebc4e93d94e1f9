"""Mutations of bytes and of JSON-like trees."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

INTEGERS = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 31, 63, 64, 100, 127, 128, 255, 256, 1000, 4095, 4096, 32767, 32768, 65535, 65536),
    *((1 << 20), (1 << 24) - 1, (1 << 30), (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40), (1 << 53) + 1),
    *((1 << 60), (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
MUTATIONS_MAX = 8


def varint(number: int) -> bytes:
    """Encode a protobuf varint."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))


def integer(rng: random.Random) -> int:
    """Draw an interesting 64-bit integer, or its neighbor, or its negation."""
    number = rng.choice(INTEGERS) + rng.choice((0, 0, 0, -1, 1))
    return (-number if rng.random() < 0.2 else number) & (1 << 64) - 1


def packed_integer(rng: random.Random) -> bytes:
    """Draw an interesting integer in one of the usual encodings."""
    number = integer(rng)
    width = rng.choice((1, 2, 4, 8))
    if rng.random() < 0.3:
        return varint(number)
    content = struct.pack("<Q", number)[:width]
    return content if rng.random() < 0.5 else content[::-1]


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes], tokens: Sequence[bytes] = ()) -> bytes:
    """Apply a few mutations to ``data``; it may be spliced with ``others``."""
    for _ in range(min(1 + int(rng.expovariate(0.7)), MUTATIONS_MAX)):
        start, end, piece = rng.choice(_BYTE_MUTATIONS)(rng, data, others, tokens)
        data = data[:start] + piece + data[end:]
    return data


def _span(rng: random.Random, size: int, most: int = 64) -> tuple[int, int]:
    """Draw a range of up to ``most`` bytes, sometimes a longer one."""
    start = rng.randrange(size + 1)
    length = rng.randrange(size - start + 1) if rng.random() < 0.1 else rng.randrange(most + 1)
    return start, min(start + length, size)


# Each mutation returns the start and the end of a range, and what replaces it.
Edit = tuple[int, int, bytes]


def _flip_bit(rng: random.Random, data: bytes, *_: Any) -> Edit:
    at = rng.randrange(max(len(data), 1))
    return at, at + 1, bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1])


def _set_byte(rng: random.Random, data: bytes, *_: Any) -> Edit:
    at = rng.randrange(max(len(data), 1))
    return at, at + 1, rng.randbytes(len(data[at : at + 1]))


def _overwrite(rng: random.Random, data: bytes, others: Sequence[bytes], tokens: Sequence[bytes]) -> Edit:
    piece = rng.choice(tokens) if tokens and rng.random() < 0.4 else packed_integer(rng)
    at = rng.randrange(len(data) + 1)
    return at, at + len(piece), piece


def _insert(rng: random.Random, data: bytes, others: Sequence[bytes], tokens: Sequence[bytes]) -> Edit:
    at, _, piece = _overwrite(rng, data, others, tokens)
    return at, at, piece


def _delete(rng: random.Random, data: bytes, *_: Any) -> Edit:
    return *_span(rng, len(data)), b""


def _duplicate(rng: random.Random, data: bytes, *_: Any) -> Edit:
    start, end = _span(rng, len(data))
    return end, end, data[start:end] * rng.choice((1, 1, 1, 2, 20))


def _move(rng: random.Random, data: bytes, *_: Any) -> Edit:
    start, middle = _span(rng, len(data))
    end = rng.randrange(middle, len(data) + 1)
    return start, end, data[middle:end] + data[start:middle]


def _truncate(rng: random.Random, data: bytes, *_: Any) -> Edit:
    return rng.randrange(len(data) + 1), len(data), b""


def _splice(rng: random.Random, data: bytes, others: Sequence[bytes], *_: Any) -> Edit:
    other = rng.choice(others)
    start, end = _span(rng, len(other), 256)
    return *_span(rng, len(data)), other[start:end]


def _fill(rng: random.Random, data: bytes, *_: Any) -> Edit:
    start, end = _span(rng, len(data))
    return start, end, bytes((rng.choice((0, 0xFF, 0x80, 0x20)),)) * (end - start)


_BYTE_MUTATIONS: tuple[Callable[..., Edit], ...] = (
    *(_flip_bit, _flip_bit, _set_byte, _set_byte, _overwrite, _overwrite, _insert, _delete, _duplicate, _move),
    *(_truncate, _splice, _fill),
)

# Trees of dicts, lists and plain values. They are never changed in place.

TEXTS = ("", "x", "0", "$", "$array", "/etc/passwd", "../../etc/passwd", "http://127.0.0.1:9/x", "file:///etc/passwd")
TEXTS += ("reference::http://127.0.0.1:9/x", "{0.__class__}", "%s%s%n", "os.system", "ValueError", "KeyboardInterrupt")
TEXTS += ("SystemExit", "DataLossError", "a" * 1000, "\0", "\ud800", "saved_shard", "elements")


def _leaf(rng: random.Random) -> Any:
    return rng.choice(_LEAVES)(rng)


def _array(rng: random.Random) -> Any:
    dtype = rng.choice(("i8", "u1", "i4", "u8", "f4", "?", "S3", "U2", "M8[s]"))
    shape = rng.choice(((), (0,), (1,), (3,), (2, 3), (0, 5), (3, 0)))
    numbers = [rng.choice((0, 1, 2, 5, 127)) for _ in range(math.prod(shape))]
    return np.array(numbers, dtype if dtype[0] != "M" else "i8").reshape(shape).astype(dtype)


_LEAVES: tuple[Callable[[random.Random], Any], ...] = (
    *(lambda rng: rng.choice(INTEGERS) * rng.choice((1, 1, -1)),) * 2,
    *(lambda rng: rng.randrange(-3, 40),) * 2,
    lambda rng: 1 << rng.choice((10, 100, 1000, 20_000)),  # Python refuses to print the digits of the last one
    lambda rng: rng.choice((0.0, -1.5, 1e300, math.nan, math.inf)),
    lambda rng: rng.choice((None, True, False)),
    lambda rng: rng.choice(TEXTS),
    lambda rng: rng.choice(TEXTS).encode(errors="replace"),
    lambda rng: rng.choice(([], {}, [[]], [0], [None], {"": 0}, (), ([0],))),
    lambda rng: [rng.randrange(5)] * rng.choice((2, 3, 100)),
    _array,
)


def mutated_tree(rng: random.Random, tree: Any, others: Sequence[Any]) -> Any:
    """Apply a few mutations to ``tree``; parts may be taken from the trees ``others``."""
    for _ in range(min(1 + int(rng.expovariate(0.9)), MUTATIONS_MAX)):
        tree = _mutate_at(rng, tree, others)
    return tree


def _mutate_at(rng: random.Random, tree: Any, others: Sequence[Any]) -> Any:
    """Apply one mutation to the tree or a subtree."""
    if isinstance(tree, dict) and tree and rng.random() < 0.93:
        key = rng.choice(list(tree))
        return {**tree, key: _mutate_at(rng, tree[key], others)}
    if isinstance(tree, list | tuple) and tree and rng.random() < 0.8:
        at = rng.randrange(len(tree))
        return type(tree)([*tree[:at], _mutate_at(rng, tree[at], others), *tree[at + 1 :]])
    return _changed(rng, tree, others)


def _changed(rng: random.Random, tree: Any, others: Sequence[Any]) -> Any:
    roll = rng.random()
    if roll < 0.15:
        return _part(rng, rng.choice(others))
    if roll < 0.25:
        return _leaf(rng)
    for kind, change in _CHANGES.items():
        if isinstance(tree, kind) and (roll < 0.8 or issubclass(kind, dict | list | tuple)):
            return change(rng, tree)
    return _leaf(rng)


def _changed_dict(rng: random.Random, tree: dict[Any, Any]) -> dict[Any, Any]:
    if not tree or rng.random() < 0.2:
        return {**tree, rng.choice((*TEXTS, "offset", "record", "error", "packed", "of")): _leaf(rng)}
    gone = rng.choice(list(tree))
    return {key: value for key, value in tree.items() if key != gone}


def _changed_list(rng: random.Random, tree: Any) -> Any:
    items, roll = list(tree), rng.random()
    if items and roll < 0.5:
        del items[rng.randrange(len(items))]
    elif items and roll < 0.7:
        items *= rng.choice((2, 3, 50))
    else:
        items.insert(rng.randrange(len(items) + 1), _leaf(rng))
    return type(tree)(items)


def _part(rng: random.Random, tree: Any) -> Any:
    """Draw a subtree."""
    while isinstance(tree, dict | list | tuple) and tree and rng.random() < 0.8:
        tree = rng.choice(list(tree.values()) if isinstance(tree, dict) else list(tree))
    return tree


def _mutated_text(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return rng.choice((text[:at], text[at:], text + "x", text[:at] + rng.choice("\0.{%9") + text[at + 1 :]))


def _mutated_array(rng: random.Random, array: Any) -> Any:
    flat = array.reshape(-1).copy()
    match rng.randrange(5):
        case 0 if flat.size and flat.dtype.kind in "iuf":
            numbers = [rng.choice(INTEGERS), rng.randrange(40)]
            flat[rng.randrange(flat.size)] = np.array(rng.choice(numbers) % (1 << 63)).astype(flat.dtype)
            return flat.reshape(array.shape)
        case 1:
            return flat[: rng.randrange(flat.size + 1)]
        case 2:
            return np.concatenate([flat, flat])
        case 3:
            return flat.astype(rng.choice(("i4", "u1", "f8", "S4"))) if flat.dtype.kind in "iuf" else flat[::-1].copy()
        case _:
            return flat[rng.sample(range(flat.size), flat.size)] if flat.size else flat[None]


_CHANGES: dict[type[Any], Callable[[random.Random, Any], Any]] = {
    dict: _changed_dict,
    list: _changed_list,
    tuple: _changed_list,
    bool: lambda rng, value: not value,
    int: lambda rng, value: value + rng.choice((-2, -1, 1, 2, 100)),
    str: _mutated_text,
    bytes: lambda rng, value: mutated(rng, value, [value]),
    np.ndarray: _mutated_array,
}

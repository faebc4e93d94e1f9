"""Node of split by key: a filter that keeps the elements whose key belongs to one part."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.ops.element_keys import OBJECTS, keys_of
from dataset.ops.filter import Filter
from dataset.plan.origin import function_name
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.normalization import chunk_of_rows

_SCALE = 2.0**-64


class KeyIsInPart:
    """Predicate: whether the key of an element belongs to a part. It depends only on the key and the seed.

    Args:
        function: the user's function, which returns the key of an element.
        seed: the seed.
        start: the hash, from 0 to 1, from which on a key belongs to the part.
        end: the hash from which on it belongs to later parts.
    """

    def __init__(self, function: Callable[..., Any], seed: int, start: float, end: float) -> None:
        self.function = function
        self.start = start
        self.end = end
        self._seed = (seed % 2**64).to_bytes(8, "little")

    def __call__(self, *element: Any) -> bool:
        key = key_bytes(self.function(*element))
        found = hashlib.blake2b(key, digest_size=8, key=self._seed).digest()
        return self.start <= int.from_bytes(found, "little") * _SCALE < self.end


def key_bytes(key: Any) -> bytes:
    """Return bytes that are the same for equal keys, on every machine and in every version of Python.

    Integers are equal if their values are, text and the bytes of its UTF-8 form are equal, and a tuple is compared by
    its components.

    Raises:
        SpecError: if the key is an object that is not made of numbers and text.
    """
    kind, (value,) = keys_of(chunk_of_rows([key], structure_of(key)))
    if kind == OBJECTS:
        raise SpecError(f"split(): a key must be made of numbers and text, got {key!r:.200}")
    if isinstance(value, bytes):
        return value
    return b"%s%d" % (b"" if kind.lstrip("<>|=")[0] in "iu" else kind.encode(), value)


@dataclass(frozen=True, eq=False)
class SplitByKey(Filter):
    """Node that passes on the elements whose keys belong to one part; ``predicate`` is a KeyIsInPart."""

    op: ClassVar[str] = "split"
    number: int = 0
    count: int = 1

    def label(self) -> str:
        assert isinstance(self.predicate, KeyIsInPart)
        return f"{self.op}({self.number + 1} of {self.count} by {function_name(self.predicate.function)})"

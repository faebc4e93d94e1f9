"""Shard assignment of elements: round-robin, or by the user's ``shard_func``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dataset.ops.cache.caching import RefusedElementError
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.functions.kernels.vectorized import column_arguments, is_vectorized
from dataset.world.interrupts import call as call_user

ShardNumbers: TypeAlias = Callable[[Chunk, int], "Sequence[int]"]
"""Function that returns the shard numbers of a chunk's elements; also gets the number of elements before the chunk."""


def in_turn(count: int) -> ShardNumbers:
    """Return a function that assigns elements to ``count`` shards in turn."""

    def numbers(chunk: Chunk, before: int) -> Sequence[int]:
        return [number % count for number in range(before, before + chunk.length)]

    return numbers


def by_function(
    function: Callable[..., Any], op: str, with_location: Callable[[Exception, int], Exception]
) -> ShardNumbers:
    """Return a function that calls the user's ``shard_func``. ``with_location`` adds the element to its exceptions."""

    def numbers(chunk: Chunk, before: int) -> Sequence[int]:
        if is_vectorized(function):
            return _whole_numbers(call_user(function, *column_arguments(chunk)), chunk.length, op)
        found: list[int] = []
        for given in zip(*chunk.arguments(), strict=True):
            try:
                found.append(_whole_number(call_user(function, *given), op))
            except Exception as error:  # noqa: BLE001  # raised at the position of its element
                raise RefusedElementError(len(found), with_location(error, before + len(found))) from None
        return found

    return numbers


def _whole_number(value: Any, op: str) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{op}(): shard_func must return an int, got {value!r:.100} of type {type(value).__name__}")
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"{op}(): shard_func must return a 64-bit int, got {value}")
    return int(value)


def _whole_numbers(values: Any, length: int, op: str) -> Sequence[int]:
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype.kind not in "iu":
        raise RefusedElementError(
            0, TypeError(f"{op}(): a vectorized shard_func must return {length} ints, got {values!r:.100}")
        )
    return array.tolist()  # type: ignore[no-any-return]  # of ints

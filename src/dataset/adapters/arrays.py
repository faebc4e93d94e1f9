"""Arrays that a framework may keep: nobody else can write to them, and nobody sees the framework write.

JAX on CPUs, and TensorFlow, take the memory of a NumPy array as it is where it is aligned for them, whatever they are
told; and what JAX does copy, it copies after its call has returned. So an array that anybody else holds, a user's own
or one in a cache, is copied here first, into aligned memory, which then is taken as it is: one copy in any case. An
array that nobody else holds is handed over.

Who holds an array tells its reference count, as in ``runtime/chunks/ownership.py``. Where an interpreter does not count
references, everything is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
"""Bytes: what XLA and TensorFlow ask of memory that they take as it is."""


def private(components: list[Any]) -> list[Any]:
    """The components, with copies in the place of arrays that somebody else holds.

    Numbers, bytes and arrays of objects come out as they are: a framework copies them while it is called.

    Args:
        components: the one list that holds them, so that the reference counts are right.
    """
    return [_private(component) for component in components]


def _private(component: Any) -> Any:
    if type(component) is not np.ndarray or component.dtype.hasobject:
        return component
    handed_over = component.flags.writeable and component.dtype.isnative and _references(component) <= _LISTED
    return component if handed_over and _owns_its_memory(component) else aligned_copy(component)


def _owns_its_memory(array: Array) -> bool:
    """Whether its memory is its own, or that of an array which only it refers to, such as one that was reshaped."""
    owner = array.base
    if owner is None:
        return True
    return type(owner) is np.ndarray and owner.base is None and _references(owner) <= _OWNER


def aligned_copy(array: Array) -> Array:
    """A copy in rows, in the machine's byte order, that begins where frameworks take memory as it is."""
    dtype = array.dtype.newbyteorder("=")
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: Array = memory[start : start + array.nbytes].view(dtype).reshape(array.shape)
    copy[...] = array
    return copy


_references: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: sys.maxsize)


# The counts for arrays that nobody else holds, found by the very expressions above.


def _in_list(components: Iterable[Any]) -> list[int]:
    return [_in_call(component) for component in components]


def _in_call(component: Any) -> int:
    return _references(component)


def _of_owner() -> int:
    array = np.zeros(4).reshape(2, 2)
    owner = array.base
    return _references(owner)


def _measured(count: int) -> int:
    """Where references are not counted, nothing is ever taken for private."""
    return -1 if count == sys.maxsize else count


_LISTED = _measured(_in_list([np.zeros(1)])[0])
_OWNER = _measured(_of_owner())

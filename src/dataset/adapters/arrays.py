"""Private arrays: arrays that no other code holds, so that a framework may keep and overwrite them.

JAX on CPUs and TensorFlow share the memory of a suitably aligned NumPy array, even if they are asked to copy. If JAX
copies, it does so after its call has returned. An array with another holder, such as the user or a cache, is therefore
copied here first, into aligned memory that the framework then shares: one copy in either case. An array without another
holder is handed over without a copy.

The reference count of an array tells whether it has another holder, as in ``runtime/chunks/ownership.py``. If the
interpreter does not count references, every array is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dataset.amounts import ALIGNMENT

Array = np.ndarray[Any, Any]


def private(components: list[Any]) -> list[Any]:
    """Return the components, with copies of the arrays that other code holds.

    Numbers, bytes and arrays of objects are returned unchanged: a framework copies them during its call.

    Args:
        components: the components. No other list may hold them, or the reference counts would be too high.
    """
    return [_private(component) for component in components]


def _private(component: Any) -> Any:
    if type(component) is not np.ndarray or component.dtype.hasobject:
        return component
    handed_over = component.flags.writeable and _references(component) <= _LISTED
    return component if handed_over and _owns_its_memory(component) else aligned_copy(component)


def _owns_its_memory(array: Array) -> bool:
    """Return whether the array owns its memory, or is the only view of the owner, as after ``reshape``."""
    owner = array.base
    if owner is None:
        return True
    return type(owner) is np.ndarray and owner.base is None and _references(owner) <= _OWNER


def aligned_copy(array: Array) -> Array:
    """Return a C-contiguous copy whose memory is aligned to ``ALIGNMENT``."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


_references: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: sys.maxsize)


# The reference counts of arrays without another holder, measured with the same expressions as above.


def _in_list(components: Iterable[Any]) -> list[int]:
    return [_in_call(component) for component in components]


def _in_call(component: Any) -> int:
    return _references(component)


def _of_owner() -> int:
    array = np.zeros(4).reshape(2, 2)
    owner = array.base
    return _references(owner)


def _measured(count: int) -> int:
    """Return the count, or -1 if references are not counted: then no array is ever considered private."""
    return -1 if count == sys.maxsize else count


_LISTED = _measured(_in_list([np.zeros(1)])[0])
_OWNER = _measured(_of_owner())

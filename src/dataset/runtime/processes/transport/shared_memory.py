"""Anonymous shared memory between two processes.

A segment of memory is a descriptor that is sent from one process to the other through a socket. It has no name in
/dev/shm that a crash could leak: the memory is freed when both sides have released it.

This module calls the system's ``mmap`` directly, because the standard library's cannot change a mapping in place, which
is needed before a fork.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.world import mmap
from dataset.world.interrupts import deferring

Bytes: TypeAlias = npt.NDArray[np.uint8]

_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # Linux: populate all pages at once, without a page fault for each
_FIXED = 0x10  # MAP_FIXED, which the mmap module does not define; the same on Linux and macOS
_FAILED = ctypes.c_void_p(-1).value


def allocate(size: int) -> int:
    """Return the descriptor of ``size`` zeroed bytes of new memory, or of an unlinked file if memfd is missing."""
    if hasattr(os, "memfd_create"):
        descriptor: int = os.memfd_create("dataset", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Mapping:
    """Mapping of a descriptor's memory into this process. The descriptor may be closed afterwards.

    ``np.asarray`` returns it as an array of bytes. It is unmapped when the last array over it is dropped.

    Args:
        descriptor: the memory.
        size: its size in bytes.
        private: whether writes of this process are visible only to itself.
        separable: whether ``make_private`` may be called; the mapping then keeps a descriptor while it lives.
    """

    def __init__(self, descriptor: int, size: int, *, private: bool = False, separable: bool = False) -> None:
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED | _POPULATE
        self._address: int | None = None
        self._descriptor: int | None = None
        # Stored here, because at interpreter exit module globals are cleared first.
        self._unmap, self._close = _libc().munmap, os.close
        self._address = _map(None, size, flags, descriptor)
        self.size = size
        if separable:
            self._descriptor = os.dup(descriptor)
        self.__array_interface__ = {
            "data": (self._address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    def make_private(self) -> None:
        """Make later writes of this process, and of its forks, visible only to the writing process.

        The same pages are mapped at the same address in one step, so threads may read and write meanwhile. Afterwards,
        no other process may write to the pages, because the writes would be visible here.
        """
        if self._descriptor is not None:
            _map(self._address, self.size, mmap.MAP_PRIVATE | _FIXED, self._descriptor)
            self._close(self._descriptor)
            self._descriptor = None

    @deferring
    def __del__(self) -> None:
        if self._address is not None:
            self._unmap(self._address, self.size)
        if self._descriptor is not None:
            self._close(self._descriptor)


def _map(address: int | None, size: int, flags: int, descriptor: int) -> int:
    result: int = _libc().mmap(address, size, _READ_WRITE, flags, descriptor, 0)
    if result == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot map {size:,} bytes of memory: {os.strerror(number)}")
    return result


@functools.cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


class StartedCount:
    """Count of the elements of its task that a worker has started, which the parent can read after its death."""

    SIZE = mmap.PAGESIZE

    def __init__(self, descriptor: int) -> None:
        self._numbers = np.asarray(Mapping(descriptor, self.SIZE)).view(np.int64)

    def close(self) -> None:
        """Release the memory."""
        self._numbers = np.array([self.value])

    def reset(self) -> None:
        """Reset the count before a task is sent."""
        self._numbers[0] = 0

    def incrementer(self) -> Callable[[], None]:
        """Return a function that counts one element."""
        numbers = self._numbers.data

        def started() -> None:
            numbers[0] += 1

        return started

    @property
    def value(self) -> int:
        """The count."""
        return int(self._numbers[0])

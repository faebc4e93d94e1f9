"""Memory without a name that two processes share.

A segment of memory is a descriptor that goes from one process to the other through a socket. There is no name in
/dev/shm that a crash could leave behind: the memory is gone when both sides have let go of it.

The system's own ``mmap`` is called here, and not the standard library's: that one cannot change a mapping in place,
which a fork takes.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.runtime.resources.interrupts import deferring

Bytes: TypeAlias = npt.NDArray[np.uint8]

_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # Linux: all pages at once, instead of a fault for each
_FIXED = 0x10  # MAP_FIXED, which the mmap module does not name; Linux and macOS agree on it
_FAILED = ctypes.c_void_p(-1).value


def allocate(size: int) -> int:
    """The descriptor of ``size`` bytes of new memory, all zero; a temporary file without a name where there is none."""
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
    """Where this process sees the memory of a descriptor, which may be closed as soon as this is made.

    ``np.asarray`` gives it as an array of bytes; it is unmapped when no array shows it any more.

    Args:
        descriptor: the memory.
        size: its size in bytes.
        private: whether what this process writes is for its own eyes.
        separable: whether ``make_private`` may be called; that takes a descriptor for as long as the mapping lives.
    """

    def __init__(self, descriptor: int, size: int, *, private: bool = False, separable: bool = False) -> None:
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED | _POPULATE
        self._address: int | None = None
        self._descriptor: int | None = None
        # Kept, because at interpreter exit module globals go first.
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
        """From now on, what this process writes is for its own eyes, and what a fork of it writes for that one's.

        The same pages are mapped at the same address, in one step, so threads may read and write meanwhile. No other
        process may write to them any more, which would be seen here.
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
    """How many elements of its task a worker has started, where the parent can still read it after its death."""

    SIZE = mmap.PAGESIZE

    def __init__(self, descriptor: int) -> None:
        self._numbers = np.asarray(Mapping(descriptor, self.SIZE)).view(np.int64)

    def close(self) -> None:
        """Let go of the memory."""
        self._numbers = np.array([self.value])

    def reset(self) -> None:
        """Before a task is sent."""
        self._numbers[0] = 0

    def incrementer(self) -> Callable[[], None]:
        """A function that counts one element."""
        numbers = self._numbers.data

        def started() -> None:
            numbers[0] += 1

        return started

    @property
    def value(self) -> int:
        """The count."""
        return int(self._numbers[0])

"""Disks in memory that one process mounts, and that it and its children alone see. It takes root, or a fake of it."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 0x40000  # from Linux's headers


@functools.cache
def can_mount() -> bool:
    """Whether this process may; from here on its mounts are its own."""
    system = ctypes.CDLL(None)
    return not system.unshare(_CLONE_NEWNS) and not system.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def mount(folder: str | Path, size: int) -> bool:
    """Mount an empty disk of so many bytes; False where that fails."""
    return not ctypes.CDLL(None).mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=%d" % size)


def unmount(folder: str | Path) -> None:
    """Take it away, with what is on it."""
    assert not ctypes.CDLL(None).umount(os.fsencode(folder))

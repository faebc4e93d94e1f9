"""In-memory disks that only the process that mounts them and its children see. They require root, real or emulated."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 0x40000  # from Linux's headers


@functools.cache
def can_mount() -> bool:
    """Return whether this process may mount disks; if so, its mounts are private from now on."""
    system = ctypes.CDLL(None)
    return not system.unshare(_CLONE_NEWNS) and not system.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def mount(folder: str | Path, size: int) -> bool:
    """Mount an empty disk of this many bytes; return False if this fails."""
    return not ctypes.CDLL(None).mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=%d" % size)


def unmount(folder: str | Path) -> None:
    """Unmount the disk and discard its content."""
    assert not ctypes.CDLL(None).umount(os.fsencode(folder))

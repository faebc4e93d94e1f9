"""Reading what the control groups of this process say, on Linux: its own and those around it.

There are two kinds, and a system may have both at once. In version 2 all controllers share one tree of groups; in
version 1 each has a tree of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def group_readings(
    controller: str, read_v2: Callable[[Path], T], read_v1: Callable[[Path], T], own: Path, root: Path
) -> list[T]:
    """What the group of this process and each one around it say.

    Args:
        controller: version 1's name of it.
        read_v2: reads from the folder of a group; OSError, ValueError and ZeroDivisionError mean that it says nothing.
        read_v1: the same for version 1.
        own: the file that says which the groups of the process are.
        root: where the trees are mounted.
    """
    readings: list[T] = []
    with contextlib.suppress(OSError):  # no control groups, or no Linux
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                readings += _readings(root, path, read_v2)
            elif controller in controllers.split(","):
                readings += _readings(root / controller, path, read_v1)
    return readings


def _readings(root: Path, path: str, read: Callable[[Path], T]) -> list[T]:
    """In a container the path may lie outside of the mount."""
    group = root / path.lstrip("/")
    found = []
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            found.append(read(folder))
        if folder == root:
            break
    return found

"""Control groups: reads the limits of this process's groups and their ancestors, on Linux.

There are two versions, and a system may use both at once. In version 2 all controllers share one tree of groups; in
version 1 each has its own tree.
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
    """Return the readings of the process's group and each of its ancestors.

    Args:
        controller: the version 1 name of the controller.
        read_v2: reads from the folder of a group; OSError, ValueError and ZeroDivisionError mean no limit.
        read_v1: the same for version 1.
        own: the file that lists the groups of the process.
        root: where the trees are mounted.
    """
    readings: list[T] = []
    with contextlib.suppress(OSError):  # no control groups, or not Linux
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                readings += _readings(root, path, read_v2)
            elif controller in controllers.split(","):
                readings += _readings(root / controller, path, read_v1)
    return readings


def _readings(root: Path, path: str, read: Callable[[Path], T]) -> list[T]:
    """Read a group and its ancestors. In a container, the path may lie outside of the mount."""
    group = root / path.lstrip("/")
    found = []
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            found.append(read(folder))
        if folder == root:
            break
    return found

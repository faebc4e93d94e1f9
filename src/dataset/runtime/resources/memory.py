"""Available memory: what the control group of this process and the machine leave to it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from pathlib import Path

import numpy as np

from dataset.runtime.resources.cgroups import GROUPS, OWN_GROUPS, group_readings
from dataset.world import time

GUESSED_BYTES = 4 << 30
"""Used if the system does not report its memory: what a small present-day machine leaves to one program."""

_NO_LIMIT = 1 << 60
"""Version 1 of control groups reports this value, or more, for groups without a limit."""

_MACHINE = Path("/proc/meminfo")


def available_memory() -> int:
    """Return how many bytes this process may still allocate before memory is swapped out or the process is killed.

    This is the minimum of what the machine has available and what the control groups of the process leave (containers).
    Cached file pages that were not used recently count as available. If the system reports neither, the result is the
    size of its physical memory, or GUESSED_BYTES if that is unknown, too.
    """
    machine = _machine_memory(_MACHINE)
    return max(0, min(group_memory(), _physical_memory() if machine is None else machine))


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 if the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # not Linux
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def default_budget() -> int:
    """Return half of the available memory: the other half is for what users do with the elements.

    Computed at most once per second, because it reads files and short iterations may follow each other.
    """
    return _budget_in_second(int(time.monotonic()))


@functools.lru_cache(maxsize=1)
def _budget_in_second(second: int) -> int:  # noqa: ARG001  # the cache key
    return available_memory() // 2


_KEPT_BYTES = 8 << 20
"""Arrays up to this size are worth keeping in the process; larger ones are used for longer."""


@functools.cache
def keep_freed_memory() -> None:
    """Let the allocator keep the memory of freed arrays, instead of having the system clear it again for each batch.

    The allocator of glibc obtains arrays above a threshold from the system, and returns free memory at the end of a
    heap above twice this threshold. It raises the threshold to the size of the largest such array that was freed
    (mallopt(3), M_MMAP_THRESHOLD). So one array is allocated and freed here. It is never written to, so it occupies no
    memory. If the user has set a threshold, the allocator keeps that one.
    """
    with contextlib.suppress(MemoryError):
        np.empty(_KEPT_BYTES, np.uint8)


def group_memory(own: Path = OWN_GROUPS, root: Path = GROUPS) -> int:
    """Return what the process's control group and its ancestors leave; ``sys.maxsize`` if they have no limit."""
    return min(group_readings("memory", _read_v2, _read_v1, own, root), default=sys.maxsize)


def _read_v2(folder: Path) -> int:
    """Read what a version 2 group leaves. A limit of ``max`` raises ValueError."""
    limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
    return limit - used + _field(folder / "memory.stat", "inactive_file")


def _read_v1(folder: Path) -> int:
    """Read what a version 1 group leaves. The totals include child groups, as the usage does."""
    limit = _number(folder / "memory.limit_in_bytes")
    if limit >= _NO_LIMIT:
        raise ValueError("no limit")  # skips the other files, which are slow to read
    return limit - _number(folder / "memory.usage_in_bytes") + _field(folder / "memory.stat", "total_inactive_file")


def _number(path: Path) -> int:
    return int(path.read_text())


def _field(path: Path, name: str) -> int:
    """Return the number with this name in a file with a name and a number per line; 0 if there is none."""
    found = re.search(rf"^{name}:?\s+(\d+)", path.read_text(), re.MULTILINE)
    return 0 if found is None else int(found[1])


def _machine_memory(path: Path) -> int | None:
    """Return the memory that Linux considers available without swapping; None if not reported."""
    with contextlib.suppress(OSError, ValueError):
        return _field(path, "MemAvailable") * 1024 or None
    return None


def _physical_memory() -> int:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # missing on Windows
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return GUESSED_BYTES

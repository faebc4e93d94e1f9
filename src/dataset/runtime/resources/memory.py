"""How much memory this process may still take: what its control group leaves, and the machine has."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import time
from pathlib import Path

from dataset.runtime.resources.cgroups import GROUPS, OWN_GROUPS, group_readings

GUESSED_BYTES = 4 << 30
"""Where the system does not tell: what a small machine of today leaves to one program."""

_NO_LIMIT = 1 << 60
"""What version 1 of control groups says where there is none, or more."""

_MACHINE = Path("/proc/meminfo")


def available_memory() -> int:
    """The bytes that this process may still take before something is swapped out, or killed.

    The least of what its control group and those around it leave (containers) and what the machine has available. Files
    that were read and are kept in memory count as available where they have not been used lately. A system that tells
    neither is asked for its physical memory, and else GUESSED_BYTES stand for it.
    """
    machine = _machine_memory(_MACHINE)
    return max(0, min(_group_memory(OWN_GROUPS, GROUPS), _physical_memory() if machine is None else machine))


def default_budget() -> int:
    """Half of the available memory: the other half is for what users do with the elements.

    Looked up at most once in a second, for that takes reading some files, and short iterations may follow each other.
    """
    return _budget_in_second(int(time.monotonic()))


@functools.lru_cache(maxsize=1)
def _budget_in_second(second: int) -> int:  # noqa: ARG001  # the key
    return available_memory() // 2


def _group_memory(own: Path, root: Path) -> int:
    """What the control group of this process and those around it leave."""
    return min(group_readings("memory", _read_v2, _read_v1, own, root), default=sys.maxsize)


def _read_v2(folder: Path) -> int:
    """A limit of ``max`` is no number."""
    limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
    return limit - used + _field(folder / "memory.stat", "inactive_file")


def _read_v1(folder: Path) -> int:
    """The totals include the groups inside, as the usage does."""
    limit = _number(folder / "memory.limit_in_bytes")
    if limit >= _NO_LIMIT:
        raise ValueError("no limit")  # the rest need not be read, which takes the kernel some time
    return limit - _number(folder / "memory.usage_in_bytes") + _field(folder / "memory.stat", "total_inactive_file")


def _number(path: Path) -> int:
    return int(path.read_text())


def _field(path: Path, name: str) -> int:
    """A number of a file of lines of a name and a number each; 0 where it has none of this name."""
    found = re.search(rf"^{name}:?\s+(\d+)", path.read_text(), re.MULTILINE)
    return 0 if found is None else int(found[1])


def _machine_memory(path: Path) -> int | None:
    """What Linux holds to be available without swapping; None where it does not tell."""
    with contextlib.suppress(OSError, ValueError):
        return _field(path, "MemAvailable") * 1024 or None
    return None


def _physical_memory() -> int:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # Windows has none of it
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return GUESSED_BYTES

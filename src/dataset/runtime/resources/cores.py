"""Usable cores: the cores of the machine, limited by the CPU affinity and the control group of this process."""

from __future__ import annotations

import math
import os
from pathlib import Path

from dataset.runtime.resources.cgroups import GROUPS, OWN_GROUPS, group_readings


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    This is the size of its affinity mask (``taskset``, batch systems), or less if a control group limits its CPU time
    (containers): a quota of 2.5 cores counts as 3.
    """
    has_affinity = hasattr(os, "sched_getaffinity")  # missing on macOS and Windows
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    quota = _cgroup_quota(OWN_GROUPS, GROUPS)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _cgroup_quota(own: Path, root: Path) -> float | None:
    """Return the smallest quota, in cores, of the process's control group and its ancestors; None if unlimited."""
    return min(group_readings("cpu", _read_v2, _read_v1, own, root), default=None)


def _read_v2(folder: Path) -> float:
    """Read ``cpu.max``: the quota and the period in microseconds. A quota of ``max`` raises ValueError."""
    quota, period = (folder / "cpu.max").read_text().split()
    return int(quota) / int(period)


def _read_v1(folder: Path) -> float:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    if quota <= 0:
        raise ValueError("no quota")
    return quota / int((folder / "cpu.cfs_period_us").read_text())

"""Tests of the number of cores that this process may use."""

import os

import pytest

from dataset.runtime.resources import cores
from dataset.runtime.resources.cores import usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity masks")
def test_an_affinity_mask_counts():
    before = os.sched_getaffinity(0)
    assert 1 <= usable_cores() <= os.cpu_count()
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("quota", "count"), [(0.2, 1), (2.5, 3), (99.0, 8)])
def test_a_quota_counts_rounded_up(monkeypatch, quota, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "_cgroup_quota", lambda *_: quota)
    assert usable_cores() == count


SMALLEST = {"cpu.max": "max 100000", "a/cpu.max": "150000 100000", "a/b/cpu.max": "400000 100000"}
OLDER = {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "25000", "cpu/cpu.cfs_quota_us": "-1"}


@pytest.mark.parametrize(
    ("files", "own", "quota"),
    [
        (SMALLEST, "0::/a/b\n", 1.5),
        (OLDER, "4:cpu,cpuacct:/a\n3:memory:/a\n", 2.0),
        ({}, "0::/a\n", None),
        ({"a/cpu.max": "max 100000"}, "0::/a\n", None),
        ({"a/cpu.max": "what is this"}, "0::/a\n", None),
        ({"a/cpu.max": "5 0"}, "0::/a\n", None),
        ({"a/cpu.max": ""}, "0::/../../elsewhere\n", None),
        ({}, None, None),
    ],
)
def test_the_smallest_quota_of_the_groups_counts_and_what_cannot_be_read_is_no_quota(tmp_path, files, own, quota):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if own is not None:
        (tmp_path / "own").write_text(own)
    assert cores._cgroup_quota(tmp_path / "own", tmp_path / "cgroup") == quota

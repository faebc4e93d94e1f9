"""Tests of the number of cores that this process may use."""

import os

import pytest

from dataset.runtime.resources import cores
from dataset.runtime.resources.cores import usable_cores


def group(tmp_path, files, own):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "own").write_text(own)
    return cores._cgroup_quota(tmp_path / "own", tmp_path / "cgroup")


def test_at_least_one_and_no_more_than_there_are():
    assert 1 <= usable_cores() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity masks")
def test_an_affinity_mask_counts():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_a_quota_counts_rounded_up(monkeypatch):
    monkeypatch.setattr(cores, "_cgroup_quota", lambda *_: 0.2)
    assert usable_cores() == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "_cgroup_quota", lambda *_: 2.5)
    assert usable_cores() == 3
    monkeypatch.setattr(cores, "_cgroup_quota", lambda *_: 99.0)
    assert usable_cores() == 8


def test_the_smallest_quota_of_the_groups_around_it_is_the_one(tmp_path):
    files = {"cpu.max": "max 100000", "a/cpu.max": "150000 100000", "a/b/cpu.max": "400000 100000"}
    assert group(tmp_path, files, "0::/a/b\n") == 1.5


def test_the_older_kind_of_groups(tmp_path):
    files = {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "25000", "cpu/cpu.cfs_quota_us": "-1"}
    assert group(tmp_path, files, "4:cpu,cpuacct:/a\n3:memory:/a\n") == 2.0


@pytest.mark.parametrize(
    ("files", "own"),
    [
        ({}, "0::/a\n"),
        ({"a/cpu.max": "max 100000"}, "0::/a\n"),
        ({"a/cpu.max": "what is this"}, "0::/a\n"),
        ({"a/cpu.max": "5 0"}, "0::/a\n"),
        ({"a/cpu.max": ""}, "0::/../../elsewhere\n"),
    ],
)
def test_what_cannot_be_read_is_no_quota(tmp_path, files, own):
    assert group(tmp_path, files, own) is None


def test_no_such_files(tmp_path):
    assert cores._cgroup_quota(tmp_path / "none", tmp_path) is None

"""Tests of the amount of memory that is available to this process."""

import os
import sys

import pytest

from dataset.runtime.resources import memory
from dataset.runtime.resources.memory import GUESSED_BYTES, available_memory, default_budget


def v2(folder, limit, used, inactive):
    return {
        f"{folder}memory.max": f"{limit}\n",
        f"{folder}memory.current": f"{used}\n",
        f"{folder}memory.stat": f"anon 5\nfile 900\ninactive_anon 7\ninactive_file {inactive}\n",
    }


def v1(folder, limit, used, inactive):
    return {
        f"memory/{folder}memory.limit_in_bytes": f"{limit}\n",
        f"memory/{folder}memory.usage_in_bytes": f"{used}\n",
        f"memory/{folder}memory.stat": f"cache 5\ninactive_file 1\ntotal_inactive_file {inactive}\n",
    }


def test_half_of_the_available_memory_is_the_budget_and_it_is_computed_once_in_a_second(monkeypatch):
    assert available_memory() > 0
    now, calls = [5.0], []
    memory._budget_in_second.cache_clear()
    monkeypatch.setattr(memory.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(memory, "available_memory", lambda: calls.append(now[0]) or 1001)
    for now[0] in (5.0, 5.9, 6.1):
        assert default_budget() == 500
    assert calls == [5.0, 6.1]
    memory._budget_in_second.cache_clear()


@pytest.mark.parametrize(
    ("files", "own", "bytes_left"),
    [
        (v2("a/", 1000, 900, 300), "0::/a\n", 400),  # cached files count as available
        (v2("", "max", 10, 0) | v2("a/", 1000, 900, 0) | v2("a/b/", 500, 100, 0), "0::/a/b\n", 100),
        (
            v1("", 9223372036854771712, 10, 0) | v1("a/", 2000, 1500, 250),
            "4:cpu,cpuacct:/a\n3:memory:/a\n0::/\n",
            750,
        ),
        (v2("", 1000, 400, 0), "0::/../../elsewhere\n", 600),  # a container's group, seen from outside
        ({}, "0::/a\n", sys.maxsize),
        (v2("a/", "max", 5, 1), "0::/a\n", sys.maxsize),
        ({"a/memory.max": "1000"}, "0::/a\n", sys.maxsize),
        ({"a/memory.max": "?", "a/memory.current": "5", "a/memory.stat": ""}, "0::/a\n", sys.maxsize),
        ({}, None, sys.maxsize),
    ],
)
def test_the_group_that_leaves_least_counts_and_what_cannot_be_read_is_no_limit(tmp_path, files, own, bytes_left):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if own is not None:
        (tmp_path / "own").write_text(own)
    assert memory.group_memory(tmp_path / "own", tmp_path / "cgroup") == bytes_left


@pytest.mark.parametrize(
    ("group", "machine", "expected"),
    [(300, 200, 200), (300, 400, 300), (-5, 400, 0), (sys.maxsize, None, 4096_000)],
)
def test_the_machine_counts_as_well_as_the_group_and_without_both_the_physical_memory(
    monkeypatch, group, machine, expected
):
    monkeypatch.setattr(memory, "group_memory", lambda *_: group)
    monkeypatch.setattr(memory, "_machine_memory", lambda _: machine)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert available_memory() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MemTotal:       25276512 kB\nMemFree:        10 kB\nMemAvailable:   20 kB\n", 20 * 1024),
        ("", None),
        ("MemTotal: 5 kB\n", None),
        ("MemAvailable: some\n", None),
    ],
)
def test_what_the_machine_has_available_is_in_kilobytes_and_may_be_unknown(tmp_path, text, expected):
    path = tmp_path / "meminfo"
    assert memory._machine_memory(path) is None
    path.write_text(text)
    assert memory._machine_memory(path) == expected


@pytest.mark.parametrize("error", [AttributeError, OSError, ValueError])
def test_where_nothing_tells_it_is_guessed(monkeypatch, error):
    def sysconf(_):
        raise error

    monkeypatch.setattr(memory, "group_memory", lambda *_: sys.maxsize)
    monkeypatch.setattr(memory, "_machine_memory", lambda _: None)
    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert available_memory() == GUESSED_BYTES

"""Tests of the amount of memory that is available to this process."""

import os
import sys

import pytest

from dataset.runtime.resources import memory
from dataset.runtime.resources.memory import GUESSED_BYTES, available_memory, default_budget


def group(tmp_path, files, own):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "own").write_text(own)
    return memory._group_memory(tmp_path / "own", tmp_path / "cgroup")


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


def test_there_is_some_and_half_of_it_is_the_budget(monkeypatch):
    assert available_memory() > 0
    memory._budget_in_second.cache_clear()
    monkeypatch.setattr(memory, "available_memory", lambda: 1001)
    assert default_budget() == 500


def test_the_budget_is_looked_up_once_in_a_second(monkeypatch):
    now, calls = [5.0], []
    memory._budget_in_second.cache_clear()
    monkeypatch.setattr(memory.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(memory, "available_memory", lambda: calls.append(now[0]) or 1000)
    default_budget()
    now[0] = 5.9
    default_budget()
    now[0] = 6.1
    default_budget()
    assert calls == [5.0, 6.1]
    memory._budget_in_second.cache_clear()


def test_files_that_are_only_kept_in_memory_count_as_available(tmp_path):
    assert group(tmp_path, v2("a/", 1000, 900, 300), "0::/a\n") == 400


def test_the_group_that_leaves_least_is_the_one(tmp_path):
    files = v2("", "max", 10, 0) | v2("a/", 1000, 900, 0) | v2("a/b/", 500, 100, 0)
    assert group(tmp_path, files, "0::/a/b\n") == 100


def test_the_older_kind_of_groups(tmp_path):
    files = v1("", 9223372036854771712, 10, 0) | v1("a/", 2000, 1500, 250)
    assert group(tmp_path, files, "4:cpu,cpuacct:/a\n3:memory:/a\n0::/\n") == 750


def test_in_a_container_the_group_may_be_seen_from_outside(tmp_path):
    assert group(tmp_path, v2("", 1000, 400, 0), "0::/../../elsewhere\n") == 600


@pytest.mark.parametrize(
    ("files", "own"),
    [
        ({}, "0::/a\n"),
        (v2("a/", "max", 5, 1), "0::/a\n"),
        ({"a/memory.max": "1000"}, "0::/a\n"),
        ({"a/memory.max": "what is this", "a/memory.current": "5", "a/memory.stat": ""}, "0::/a\n"),
    ],
)
def test_what_cannot_be_read_is_no_limit(tmp_path, files, own):
    assert group(tmp_path, files, own) == sys.maxsize


def test_no_such_files(tmp_path):
    assert memory._group_memory(tmp_path / "none", tmp_path) == sys.maxsize


def test_the_machine_counts_as_well_as_the_group(monkeypatch):
    monkeypatch.setattr(memory, "_group_memory", lambda *_: 300)
    monkeypatch.setattr(memory, "_machine_memory", lambda _: 200)
    assert available_memory() == 200
    monkeypatch.setattr(memory, "_machine_memory", lambda _: 400)
    assert available_memory() == 300
    monkeypatch.setattr(memory, "_group_memory", lambda *_: -5)
    assert available_memory() == 0


def test_what_the_machine_has_available_is_in_kilobytes(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:       25276512 kB\nMemFree:        10 kB\nMemAvailable:   20 kB\n")
    assert memory._machine_memory(path) == 20 * 1024


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemAvailable: some\n", "\n\n"])
def test_a_machine_that_does_not_tell(tmp_path, text):
    path = tmp_path / "meminfo"
    path.write_text(text)
    assert memory._machine_memory(path) is None
    assert memory._machine_memory(tmp_path / "none") is None


def test_without_such_files_it_is_the_physical_memory(monkeypatch):
    monkeypatch.setattr(memory, "_group_memory", lambda *_: sys.maxsize)
    monkeypatch.setattr(memory, "_machine_memory", lambda _: None)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert available_memory() == 4096_000


@pytest.mark.parametrize("error", [AttributeError, OSError, ValueError])
def test_where_nothing_tells_it_is_guessed(monkeypatch, error):
    def sysconf(_):
        raise error

    monkeypatch.setattr(memory, "_group_memory", lambda *_: sys.maxsize)
    monkeypatch.setattr(memory, "_machine_memory", lambda _: None)
    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert available_memory() == GUESSED_BYTES

"""Tests of list_files with patterns that have a scheme."""

from __future__ import annotations

import re
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from dataset import BrokenConnectionError, Dataset
from dataset.io.files.remote import listing
from dataset.testing import check_operator

NAMES = ["b.txt", "a.txt", "a10.txt", "c.dat", ".hidden.txt", "a[1].txt", "ü.txt", "sub/x.txt"]


@pytest.fixture
def folder(memory):
    for name in NAMES:
        memory.pipe_file(f"/bucket/{name}", b"")
    return "memory://bucket"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a*.txt", ["a.txt", "a10.txt", "a[1].txt"]),
        ("[^a].txt", ["b.txt", "ü.txt"]),
        (r"a\[1\].txt", ["a[1].txt"]),
        ("?.txt", ["a.txt", "b.txt", "ü.txt"]),
        ("**/*.txt", ["a.txt", "a10.txt", "a[1].txt", "b.txt", "sub/x.txt", "ü.txt"]),
        ("a[1].txt", ["a[1].txt"]),
        ("a[1]?.txt", ["a10.txt"]),
        ("*/*.txt", ["sub/x.txt"]),
    ],
)
def test_gives_the_names_that_match_in_order_with_their_scheme(folder, memory, pattern, found):
    names = [f"{folder}/{name}".encode() for name in found]
    check_operator(lambda: Dataset.list_files(f"{folder}/{pattern}", shuffle=False), names, positions=1)
    memory.pipe_file("/bucket/a0.txt", b"")  # a file that came since the last call is found
    assert len(Dataset.list_files(f"{folder}/{pattern}")) == len(found) + (pattern in {"a*.txt", "**/*.txt"})


def test_local_and_remote_patterns_are_sorted_together(folder, tmp_path):
    (tmp_path / "z.txt").touch()
    patterns = [f"{folder}/b.txt", f"{tmp_path}/*.txt", f"{folder}/*.dat", f"{folder}/b*"]
    assert list(Dataset.list_files(patterns, shuffle=False)) == [
        f"{tmp_path}/z.txt".encode(),
        *(f"{folder}/{name}".encode() for name in ("b.txt", "b.txt", "c.dat")),
    ]


@pytest.mark.parametrize("pattern", ["memory://bucket/z*", "memory://none/*", "memory://bucket/none.txt"])
def test_no_match_is_an_error_that_names_the_pattern(folder, pattern):
    with pytest.raises(FileNotFoundError, match=re.escape(f"list_files(): no file matches '{pattern}'")):
        Dataset.list_files([pattern])


def test_names_are_written_as_the_pattern_is(folder, tmp_path):
    (tmp_path / "a.txt").touch()
    for place in ("memory:///bucket/b", "simplecache::memory://bucket/b", f"file://{tmp_path}/a"):
        assert list(Dataset.list_files(f"{place}*")) == [f"{place}.txt".encode()]


def test_the_links_of_a_page_are_listed(web):
    web.pages["/data/"] = web.pages["/data"] = '<a href="b.txt">b</a> <a href="a.txt">a</a> <a href="c.dat">c</a>'
    found = list(Dataset.list_files(f"{web.url}/data/*.txt", shuffle=False))
    assert found == [f"{web.url}/data/{name}.txt".encode() for name in "ab"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Dataset.list_files(f"{web.url}/none/*.txt")


def test_a_failure_that_passes_is_tried_again(monkeypatch, waits):
    glob = Mock(side_effect=[TimeoutError] * 4 + [["a"]] + [TimeoutError] * 5)
    system = SimpleNamespace(glob=glob, invalidate_cache=lambda: None)
    monkeypatch.setattr(listing, "filesystem_of", lambda path: (system, "a"))
    assert list(Dataset.list_files("memory://a")) == [b"memory://a"]
    assert len(waits) == 4
    with pytest.raises(BrokenConnectionError, match="memory://a: gave up after 5 tries"):
        Dataset.list_files("memory://a")

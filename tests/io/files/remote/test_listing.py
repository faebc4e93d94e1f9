"""Tests of list_files with patterns that have a scheme."""

from __future__ import annotations

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
        ("*hidden*", [".hidden.txt"]),
        ("s*", ["sub"]),
        ("*/*.txt", ["sub/x.txt"]),
        ("b.txt", ["b.txt"]),
    ],
)
def test_gives_the_names_that_match_in_order_with_their_scheme(folder, pattern, found):
    names = [f"{folder}/{name}".encode() for name in found]
    assert list(Dataset.list_files(f"{folder}/{pattern}", shuffle=False)) == names


def test_it_is_a_source_like_any_other(folder):
    check_operator(
        lambda: Dataset.list_files(f"{folder}/a*.txt", shuffle=False),
        [f"{folder}/{name}".encode() for name in ("a.txt", "a10.txt", "a[1].txt")],
    )


def test_local_and_remote_patterns_are_sorted_together(folder, tmp_path):
    (tmp_path / "z.txt").touch()
    patterns = [f"{folder}/b.txt", f"{tmp_path}/*.txt", f"{folder}/*.dat", f"{folder}/b*"]
    assert list(Dataset.list_files(patterns, shuffle=False)) == [
        f"{tmp_path}/z.txt".encode(),
        *(f"{folder}/{name}".encode() for name in ("b.txt", "b.txt", "c.dat")),
    ]


@pytest.mark.parametrize("pattern", ["memory://bucket/z*", "memory://none/*", "memory://bucket/none.txt"])
def test_no_match_is_an_error_that_names_the_pattern(folder, pattern):
    with pytest.raises(FileNotFoundError) as caught:
        Dataset.list_files([pattern])
    assert f"list_files(): no file matches '{pattern}'" in str(caught.value)


def test_names_are_written_as_the_pattern_is(folder):
    assert list(Dataset.list_files("memory:///bucket/b*")) == [b"memory:///bucket/b.txt"]
    assert list(Dataset.list_files("simplecache::memory://bucket/b*")) == [b"simplecache::memory://bucket/b.txt"]


def test_file_paths_are_listed(tmp_path):
    (tmp_path / "a.txt").touch()
    assert list(Dataset.list_files(f"file://{tmp_path}/*")) == [f"file://{tmp_path}/a.txt".encode()]


def test_files_that_came_since_the_last_call_are_found(folder, memory):
    assert len(Dataset.list_files(f"{folder}/*.dat")) == 1
    memory.pipe_file("/bucket/d.dat", b"")
    assert len(Dataset.list_files(f"{folder}/*.dat")) == 2


def test_the_links_of_a_page_are_listed(web):
    web.pages["/data/"] = web.pages["/data"] = '<a href="b.txt">b</a> <a href="a.txt">a</a> <a href="c.dat">c</a>'
    found = list(Dataset.list_files(f"{web.url}/data/*.txt", shuffle=False))
    assert found == [f"{web.url}/data/{name}.txt".encode() for name in "ab"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Dataset.list_files(f"{web.url}/none/*.txt")


class Flaky:
    def __init__(self, failures):
        self.failures = failures

    def invalidate_cache(self):
        pass

    def glob(self, name):
        self.failures -= 1
        if self.failures >= 0:
            raise TimeoutError
        return [name]


def test_a_failure_that_passes_is_tried_again(monkeypatch, waits):
    monkeypatch.setattr(listing, "filesystem_of", lambda path: (Flaky(4), "a"))
    assert list(Dataset.list_files("memory://a")) == [b"memory://a"]
    assert len(waits) == 4
    monkeypatch.setattr(listing, "filesystem_of", lambda path: (Flaky(5), "a"))
    with pytest.raises(BrokenConnectionError, match="memory://a: gave up after 5 tries"):
        Dataset.list_files("memory://a")

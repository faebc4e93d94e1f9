"""Tests of list_files against tf.data's."""

from pathlib import Path

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, oracle

from support.libraries import Ours

NAMES = ["b.txt", "a.txt", "a10.txt", "a2.txt", "A.txt", "c.dat", ".hidden.txt", "a[1].txt", "ü.txt", "x y.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name in NAMES:
        Path(tmp_path, name).write_text("")
    Path(tmp_path, "sub").mkdir()
    for name in ("x.txt", "y.txt"):
        Path(tmp_path, "sub", name).write_text("")
    Path(tmp_path, "directory.txt").mkdir()
    Path(tmp_path, "link.txt").symlink_to(Path(tmp_path, "a.txt"))
    Path(tmp_path, "dead.txt").symlink_to(Path(tmp_path, "nothing"))
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


PATTERNS = ["*.txt", "*", "a.txt", "?.txt", "[ab].txt", "[!a].txt", "[^a].txt", "[a-c].*", "*/x.txt", "sub/*", "s*/*"]
PATTERNS += ["**", "**/*.txt", "a[[]1].txt", r"a\[1\].txt", ".*", "sub", "x y.txt", "ü*", "link.txt", "dea*", "a*t"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(folder, pattern):
    found = assert_same(lambda lib: lib.Dataset.list_files(f"{folder}/{pattern}", shuffle=False))
    assert found


def test_relative_patterns():
    """If the first path component has a wildcard, tf.data prefixes results with "./"; this library does not."""
    for pattern in ("sub/*", "sub/?.txt", "a.txt", "./*", "../*/*.txt"):
        assert_same(lambda lib, pattern=pattern: lib.Dataset.list_files(pattern, shuffle=False))
    assert b"a.txt" in set(Ours.Dataset.list_files("*.txt"))
    assert b"./a.txt" in {name.numpy() for name in oracle().Dataset.list_files("*.txt")}


def test_several_patterns(folder):
    for patterns in (
        ["*.txt", "a*"],
        ["c*", "nothing*"],
        ("sub/*", "b*"),
        np.array(["c*", "b*"]),
        [b"c*"],
        ["a*", "a*"],
    ):
        names = [f"{folder}/{pattern if isinstance(pattern, str) else pattern.decode()}" for pattern in patterns]
        given = np.array(names) if isinstance(patterns, np.ndarray) else type(patterns)(names)
        assert_same(lambda lib, given=given: lib.Dataset.list_files(given, shuffle=False))


@pytest.mark.parametrize("shuffle", [None, True])
def test_shuffled(folder, shuffle):
    def names(lib, dataset):
        return sorted(element if lib is Ours else element.numpy() for element in dataset)

    pattern = f"{folder}/*"
    ours, theirs = (lib.Dataset.list_files(pattern, shuffle=shuffle) for lib in (Ours, oracle()))
    assert names(Ours, ours) == names(oracle(), theirs)
    assert len(ours) == len(theirs)
    for lib in (Ours, oracle()):
        dataset = lib.Dataset.list_files(pattern, shuffle, seed=3)
        passes = [[bytes(x if lib is Ours else x.numpy()) for x in dataset] for _ in range(4)]
        again = [bytes(x if lib is Ours else x.numpy()) for x in lib.Dataset.list_files(pattern, shuffle, seed=3)]
        assert passes[0] == again
        assert any(one != passes[0] for one in passes)


def test_a_seed_means_nothing_without_shuffling(folder):
    assert_same(lambda lib: lib.Dataset.list_files(f"{folder}/*.txt", shuffle=False, seed=3, name="label"))


@pytest.mark.parametrize(
    "pattern", ["nothing*", "no/such/folder/*", "{a,b}.txt", "*.TXT", ["nothing*", "none"]], ids=str
)
def test_no_match(pattern):
    assert_both_refuse(lambda lib: lib.Dataset.list_files(pattern), FileNotFoundError)


@pytest.mark.parametrize("pattern", [3, None, [], [3], [["a.txt"]]], ids=repr)
def test_what_is_no_pattern(pattern):
    assert_both_refuse(lambda lib: lib.Dataset.list_files(pattern), TypeError)

"""Tests of list_files against tf.data's."""

from pathlib import Path

import numpy as np
import pytest
from compare import in_both, refused, same

NAMES = ["b.txt", "a.txt", "a10.txt", "a2.txt", "A.txt", "c.dat", "a[1].txt", "ü.txt", "x y.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    tmp_path /= "folder"  # the only one in tmp_path
    (tmp_path / "sub").mkdir(parents=True)
    (tmp_path / "directory.txt").mkdir()
    for name in (*NAMES, "sub/x.txt", "sub/y.txt"):
        (tmp_path / name).touch()
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "dead.txt").symlink_to(tmp_path / "nothing")
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


def names(dataset):
    return [bytes(name) for name in dataset.as_numpy_iterator()]


PATTERNS = ["*.txt", "*", "a.txt", "?.txt", "[ab].txt", "[!a].txt", "[^a].txt", "[a-c].*", "*/x.txt", "sub/*", "s*/*"]
PATTERNS += ["**", "**/*.txt", "a[[]1].txt", r"a\[1\].txt", "sub", "x y.txt", "ü*", "link.txt", "dea*", "a*t"]
test_patterns = same("list_files(f'{folder}/{pattern}', shuffle=False)", pattern=PATTERNS, fixture="folder")
RELATIVE = ["sub/*", "sub/?.txt", "a.txt", "./*", "../*/*.txt"]
test_relative_patterns = same("list_files(pattern, shuffle=False)", pattern=RELATIVE)


def test_relative_patterns_that_start_with_a_wildcard():
    """If the first path component has a wildcard, tf.data prefixes results with "./"; this library does not."""
    ours, theirs = in_both(lambda lib: names(lib.list_files("*.txt", shuffle=False)))
    assert b"a.txt" in ours
    assert b"./a.txt" in theirs


def test_hidden_files_and_names_with_brackets(folder):
    """As in a shell, wildcards match no hidden files here, and the name of an existing file is no pattern."""
    for name in (".hidden.txt", "a1.txt"):
        Path(name).touch()

    def listed(lib, pattern):
        return [Path(name.decode()).name for name in names(lib.list_files([f"{folder}/{pattern}", "b.txt"], False))]

    for pattern, ours, theirs in [
        (".*", [".hidden.txt"], [".hidden.txt"]),
        ("*1*.txt", ["a1.txt", "a10.txt", "a[1].txt"], ["a1.txt", "a10.txt", "a[1].txt"]),
        ("?hidden.txt", [], [".hidden.txt"]),
        ("a[1].txt", ["a[1].txt"], ["a1.txt"]),
    ]:
        found = in_both(lambda lib, pattern=pattern: listed(lib, pattern))
        assert found == ([*ours, "b.txt"], [*theirs, "b.txt"])


test_several_patterns = same(
    "list_files(type_of([f'{folder}/{one}' for one in patterns]), shuffle=False)",
    patterns=[["*.txt", "a*"], ["c*", "nothing*"], ["sub/*", "b*"], ["a*", "a*"]],
    type_of=[list, tuple, np.array, lambda paths: [path.encode() for path in paths]],
    fixture="folder",
)
# A seed means nothing without shuffling.
test_a_seed = same("list_files(f'{folder}/*.txt', shuffle=False, seed=3, name='label')", fixture="folder")


@pytest.mark.parametrize("shuffle", [None, True])
def test_shuffled(folder, shuffle):
    def listed(lib):
        dataset, again = (lib.list_files(f"{folder}/*", shuffle, seed=3) for _ in range(2))
        passes = [names(dataset) for _ in range(4)]
        assert passes[0] == names(again)
        assert any(one != passes[0] for one in passes)
        unseeded = lib.list_files(f"{folder}/*", shuffle=shuffle)
        return sorted(names(unseeded)), len(unseeded)

    ours, theirs = in_both(listed)
    assert ours == theirs


NOTHING = ["nothing*", "no/such/folder/*", "{a,b}.txt", "*.TXT", ["nothing*", "none"]]
test_what_is_refused = refused(
    {FileNotFoundError: NOTHING, TypeError: [3, None, [], [3], [["a.txt"]]]}, "list_files(case)"
)

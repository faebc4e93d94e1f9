"""Tests of list_files against tf.data's."""

from pathlib import Path

import numpy as np
import pytest
from compare import assert_same, in_both, refused, same

NAMES = ["b.txt", "a.txt", "a10.txt", "a2.txt", "A.txt", "c.dat", "a[1].txt", "ü.txt", "x y.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    tmp_path /= "folder"  # the only one in tmp_path
    tmp_path.mkdir()
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
PATTERNS += ["**", "**/*.txt", "a[[]1].txt", r"a\[1\].txt", "sub", "x y.txt", "ü*", "link.txt", "dea*", "a*t"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(folder, pattern):
    assert assert_same(lambda lib: lib.list_files(f"{folder}/{pattern}", shuffle=False))


def names(dataset):
    return [bytes(name) for name in dataset.as_numpy_iterator()]


test_relative_patterns = same(
    lambda lib, pattern: lib.list_files(pattern, shuffle=False), ["sub/*", "sub/?.txt", "a.txt", "./*", "../*/*.txt"]
)


def test_relative_patterns_that_start_with_a_wildcard():
    """If the first path component has a wildcard, tf.data prefixes results with "./"; this library does not."""
    ours, theirs = in_both(lambda lib: names(lib.list_files("*.txt", shuffle=False)))
    assert b"a.txt" in ours
    assert b"./a.txt" in theirs


def test_hidden_files_and_names_with_brackets(folder):
    """As in a shell, wildcards match no hidden files here, and the name of an existing file is no pattern."""
    for name in (".hidden.txt", "a1.txt"):
        Path(name).write_text("")
    patterns = [".*", "*1*.txt", "?hidden.txt", "a[1].txt"]
    ours, theirs = in_both(
        lambda lib: [
            [name.rpartition(b"/")[2] for name in names(lib.list_files([f"{folder}/{one}", "b.txt"], shuffle=False))]
            for one in patterns
        ]
    )
    assert ours == [
        [b".hidden.txt", b"b.txt"],
        [b"a1.txt", b"a10.txt", b"a[1].txt", b"b.txt"],
        [b"b.txt"],
        [b"a[1].txt", b"b.txt"],
    ]
    assert theirs == [
        [b".hidden.txt", b"b.txt"],
        [b"a1.txt", b"a10.txt", b"a[1].txt", b"b.txt"],
        [b".hidden.txt", b"b.txt"],
        [b"a1.txt", b"b.txt"],
    ]


test_several_patterns = same(
    lambda lib, folder, case: lib.list_files(case[0](f"{folder}/{one}" for one in case[1:]), shuffle=False),
    [
        *((list, "*.txt", "a*"), (list, "c*", "nothing*"), (tuple, "sub/*", "b*"), (list, "a*", "a*")),
        (lambda paths: np.array(list(paths)), "c*", "b*"),
        (lambda paths: [path.encode() for path in paths], "c*"),
    ],
    fixture="folder",
)
# A seed means nothing without shuffling.
test_a_seed = same(
    lambda lib, folder: lib.list_files(f"{folder}/*.txt", shuffle=False, seed=3, name="label"), fixture="folder"
)


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


test_what_is_refused = refused(
    {
        FileNotFoundError: ["nothing*", "no/such/folder/*", "{a,b}.txt", "*.TXT", ["nothing*", "none"]],
        TypeError: [3, None, [], [3], [["a.txt"]]],
    },
    lambda lib, pattern: lib.list_files(pattern),
)

"""Tests of list_files: the names of the matching files."""

from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_operator

NAMES = ["b.txt", "a.txt", "c.dat", "ü.txt", "back\\slash.txt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in NAMES:
        Path(tmp_path, name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (["*.dat", "c*"], ["c.dat", "c.dat"]),
        (np.array(["b.txt", "none"]), ["b.txt"]),
        (Path("b.txt"), ["b.txt"]),
        ("*.txt", ["a.txt", "b.txt", "back\\slash.txt", "ü.txt"]),
    ],
    ids=repr,
)
def test_gives_the_names_that_match_in_order(folder, pattern, found):
    check_operator(lambda: Dataset.list_files(pattern, shuffle=np.False_), [name.encode() for name in found])
    assert len(Dataset.list_files(pattern)) == len(found)


@pytest.mark.parametrize("shuffle", [0, 1, "no"])
def test_refuses_a_shuffle_that_is_no_bool(folder, shuffle):
    with pytest.raises(TypeError, match=r"list_files\(\): shuffle must be True or False"):
        Dataset.list_files("*.txt", shuffle=shuffle)
    with pytest.raises(TypeError, match="path"):
        Dataset.list_files([shuffle] if shuffle != "no" else [["a.txt"]])


def test_finds_the_files_at_the_call(folder):
    dataset = Dataset.list_files("*.dat", shuffle=False)
    Path("d.dat").write_text("")
    assert list(dataset) == [b"c.dat"]
    with pytest.raises(FileNotFoundError, match=r"list_files\(\): no file matches"):
        Dataset.list_files("z*")

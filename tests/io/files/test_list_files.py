"""Tests of list_files: the names of the matching files."""

from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset

NAMES = ["b.txt", "a.txt", "c.dat", "ü.txt", "back\\slash.txt", ".hid/a.h", "sub/.b.h"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in NAMES:
        Path(tmp_path, name).parent.mkdir(exist_ok=True)
        Path(tmp_path, name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_paths_backslashes_and_hidden_folders(folder):
    for pattern, found in (
        (Path("b.txt"), ["b.txt"]),
        ("*.txt", ["a.txt", "b.txt", "back\\slash.txt", "ü.txt"]),
        ([".*/*.h", "sub/.*"], [".hid/a.h", "sub/.b.h"]),
    ):
        assert list(Dataset.list_files(pattern, shuffle=np.False_)) == [name.encode() for name in found]


def test_refuses_a_shuffle_that_is_no_bool(folder):
    with pytest.raises(TypeError, match=r"list_files\(\): shuffle must be True or False"):
        Dataset.list_files("*.txt", shuffle=1)


def test_finds_the_files_at_the_call(folder):
    dataset = Dataset.list_files("*.dat", shuffle=False)
    Path("d.dat").write_text("")
    assert list(dataset) == [b"c.dat"]
    with pytest.raises(FileNotFoundError, match=r"list_files\(\): no file matches"):
        Dataset.list_files("z*")

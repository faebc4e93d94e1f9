"""Tests of the README: its examples run, in order, in an empty directory, and its table names existing things."""

import re
from pathlib import Path

import dataset
from dataset import Dataset, io, testing

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_examples_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["images"].shape[1:] == (8, 8)
    assert sum(len(labels) for _, labels in names["train"]) == 1000
    names.clear()  # Keras keeps the model, and with it everything that its dataset refers to, including iterators


def test_the_table_of_what_works_names_what_exists():
    section = README.split("## What works")[1].split("##")[0].split("Names, arguments")[0]
    named = re.findall(r"`([A-Za-z_]+)`", section)
    assert len(named) > 40
    homes = (dataset, Dataset, io, testing, dataset.DatasetIterator)
    extras = {"len", "io", "images", "testing"}
    assert [name for name in named if name not in extras and not any(hasattr(home, name) for home in homes)] == []

"""Tests of the README: its examples run, in order, in an empty directory, and its table agrees with the comparison."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_examples_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["images"].shape[1:] == (8, 8)
    assert sum(len(labels) for _, labels in names["train"]) == 1000
    for iterator in (names["iterator"], names["resumed"]):
        iterator.close()  # its threads run a function that refers to the names, and so to the iterator


def test_it_is_short():
    assert len(README.encode()) <= 9_000


def test_pages_of_the_table_are_those_of_the_comparison():
    page = (Path(__file__).parents[1] / "docs" / "comparison.md").read_text(encoding="utf-8")
    tables = [re.findall(r"^\| (\[?[a-zA-Z].*?) \|(.*)\|$", text, re.MULTILINE) for text in (README, page)]
    marks = [
        {re.sub(r"[\[\]]|\(.*?\)", "", name): re.findall("[●◐]|\\|", cells) for name, cells in table}
        for table in tables
    ]
    assert len(marks[1]) >= 9
    assert marks[1] == {name: marks[0].get(name) for name in marks[1]}

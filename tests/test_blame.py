"""Tests of support/blame.py in a small repository, and of the list of flaky tests."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import flaky
from support.blame import GIT, RUNS

BLAME = Path(__file__).parent / "support" / "blame.py"

BEFORE = """
def test_broken_for_long(): assert False
def test_that_the_change_breaks(): pass
def test_mended(): assert False
"""
AFTER = f"""
import os
import pathlib
def test_broken_for_long(): assert False
def test_that_the_change_breaks(): assert False
def test_mended(): pass
def test_that_did_not_exist(): assert False
def test_that_ends_the_process(): os._exit(3)
def test_after_it(): assert False
def test_of_luck():
    runs = pathlib.Path({{folder!r}}, "runs")
    runs.write_bytes((runs.read_bytes() if runs.exists() else b"") + b".")
    assert len(runs.read_bytes()) % {RUNS} != 1
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a commit, and uncommitted changes."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / ".gitignore").write_text(".*\n")
    path = folder / "tests" / "test_toy.py"
    path.write_text(BEFORE)
    author = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "Begin"]):
        subprocess.run([GIT, *command], check=True)
    path.write_text(AFTER.format(folder=str(tmp_path)))
    return folder


def blame(*arguments):
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to start quickly
    run = subprocess.run(
        [sys.executable, BLAME, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    lines = [line.split("tests/test_toy.py::test_") for line in run.stdout.splitlines()[1:]]
    return run.returncode, {test.strip(): " ".join(words.split()) for words, test in lines}, run.stderr


@pytest.mark.timeout(600)  # it starts pytest nine times, perhaps on a busy machine
def test_blame_tells_new_failures_from_old_and_flaky_ones(repository):
    (repository / ".pytest_cache/v/cache").mkdir(parents=True)
    names = "broken_for_long that_the_change_breaks mended that_did_not_exist that_ends_the_process after_it of_luck"
    tests = ", ".join(f'"tests/test_toy.py::test_{name}": true' for name in names.split())
    (repository / ".pytest_cache/v/cache/lastfailed").write_text(f"{{{tests}}}")
    assert blame() == (
        1,
        {
            "broken_for_long": "old 3/3 here, 3/3 before",
            "that_the_change_breaks": "new 3/3 here, 0/3 before",
            "mended": "gone 0/3 here, 3/3 before",
            "that_did_not_exist": "new 3/3 here, absent before",
            "that_ends_the_process": "new 3/3 here, absent before",
            "after_it": "new 3/3 here, absent before",
            "of_luck": "flaky 1/3 here, absent before",
        },
        "",
    )
    assert subprocess.run([GIT, "worktree", "list"], capture_output=True, check=True).stdout.count(b"\n") == 1


# The list of flaky tests

LIST = """
# a comment
tests/test_a.py::test_one           2026-11-20  fails one time in a hundred under load
tests/test_a.py::test_two[a, b]     2026-11-25  a race in the browser
"""


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "flaky.txt"
    path.write_text(LIST)
    return path


def test_a_flaky_test_rests_for_14_days(listed):
    def names(day):
        return [line.test.partition("_")[2] for line in flaky.resting(dt.date.fromisoformat(day), listed)]

    assert names("2026-11-25") == names("2026-12-03") == ["a.py::test_one", "a.py::test_two[a, b]"]
    assert names("2026-12-04") == names("2026-12-08") == ["a.py::test_two[a, b]"]
    assert names("2026-12-09") == []
    assert flaky.header(dt.date(2026, 12, 3), listed) == [
        "flaky: 2 of flaky.txt do not run, until 2026-12-09 at the latest"
    ]
    assert flaky.header(dt.date(2026, 12, 9), listed) == []


def test_flaky_tests_are_deselected_with_all_their_parameters(listed):
    ids = [f"tests/test_a.py::test_{name}" for name in ("one", "one[x]", "one_more", "two[a, b]", "two[c]")]
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in ids]
    reported = []
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda *, items: reported.extend(items)))
    flaky.deselect(config, items, dt.date(2026, 12, 3), listed)
    assert [item.nodeid for item in items] == [ids[2], ids[4]]
    assert [item.nodeid for item in reported] == [ids[0], ids[1], ids[3]]


def test_every_flaky_test_exists():
    lines = flaky.listed()
    paths = sorted({line.test.split("::")[0] for line in lines})
    if not paths:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-m", "", *paths]
    run = subprocess.run(
        command, cwd=BLAME.parents[2], env={**os.environ, "EXPLORE": "1"}, capture_output=True, text=True, check=False
    )
    for line in lines:
        assert any(line.names(nodeid) for nodeid in run.stdout.splitlines()), f"no such test: {line.test}"

"""Tests of the program that searches: tests/explore."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from explore import __main__ as program
from explore import corpus
from explore.corpus import ROOT
from explore.parts import PARTS, Part, modules
from explore.parts import pytest as run_of_pytest

TOY = """
import os
import pathlib
import pytest
def test_passes(): pass
def test_skipped(): pytest.skip("no browser")
def test_fails(): assert os.environ["SEED"] == "8"
def test_fails_once():
    file = pathlib.Path(__file__).with_name("has failed")
    if not file.exists():
        file.touch()
        assert False
"""


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The folder of what is found. The runs of pytest load few plugins, to start quickly."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin,pytest_timeout")
    monkeypatch.setattr(program, "LOGS", tmp_path)
    monkeypatch.setattr(program, "FOUND", tmp_path / "corpus")
    return tmp_path / "corpus"


def run_once(tmp_path, name, *given):
    search = program.Search(Part(name, 1, *given), 7, 100)
    search._run_once(sys.executable, 7, 100, tmp_path / name)
    return search.result


@pytest.mark.timeout(600)  # it starts pytest three times, perhaps on a busy machine
def test_failed_tests_become_cases_that_say_whether_they_fail_again(found, tmp_path, capsys):
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="toy-", dir=ROOT / "build") as folder:
        toy = Path(folder, "test_toy.py")
        toy.write_text(TOY)
        result = run_once(tmp_path, "toy", run_of_pytest("-p", "no:randomly", str(toy)))
        assert result.says == "1 passed, 2 failed, 1 skipped: no browser (1)"
        cases = {case["command"][-1].partition("::")[2]: case for case in map(corpus.read, found.iterdir())}
        assert {name: case.get("deterministic", True) for name, case in cases.items()} == {
            "test_fails": True,
            "test_fails_once": False,
        }
        assert "assert '7' == '8'" in "\n".join(cases["test_fails"]["failure"])
        assert not corpus.replay(cases["test_fails"] | {"environment": {"SEED": "8"}})
        said = capsys.readouterr().out
        assert all(f"repeat it with\n    {command}\n" in said for command in result.found)
        assert all(command.startswith("SEED=7 python -m pytest") for command in result.found)


def test_a_program_that_dies_is_a_finding(found, tmp_path):
    result = run_once(tmp_path, "program", lambda *_: ["-c", "import os; os.abort()"])
    (path,) = found.iterdir()
    assert corpus.read(path)["command"] == ["-c", "import os; os.abort()"]
    assert len(result.found) == 1


def test_what_cannot_run_says_why_and_is_not_green(found, tmp_path):
    (absent,) = program.explore([Part("absent", 1, run_of_pytest(), modules("no_such_module"))], 7, 100, 1)
    assert str(absent).split("s  ")[1] == "not run: no_such_module not installed"
    assert not list(tmp_path.iterdir())
    (late,) = program.explore([Part("late", 1, run_of_pytest())], 7, 0, 1)
    assert late.not_run == "no time was left for it in this call"


def test_every_part_has_a_name_of_its_own():
    assert len({part.name for part in PARTS}) == len(PARTS)

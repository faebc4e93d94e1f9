"""Tests of ``doctor``, and of the list of extras that it shows."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from dataset.commands.further import doctor
from dataset.commands.main import main
from dataset.extras import EXTRAS

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
FOR_DEVELOPERS = {"notebooks", "docs", "check", "test", "explore", "lint"}


@pytest.fixture
def sound(monkeypatch):
    """An installation without problems, whatever is installed here."""
    monkeypatch.setattr(doctor, "kernels_status", lambda: "in use")
    monkeypatch.setattr(doctor, "missing_modules", lambda extra: [])
    monkeypatch.setattr(doctor, "_NAMESAKE", "no-such-distribution")


def document(capsys, status):
    capsys.readouterr()
    assert main(["doctor", "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_the_extras_are_those_of_the_project():
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS


@pytest.mark.parametrize("extra", [name for name, modules in EXTRAS.items() if modules])
def test_the_distributions_are_those_that_the_extra_installs(extra):
    required = {re.match(r"[\w.-]+", line)[0] for line in PROJECT["optional-dependencies"][extra]}
    assert set(EXTRAS[extra].values()) == required


def test_the_script_runs_the_same_program():
    assert PROJECT["scripts"] == {"dataset": f"{main.__module__}:{main.__name__}"}


@pytest.mark.usefixtures("sound")
def test_a_sound_installation(capsys):
    report = document(capsys, 0)
    assert report["problems"] == []
    assert report["cores"]["usable"] >= 1
    assert report["memory"]["available"] >= report["memory"]["buffers"] > 0
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "native kernels  in use" in text
    assert all(extra in text for extra in EXTRAS)
    assert "problem" not in text


@pytest.mark.usefixtures("sound")
def test_each_problem_is_named_and_sets_the_status(capsys, monkeypatch):
    monkeypatch.delenv("DATASET_NATIVE", raising=False)
    monkeypatch.setattr(doctor, "kernels_status", lambda: "not in use: no compiler")
    monkeypatch.setattr(doctor, "_NAMESAKE", "pytest")
    problems = document(capsys, 1)["problems"]
    assert problems[0] == "native kernels: not in use: no compiler"
    assert problems[1].startswith("the unrelated distribution 'pytest'")
    assert main(["doctor"]) == 1
    assert "problem: the unrelated distribution" in capsys.readouterr().out


@pytest.mark.usefixtures("sound")
def test_extras_that_are_missing_or_incomplete_are_not_problems(capsys, monkeypatch):
    """Other libraries install modules of an extra."""
    monkeypatch.setenv("DATASET_NATIVE", "0")
    monkeypatch.setattr(doctor, "kernels_status", lambda: "not in use: DATASET_NATIVE is 0")
    absent = {"ray", "tqdm", "simplejpeg", "cv2"}
    monkeypatch.setattr(doctor, "missing_modules", lambda extra: [name for name in EXTRAS[extra] if name in absent])
    report = document(capsys, 0)
    assert report["extras"]["images"] == {"simplejpeg": None, "cv2": None}
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(r'images +not installed: pip install "dataset-combinators\[images\]"', text)
    assert re.search(r'progress +rich [\d.]+, without tqdm: pip install "dataset-combinators\[progress\]"', text)


@pytest.mark.usefixtures("sound")
def test_kernels_that_are_required_and_missing(capsys, monkeypatch):
    def fail():
        raise RuntimeError("DATASET_NATIVE is 1, but the native kernels can't be used")

    monkeypatch.setattr(doctor, "kernels_status", fail)
    monkeypatch.setenv("DATASET_NATIVE", "1")
    assert "DATASET_NATIVE is 1" in document(capsys, 1)["problems"][0]

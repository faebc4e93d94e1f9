"""Replays every case of the corpus: what was fixed passes, and what is known still fails. See explore/corpus.py."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys

import pytest

from explore.corpus import CORPUS, REPLAYS, ROOT, read, replay, write
from support.resume_search import Case, case

CASES = {path.stem: path for path in sorted(CORPUS.glob("*.json"))}


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_what_its_status_says(name):
    if not read(CASES[name]).get("deterministic", True) and "EXPLORE" not in os.environ:
        pytest.skip("does not fail each time; make explore replays it")
    case = read(CASES[name])
    if case["status"] == "fixed":
        assert not replay(case), case["reason"]
        return
    command = [sys.executable, "-m", "tests.explore.corpus", str(CASES[name])]  # a crash does not end this process
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in run.stderr, f"the case cannot be replayed\n{run.stderr}"
    assert run.returncode or not case.get("deterministic", True), "the case passes: mark it fixed"


def test_every_case_says_what_it_is():
    assert CASES
    for name, path in CASES.items():
        found = read(path)
        assert found["kind"] in REPLAYS, name
        assert found["status"] in {"fixed", "known"}, name
        assert found["reason"], f"{name}: no reason"
        assert dt.date.fromisoformat(found["date"]), name


def test_a_case_that_is_written_and_read_is_the_same(tmp_path):
    for number in range(200):
        drawn = case(number)
        found = Case.from_json(read(write(tmp_path, "resume", drawn.to_json(), "")))
        assert str(found) == str(drawn)
        assert found.stops == drawn.stops
        assert (found.chain.by_chance, found.chain.stores_elements) == (
            drawn.chain.by_chance,
            drawn.chain.stores_elements,
        )


FAILING = {
    "resume": {"chain": "Dataset.from_tensors(folder)", "stops": [{"where": "at", "at": 0}]},  # another in each run
    "fuzz": {"target": "raises", "input": ["b'a", "!'"]},
    "program": {"names": "dataset", "lines": ["found = list(Dataset.range(3))", "assert found == [0, 1]"]},
    "command": {"command": ["-c", "raise SystemExit(1)"]},
}


@pytest.mark.parametrize("kind", REPLAYS)
def test_a_failure_is_noticed(kind):
    assert replay({"kind": kind, **FAILING[kind]})

"""Tests of the AUTOTUNE study: that its cells run, alike with each setting, and the arithmetic of its results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.scripts import load_script

STUDIES = Path(__file__).parents[1] / "benchmarks" / "studies"
sys.path.append(str(STUDIES))


study = load_script(STUDIES / "autotune.py")
CELLS = study.chosen("", quick=False, held_out=True)


def leaves(element):
    if isinstance(element, dict):
        return [leaf for name in sorted(element) for leaf in leaves(element[name])]
    return [leaf for one in element for leaf in leaves(one)] if isinstance(element, tuple) else [element]


def result(**changes):
    values = {"first": 10.0, "afterwards": 10.0, "epochs": [10.0], "whole": 10.0, "cpu": 1.0, "others": 0.0}
    return study.Result(**values | changes)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_cell_gives_the_same_batch_with_autotune_as_in_sequence(cell):
    in_sequence, tuned = (next(iter(cell.build(8, setting))) for setting in (study.Setting(), cell.tuned))
    np.testing.assert_equal(leaves(tuned), leaves(in_sequence))
    assert study.length(tuned) == len(leaves(tuned)[0]) >= 1


def test_what_is_reported_is_the_median_of_the_ratios_of_the_pairs():
    tuned, fixed = [result(first=rate) for rate in (1, 8, 9)], [result(first=rate) for rate in (2, 2, 10)]
    found = study.Found(CELLS[0], study.Setting(), 8, {}, tuned, {study.Setting(): fixed})
    assert found.ratio("first") == pytest.approx(0.9)
    assert found.ratio("epoch 3") == 1  # the last, where there are fewer
    assert study.summary([found])["all cells"]["first"] == pytest.approx(0.9)
    assert json.loads(study.as_json({"cores": 2}, [found]))["cells"][CELLS[0].name]["ratios"]["first"] == 0.9


@pytest.mark.explore
def test_the_program_measures_a_cell_with_processes_and_writes_its_results(tmp_path):
    command = [sys.executable, STUDIES / "autotune.py", "--quick", "--log", "--json", tmp_path / "found.json"]
    done = subprocess.run(
        [*command, "--only", "processes: words"], check=True, capture_output=True, text=True, timeout=250
    )
    whole = json.loads((tmp_path / "found.json").read_text())
    assert whole["summary"]["tuned on"]["processes"]["cells"] == 1, done.stdout
    (cell,) = whole["cells"].values()
    assert set(cell["first_pass"]) == {"None", "2", "16", "2 processes"}
    assert len(cell["tuned"][0]["epochs"]) == 3

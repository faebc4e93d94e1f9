"""Tests of the AUTOTUNE study: that its cells run, alike with each setting, and the arithmetic of its results."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).parents[1] / "benchmarks" / "studies"
sys.path.append(str(STUDIES))


def load(name):
    spec = importlib.util.spec_from_file_location(f"study_{name}", STUDIES / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look it up there
    spec.loader.exec_module(loaded)
    return loaded


study = load("autotune")  # by its path: a folder of the tests has the same name
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


def test_the_cells_cover_the_grid_and_a_third_is_held_out():
    assert len({cell.name for cell in CELLS}) == len(CELLS) >= 40
    assert sum(cell.held_out for cell in CELLS) >= len(CELLS) // 3 - 1
    tuned = study.chosen("", quick=False, held_out=False)
    assert tuned == [cell for cell in CELLS if not cell.held_out]
    for name, values in [
        ("epoch", {0.3, 3.0}),
        ("rebuilt", {True, False}),
        ("consumer", {"free", "sleeping", "computing"}),
        ("position", {"before batch", "before shuffle", "before prefetch", "after shuffle"}),
    ]:
        assert {getattr(cell, name) for cell in tuned} == values
    assert {cell.kind for cell in study.chosen("", quick=True, held_out=False)} == {cell.kind for cell in tuned}


def test_elements_are_counted_between_batches_in_proportion_to_the_time():
    marks = [(0.0, 0), (0.1, 8), (0.5, 16), (0.6, 24)]
    assert study.delivered(marks, 0.3) == pytest.approx(12)
    assert study.delivered(marks, 1.0) == 24
    assert study.rate(marks[1], marks[3]) == pytest.approx(32)


def test_what_is_reported_is_the_median_of_the_ratios_of_the_pairs():
    tuned, fixed = [result(first=rate) for rate in (1, 8, 9)], [result(first=rate) for rate in (2, 2, 10)]
    found = study.Found(CELLS[0], study.Setting(), 8, {}, tuned, {study.Setting(): fixed})
    assert found.ratio("first") == pytest.approx(0.9)
    assert found.ratio("epoch 3") == 1  # the last, where there are fewer
    assert study.summary([found])["all cells"]["first"] == pytest.approx(0.9)
    assert json.loads(study.as_json({"cores": 2}, [found]))["cells"][CELLS[0].name]["ratios"]["first"] == 0.9


def test_processes_are_compared_with_threads_too():
    threads, processes = study.Setting(4), study.Setting(2, "process")
    assert study.finalists({study.Setting(): 70, threads: 80, processes: 100}, quick=False) == [processes, threads]
    fixed = {processes: [result(first=1.0, afterwards=30.0, cpu=2.0)], threads: [result(first=5.0)]}
    found = study.Found(CELLS[0], processes, 8, {}, [result()], fixed)
    assert found.ratio("first") == pytest.approx(2)
    assert found.ratio("cpu") == pytest.approx(0.5)
    assert found.ratio("afterwards") == pytest.approx(1 / 3)


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

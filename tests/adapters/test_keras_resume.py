"""Tests of checkpoint.keras_callback: an interrupted and resumed training has the same batches as one that was not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataset import Dataset, checkpoint

BACKENDS = ["jax", pytest.param("tensorflow", marks=pytest.mark.explore)]
CASES = {
    "twice": ("known", 3, [8, 9]),
    "at the end of an epoch": ("known", 5, [11]),
    "unknown": ("unknown", 4, [6]),
    "unknown, by epochs": ("unknown", "epoch", [25]),
    "endless": ("endless", 4, [10]),
    "endless, by epochs": ("endless", "epoch", [16]),
    "unknown, at the end of an epoch": ("unknown", 5, [11]),
    "part of a pass": ("part", 3, [8]),
    "the end of a pass, by epochs": ("part", "epoch", [6]),
    "two steps at once": ("twofold", 4, [8]),
    "two steps at once, an odd frequency": ("twofold", 3, [8]),
    "by batches, validated": ("known", 4, [17], True),
}
"""The shape of the data, when it is saved, and the steps after which each training is interrupted."""


@pytest.fixture(scope="module", params=BACKENDS)
def trained(request):
    """The results of the trainings of one backend."""
    environment = os.environ | {"KERAS_BACKEND": request.param, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(Path(__file__).parent / "keras_resuming.py"), json.dumps(CASES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_a_resumed_training_equals_one_that_was_not_interrupted_and_leaves_no_backup(trained, name):
    whole, parts = trained["cases"][name]["whole"], trained["cases"][name]["parts"]
    expected = whole["seen"]
    end = 0  # the end of the previous part
    for part in parts:
        seen = part["seen"]
        starts = [start for start in range(end + 1) if expected[start : start + len(seen)] == pytest.approx(seen)]
        assert starts, "the weights after the steps differ"
        end = starts[0] + len(seen)
    assert end == len(expected)
    assert parts[-1]["weights"] == pytest.approx(whole["weights"])
    start = len(expected) - len(parts[-1]["seen"])
    epochs = [[epoch, start + count] for epoch, count in parts[-1]["epochs"]]
    assert epochs == [[epoch, count] for epoch, count in whole["epochs"] if count > start]
    assert [part["files"] for part in parts[:-1]] == [2] * (len(parts) - 1)
    assert not trained["cases"][name]["left"]


@pytest.mark.timeout(600)
def test_damaged_backups_and_those_of_other_pipelines_are_refused(trained):
    refusals = trained["refusals"]
    assert "they differ at op" in refusals["other"]
    assert refusals["other"].startswith("StateError")
    assert "damaged" in refusals["damaged"]
    assert "after 8 elements" in refusals["described"]


def test_bad_arguments_are_refused(tmp_path):
    data = Dataset.range(8).batch(2).map(lambda x: (x, x)).to_keras()
    with pytest.raises(TypeError, match=r"data must be the result of Dataset\.to_keras"):
        checkpoint.keras_callback(tmp_path, Dataset.range(3))
    for bad in (0, -1, 2.5, "batch", True, None):
        with pytest.raises(ValueError, match="save_freq must be"):
            checkpoint.keras_callback(tmp_path, data, bad)
    with pytest.raises(ValueError, match="local directory"):
        checkpoint.keras_callback("s3://bucket/backup", data)

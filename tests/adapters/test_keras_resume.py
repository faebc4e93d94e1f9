"""Tests of checkpoint.keras_callback: an interrupted and resumed training has the same batches as one that was not."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataset import Dataset, checkpoint

BACKENDS = ["jax", "tensorflow"]
CASES = [
    "by batches",
    "by epochs",
    "twice",
    "at the end of an epoch",
    "unknown",
    "unknown, by epochs",
    "unknown, at the end of an epoch",
    "endless",
    "endless, by epochs",
    "part of a pass",
    "part of a pass, by epochs",
    "the end of a pass, by epochs",
    "two steps at once",
    "validated",
]


@pytest.fixture(scope="module", params=BACKENDS)
def trained(request):
    """The results of the trainings of one backend."""
    for name in ("keras", request.param):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    environment = os.environ | {"KERAS_BACKEND": request.param, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(Path(__file__).parent / "keras_resuming.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_a_training_that_goes_on_is_the_one_that_was_not_interrupted(trained, name):
    whole, parts = trained[name]["whole"], trained[name]["parts"]
    expected = whole["seen"]
    end = 0  # the end of the previous part
    for part in parts:
        seen = part["seen"]
        starts = [start for start in range(end + 1) if expected[start : start + len(seen)] == pytest.approx(seen)]
        assert starts, "the weights after the steps differ"
        end = starts[0] + len(seen)
    assert end == len(expected)
    assert parts[-1]["weights"] == pytest.approx(whole["weights"])
    steps = [count for _, count in whole["epochs"]]
    start = len(expected) - len(parts[-1]["seen"])
    assert [start + count for _, count in parts[-1]["epochs"]] == [count for count in steps if count > start]
    assert [epoch for epoch, _ in parts[-1]["epochs"]] == [epoch for epoch, count in whole["epochs"] if count > start]


@pytest.mark.timeout(600)
def test_there_is_one_backup_at_a_time_and_none_behind_the_end(trained):
    for name in CASES:
        assert [part["files"] for part in trained[name]["parts"][:-1]] == [2] * (len(trained[name]["parts"]) - 1)
        assert not trained[name]["left"]


@pytest.mark.timeout(600)
def test_backups_of_other_pipelines_and_damaged_ones_are_refused(trained):
    assert "they differ at op" in trained["refusals"]["other"]
    assert trained["refusals"]["other"].startswith("StateError")
    assert "damaged" in trained["refusals"]["damaged"]
    assert "after 8 elements" in trained["refusals"]["described"]


def test_bad_arguments_are_refused(tmp_path):
    pytest.importorskip("keras")
    data = Dataset.range(8).batch(2).map(lambda x: (x, x)).to_keras()
    with pytest.raises(TypeError, match=r"data must be the result of Dataset\.to_keras"):
        checkpoint.keras_callback(tmp_path, Dataset.range(3))
    for bad in (0, -1, 2.5, "batch", True, None):
        with pytest.raises(ValueError, match="save_freq must be"):
            checkpoint.keras_callback(tmp_path, data, bad)
    with pytest.raises(ValueError, match="local directory"):
        checkpoint.keras_callback("s3://bucket/backup", data)

"""Tests of the demo on real data: the script as run by a user, and its functions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.scripts import load_script

SCRIPT = Path(__file__).parents[1] / "notebooks" / "digits" / "train.py"
EPOCHS = 6  # enough for an accuracy well above the script's bound


def losses_and_accuracy(output):
    return re.findall(r"loss (\d+\.\d+)", output), re.search(r"test accuracy (\d\.\d+)", output)[1]


def run_script(cwd, *arguments):
    command = [sys.executable, "-W", "error", str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=250, check=False)


@pytest.fixture(scope="module")
def demo():
    return load_script(SCRIPT)


@pytest.mark.explore
def test_every_epoch_shows_a_full_bar_and_the_loss_and_a_second_run_over_the_same_files_repeats_it(tmp_path):
    first, second = (run_script(tmp_path, "--epochs", str(EPOCHS), "--data-dir", "shards") for _ in range(2))
    for done in (first, second):
        assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in first.stdout.splitlines() if line.startswith("epoch")]
    assert len(lines) == EPOCHS
    for number, line in enumerate(lines, 1):
        bar = rf"epoch {number}/{EPOCHS} \[#{{20}}\] 1437/1437  loss \d\.\d{{4}} +[\d,]+ elements/s"
        assert re.fullmatch(bar, line)
    losses, accuracy = losses_and_accuracy(first.stdout)
    assert float(losses[-1]) < float(losses[0]) / 2
    assert 0.92 <= float(accuracy) <= 1
    assert "list_files" in first.stdout.partition("the pipeline:")[2]
    assert losses_and_accuracy(second.stdout) == (losses, accuracy)
    assert len(list((tmp_path / "shards").iterdir())) == 6


def test_an_accuracy_below_the_bound_is_status_1_and_a_message(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "ACCURACY_MIN", 1.01)
    assert demo.main(["--epochs", "1", "--data-dir", str(tmp_path)]) == 1
    assert re.search(r"must be at least 1\.01, got 0\.\d{4}", capsys.readouterr().err)


def test_another_file_is_refused_with_both_hashes(demo, tmp_path):
    changed = tmp_path / "digits.csv.gz"
    changed.write_bytes(demo.DATA.read_bytes() + b"\0")
    with pytest.raises(ValueError, match=rf"must have SHA-256 {demo.DATA_SHA256}, got [0-9a-f]{{64}}") as caught:
        demo.load_digits(changed)
    assert str(changed) in str(caught.value)

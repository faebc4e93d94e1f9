"""Tests of the demo on real data: the script as run by a user, and its functions."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dataset import TFRecordDataset, io

SCRIPT = Path(__file__).parents[1] / "notebooks" / "digits" / "train.py"
EPOCHS = 6  # enough for an accuracy well above the script's bound


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("digits_train", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(cwd, *arguments, **env):
    command = [sys.executable, "-W", "error", str(SCRIPT), *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=250, check=False
    )


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = run_script(folder, "--epochs", str(EPOCHS), "--data-dir", "shards")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder, result


def losses_and_accuracy(output):
    return re.findall(r"loss (\d+\.\d+)", output), re.search(r"test accuracy (\d\.\d+)", output)[1]


@pytest.mark.explore
def test_every_epoch_shows_a_full_bar_the_loss_falls_and_the_pipeline_is_shown_at_the_end(first_run):
    _, result = first_run
    lines = [line for line in result.stdout.splitlines() if line.startswith("epoch")]
    assert len(lines) == EPOCHS
    for number, line in enumerate(lines, 1):
        bar = rf"epoch {number}/{EPOCHS} \[#{{20}}\] 1437/1437  loss \d\.\d{{4}} +[\d,]+ elements/s"
        assert re.fullmatch(bar, line)
    losses, accuracy = losses_and_accuracy(result.stdout)
    assert float(losses[-1]) < float(losses[0]) / 2
    assert 0.92 <= float(accuracy) <= 1
    tree = result.stdout.partition("the pipeline:")[2]
    for word in ("list_files", "interleave", "map", "cache", "shuffle", "batch", "prefetch"):
        assert word in tree
    assert "\r" not in result.stdout
    assert result.stderr == ""


@pytest.mark.explore
def test_the_shards_hold_the_training_part_and_nothing_else(demo, first_run):
    paths = sorted((first_run[0] / "shards").iterdir())
    assert [path.name for path in paths] == [f"train-{i:05d}-of-00006.tfrecord" for i in range(6)]
    parsed = TFRecordDataset([str(path) for path in paths]).map(io.ExampleParser(demo.FEATURES))
    found = sorted((bytes(example["image"]), int(example["label"])) for example in parsed)
    pixels, labels = demo.load_digits()
    kept = ~demo.is_test_row(len(labels))
    assert found == sorted(zip((row.tobytes() for row in pixels[kept]), labels[kept].tolist(), strict=True))


@pytest.mark.explore
def test_a_second_run_over_the_same_files_repeats_the_first(first_run):
    folder, first = first_run
    second = run_script(folder, "--epochs", str(EPOCHS), "--data-dir", "shards")
    assert second.returncode == 0, second.stderr
    assert losses_and_accuracy(second.stdout) == losses_and_accuracy(first.stdout)
    assert len(list((folder / "shards").iterdir())) == 6


@pytest.mark.explore
def test_without_a_data_dir_nothing_is_left_behind(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = run_script(tmp_path, "--epochs", str(EPOCHS), **dict.fromkeys(["TMPDIR", "TEMP", "TMP"], str(scratch)))
    assert result.returncode == 0, result.stderr
    assert str(scratch) in result.stdout
    assert list(scratch.iterdir()) == []
    assert list(tmp_path.iterdir()) == [scratch]


def test_an_accuracy_below_the_bound_is_status_1_and_a_message(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "ACCURACY_MIN", 1.01)
    assert demo.main(["--epochs", "1", "--data-dir", str(tmp_path)]) == 1
    assert re.search(r"must be at least 1\.01, got 0\.\d{4}", capsys.readouterr().err)


# The data.


def test_the_data_is_what_provenance_says_and_every_fifth_row_is_for_testing(demo):
    pixels, labels = demo.load_digits()
    assert (pixels.shape, pixels.dtype) == ((1797, 64), np.uint8)
    assert (labels.shape, labels.dtype) == ((1797,), np.int64)
    assert (pixels.min(), pixels.max()) == (0, 16)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert demo.DATA_SHA256 in SCRIPT.with_name("PROVENANCE.md").read_text(encoding="utf-8")
    testing = demo.is_test_row(len(labels))
    assert np.flatnonzero(testing).tolist() == list(range(0, 1797, 5))
    assert set(labels[testing]) == set(labels[~testing]) == set(range(10))


def test_another_file_is_refused_with_both_hashes(demo, tmp_path):
    changed = tmp_path / "digits.csv.gz"
    changed.write_bytes(demo.DATA.read_bytes() + b"\0")
    with pytest.raises(ValueError, match=rf"must have SHA-256 {demo.DATA_SHA256}, got [0-9a-f]{{64}}") as caught:
        demo.load_digits(changed)
    assert str(changed) in str(caught.value)


def test_to_xy_gives_one_image_or_many(demo):
    rows = np.array([[0, 16], [8, 4]], np.uint8)
    many = {"image": np.array([row.tobytes() for row in rows], object), "label": np.array([3, 7])}
    images, labels = demo.to_xy(many)
    np.testing.assert_array_equal(images, np.array([[0, 1], [0.5, 0.25]], np.float32), strict=True)
    np.testing.assert_array_equal(labels, [3, 7])
    image, label = demo.to_xy({"image": rows[1].tobytes(), "label": np.int64(7)})
    np.testing.assert_array_equal(image, np.array([0.5, 0.25], np.float32), strict=True)
    assert label == 7

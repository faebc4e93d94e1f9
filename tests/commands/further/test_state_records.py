"""Tests of ``state --records``, which lists the records of the steps after a saved state."""

import json
import sys

import pytest

from dataset import Dataset, TFRecordDataset, checkpoint
from dataset.commands.main import main
from support.tfrecord_files import write_records

MODULE = """
from dataset import TFRecordDataset

data = TFRecordDataset(PATH).shuffle(5, seed=1).batch(3)

def made():
    return data

number = 5
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Return the path of a state of the pipeline in the module ``training_data`` of the current folder."""
    path = str(tmp_path / "a.tfrecord")
    write_records(path, [b"%d" % number for number in range(12)])
    (tmp_path / "training_data.py").write_text(MODULE.replace("PATH", repr(path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    iterator = iter(TFRecordDataset(path).shuffle(5, seed=1).batch(3))
    next(iterator)
    checkpoint.save("train.state", iterator)
    yield "train.state"
    sys.modules.pop("training_data", None)


def status_of(capsys, *words):
    status = main(["state", *words])
    return (status, *capsys.readouterr())


@pytest.mark.parametrize("name", ["data", "made"])
def test_each_record_is_a_line_of_json(state, capsys, name):
    status, out, err = status_of(capsys, state, "--records", "2", "--pipeline", f"training_data:{name}")
    assert (status, err) == (0, "")
    import training_data

    lines = [json.loads(line) for line in out.splitlines()]
    batches = list(Dataset(training_data.data.plan))  # the same order: the seed, and the first iteration of the module
    assert [line["step"] for line in lines] == [1] * 3 + [2] * 3
    assert [str(line["number"]).encode() for line in lines] == [x for batch in batches[1:3] for x in batch]


def test_the_output_is_a_skip_list(state, capsys, tmp_path):
    status, out, _ = status_of(capsys, state, "--records", "--pipeline", "training_data:data")
    assert status == 0
    (tmp_path / "skip.jsonl").write_text(out)
    left = list(TFRecordDataset(str(tmp_path / "a.tfrecord")).skip_records(tmp_path / "skip.jsonl"))
    assert len(left) == 9


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--records"], "--records and --pipeline must be given together"),
        (["--pipeline", "training_data:data"], "--records and --pipeline must be given together"),
        (["--records", "--pipeline", "training_data"], "--pipeline must be MODULE:NAME, got 'training_data'"),
        (["--records", "--pipeline", "nothing_here:data"], "No module named 'nothing_here'"),
        (["--records", "--pipeline", "training_data:nothing"], "has no attribute 'nothing'"),
        (["--records", "--pipeline", "training_data:number"], "expected a Dataset, got int"),
    ],
)
def test_a_wrong_command_line_is_an_error_of_one_line(state, capsys, words, told):
    status, out, err = status_of(capsys, state, *words)
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_state_of_another_pipeline_is_an_error(state, capsys, tmp_path):
    iterator = iter(Dataset.range(5))
    checkpoint.save("other.state", iterator)
    status, _, err = status_of(capsys, "other.state", "--records", "--pipeline", "training_data:data")
    assert status == 1
    assert "the state belongs to another pipeline" in err

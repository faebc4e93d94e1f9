"""describe: what people read of a state, and that nothing anybody puts into one spoils it."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, StateError, TextLineDataset, checkpoint
from dataset.commands.main import main


def described(dataset, count):
    with iter(dataset) as iterator:
        for _ in range(count):
            next(iterator)
        return checkpoint.describe(iterator.state_dict())


def lines_of(text):
    """Without their spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_state_says_which_pipeline_it_is_of_and_how_far_that_was():
    lines = lines_of(described(Dataset.range(900).unique().repeat(3), 1000))
    assert lines[:2] == ["state of range(900).unique.repeat(3)", "after 1,000 elements"]
    assert lines[2].startswith("version 3, of library ")
    assert lines[3:5] == ["", "repeat 1 epoch finished, at element 100"]
    assert lines[5].startswith("unique at element 100, seen:")
    assert lines[6:] == ["range at element 100"]


def test_a_finished_iteration_says_so():
    iterator = iter(Dataset.range(3))
    list(iterator)
    assert lines_of(checkpoint.describe(iterator.state_dict()))[1] == "after 3 elements, at the end"


def test_files_are_named_with_the_place_in_them(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    text = described(TextLineDataset(str(path)).ignore_errors(), 2)
    assert "ignore_errors 2 passed on" in lines_of(text)
    assert f"in {str(path)!r} at byte 8, record 2" in text


def test_several_inputs_are_branches():
    both = Dataset.zip(Dataset.range(5).filter(lambda x: True), Dataset.range(9).filter(lambda x: True))
    text = described(both.enumerate(), 2)
    assert "├─ input 1:" in text
    assert "└─ input 2:" in text
    assert lines_of(text).count("enumerate at element 2") == 1


def test_a_file_says_when_it_was_saved_and_the_command_prints_it(tmp_path, capsys):
    path = tmp_path / "a.state"
    checkpoint.save(path, iter(Dataset.range(3)))
    text = checkpoint.describe(path)
    assert f"{path}: saved 20" in text
    assert " UTC by version " in text
    assert main(["state", str(path)]) == 0
    assert capsys.readouterr().out.rstrip("\n") == text
    path.write_bytes(path.read_bytes()[:100])
    assert main(["state", str(path)]) == 1
    assert "truncated after 100 of" in capsys.readouterr().err
    assert main(["state", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_the_json_form_reads_the_same():
    state = iter(Dataset.range(9).shuffle(4).batch(2)).state_dict()
    assert checkpoint.describe(checkpoint.to_json(state)) == checkpoint.describe(state)


def test_a_state_inside_of_others_is_found():
    state = iter(Dataset.range(9)).state_dict()
    assert "after 0 elements" in checkpoint.describe({"worker_0": {"given": 3, "iterator": [state]}})
    assert "worker_0.iterator:" in checkpoint.describe({"worker_0": {"given": 3, "iterator": [state]}})


def test_a_state_of_another_version_is_described_as_far_as_it_goes():
    state = {"version": 7, "fingerprint": "x", "operator": {"op": "new_op", "news": [1, 2], "source": {"op": "range"}}}
    lines = lines_of(checkpoint.describe(state))
    assert lines[0] == "state of an unnamed pipeline"
    assert "new_op news: [1, 2]" in lines


def test_a_damaged_state_is_said_to_be():
    state = iter(Dataset.range(9)).state_dict()
    state["operator"]["position"] = 7
    assert "DAMAGED" in checkpoint.describe(state)


@pytest.mark.parametrize("thing", [None, 3, [], {}, b"x", np.zeros(3)], ids=repr)
def test_what_is_no_state_is_refused(thing):
    with pytest.raises(StateError, match="expected a state"):
        checkpoint.describe(thing)


KEYS = "op source feeds inner held length structure columns file path offset plan number position epoch iteration error"
KEYS += " message fingerprint operator x\n"
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(np.arange(3)))
ODD = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split(" ")), inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None)
@given(ODD)
def test_nothing_in_a_state_spoils_what_is_said_of_it(data):
    state = copy.deepcopy(iter(Dataset.range(9).batch(2)).state_dict())
    for wrong in ({**state, "operator": data}, {**state, "plan": data, "elements": data, "version": data}, {"a": data}):
        text = checkpoint.describe(wrong)
        assert all(line.isprintable() for line in text.splitlines())

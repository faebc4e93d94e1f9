"""describe: what people read of a state, and that nothing anybody puts into one spoils it."""

import copy

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset import Dataset, StateError, TextLineDataset, checkpoint
from dataset.commands.main import main
from support.states import state_after


def described(dataset, count):
    return checkpoint.describe(state_after(dataset, count))


def lines_of(text):
    """Without their spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def noted(x, calls=[]):  # noqa: B006  # an effect, so no element is computed early
    calls.append(x)
    return x


def test_a_description_names_the_pipeline_and_its_position():
    lines = lines_of(described(Dataset.range(900).map(noted).unique().repeat(3), 1000))
    assert lines[:2] == ["state of range(900).map(noted).unique.repeat(3)", "after 1,000 elements"]
    assert lines[2].startswith("version 5, of library ")
    assert lines[3:5] == ["", "repeat at element 100, 1 epoch finished"]
    assert lines[5].startswith("unique at element 100, seen:")
    assert lines[6:] == ["map at element 100", "range at element 100"]
    iterator = iter(Dataset.range(3))
    list(iterator)
    state = iterator.state_dict()
    assert lines_of(checkpoint.describe(state))[1] == "after 3 elements, at the end"
    assert checkpoint.describe(checkpoint.to_json(state)) == checkpoint.describe(state)
    state = iter(Dataset.range(3)).state_dict()
    state["operator"]["at"] = 7
    assert "DAMAGED" in checkpoint.describe(state)
    unordered = Dataset.range(9).filter(lambda x: True).map(lambda x: x, num_parallel_calls=2, deterministic=False)
    ended = Dataset.range(5).take_while(lambda x: x < 2).concatenate(Dataset.range(3))
    assert "├─ input 1: take_while at element 2, its input has ended" in lines_of(described(ended, 3))
    assert "holds elements by value (" in described(unordered.shuffle(4), 2)


def test_files_are_named_with_the_place_in_them(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    text = described(TextLineDataset(str(path)).ignore_errors(), 2)
    assert "ignore_errors at element 2" in lines_of(text)
    assert f"in {str(path)!r} at byte 8, record 2" in text


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


def test_a_nested_state_and_one_of_another_version_are_described():
    state = iter(Dataset.range(9)).state_dict()
    text = checkpoint.describe({"worker_0": {"given": 3, "iterator": [state]}})
    assert "after 0 elements" in text
    assert "worker_0.iterator:" in text
    state = {
        "version": 7,
        "fingerprint": "x",
        "operator": {"op": "new_op", "own": {"news": [1, 2]}, "inputs": [{"op": "range"}]},
    }
    lines = lines_of(checkpoint.describe(state))
    assert lines[0] == "state of an unnamed pipeline"
    assert "new_op news: [1, 2]" in lines


def test_other_values_than_states_are_refused():
    for thing in (None, 3, [], {}, b"x", np.zeros(3)):
        with pytest.raises(StateError, match="expected a state"):
            checkpoint.describe(thing)


KEYS = (
    "op at inputs own given held length structure columns file path offset plan number position epoch iteration error"
)
KEYS += " message fingerprint operator x\n"
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(np.arange(3)))
ODD = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split(" ")), inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None, max_examples=60)
@given(ODD)
@example({"op": "x", "held": True, "feeds": [{"length": 1, "structure": 0, "columns": []}]})
def test_any_content_of_a_state_gives_a_printable_description(data):
    state = copy.deepcopy(iter(Dataset.range(9).batch(2)).state_dict())
    for wrong in ({**state, "operator": data}, {**state, "plan": data, "elements": data, "version": data}, {"a": data}):
        text = checkpoint.describe(wrong)
        assert all(line.isprintable() for line in text.splitlines())

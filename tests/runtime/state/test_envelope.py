"""Tests of the envelope of a state: pipeline, version and digest; invalid states raise only StateError."""

import json

import numpy as np
import pytest

import dataset as library
from dataset import Dataset, StateError, TFRecordDataset, checkpoint
from dataset.testing import assert_elements_equal, no_leaks, outcomes
from support.pipelines import double
from support.resuming import damaged, paths_in, resealed
from support.states import state_after
from support.tfrecord_files import write_records


def refusal(dataset, state):
    with pytest.raises(StateError) as found, iter(dataset) as iterator:
        iterator.load_state_dict(state)
    return str(found.value)


BASE = Dataset.range(1000).shuffle(100, seed=1).batch(32)
OTHERS = [
    (
        Dataset.range(1000).shuffle(50, seed=1).batch(32),
        "they differ at op 2: shuffle(100, seed=1) there, shuffle(50, seed=1) here",
    ),
    (Dataset.range(1000).shuffle(100, seed=1).batch(16), "they differ at op 3: batch(32) there, batch(16) here"),
    (Dataset.range(999).shuffle(100, seed=1).batch(32), "they differ at op 1: range(1000) there, range(999) here"),
    (Dataset.range(1000).shuffle(100, seed=1), "they differ at op 3: batch(32) there, no op here"),
    (BASE.map(double), "they differ at op 4: no op there, map(double) here"),
]


@pytest.mark.parametrize(("other", "words"), OTHERS, ids=[words for _, words in OTHERS])
def test_the_state_of_another_pipeline_says_which_op_differs(other, words):
    state = state_after(BASE, 1)
    message = refusal(other, state)
    assert "belongs to another pipeline" in message
    assert words in message
    assert "the state is of range(1000).shuffle(100, seed=1).batch(32)" in message
    assert state["fingerprint"] in message


def test_of_plans_with_several_inputs_the_op_is_named_too_and_arguments_may_not_be_shown():
    def make(size, *, length=5):
        slices = Dataset.from_tensor_slices(np.zeros(length))
        return Dataset.zip(slices, Dataset.range(9).shuffle(size, seed=1)).map(lambda x, y: x + y)

    message = refusal(make(4), state_after(make(3), 1))
    assert "shuffle(3, seed=1) there, shuffle(4, seed=1) here" in message
    assert "zip(from_tensor_slices, range(9).shuffle(3, seed=1)).map(<lambda>)" in message
    message = refusal(make(3, length=6), state_after(make(3), 1))
    assert "from_tensor_slices" in message
    assert "with arguments that its text does not show" in message


def test_the_state_of_a_long_pipeline_stays_small_and_says_what_it_can():
    def make(last):
        dataset = Dataset.range(1000)
        for _ in range(200):
            dataset = dataset.map(double, num_parallel_calls=1)
        return dataset.map(last)

    state = state_after(make(double), 1)
    assert len(json.dumps(state["plan"])) < 1000
    assert "not shown" in refusal(make(resealed), state)


def test_names_that_users_chose_cannot_make_a_state_large_or_spoil_a_message():
    named = type("A\n\u202e" * 1000, (), {"__call__": lambda self, x: x})()
    state = state_after(Dataset.range(5).map(named), 1)
    assert len(json.dumps(state["plan"])) < 400
    message = refusal(Dataset.range(5).map(double), state)
    assert message.isprintable()
    assert len(message) < 700


def test_a_state_of_another_version_says_who_wrote_it_whatever_else_is_in_it():
    state = state_after(BASE, 1)
    for other in (
        {**state, "version": 6},
        {"version": 4, "library": "0.1.0", "news": []},
        {"version": 1, "operator": {}},
    ):
        message = refusal(BASE, other)
        assert f"the state has version {other['version']}" in message
        assert "this library, " in message
        assert "reads version 5" in message
    for version in (True, "2", None, 2.0, [2]):
        refusal(BASE, {**state, "version": version})
    assert library.__version__ == state["library"]
    renamed = resealed({**state, "library": "9.9"})
    iter(BASE).load_state_dict(renamed)  # the version of the library is information
    assert "written by version 9.9" in refusal(BASE, {**renamed, "version": 4})


def test_what_is_missing_or_too_much_is_named():
    state = state_after(BASE, 1)
    for key in set(state) - {"version"}:
        assert f"incomplete: it has no '{key}'" in refusal(BASE, {k: v for k, v in state.items() if k != key})
    assert "['more']" in refusal(BASE, resealed({**state, "more": 1}))
    for thing in (None, 3, "x", b"x", [], {}, {"a": 1}, {1: 2}, np.zeros(2), state.items()):
        assert "expected what state_dict() returned" in refusal(BASE, thing)


def test_the_state_counts_the_elements_that_were_returned():
    dataset = Dataset.range(10).prefetch(3)
    iterator = iter(dataset)
    for count in [*range(11), 10]:
        state = iterator.state_dict()
        resumed = iter(dataset)
        resumed.load_state_dict(state)
        assert state["elements"] == resumed.state_dict()["elements"] == count
        next(resumed, None)
        assert resumed.state_dict()["elements"] == min(10, count + 1)
        next(iterator, None)


def test_an_iterator_that_refuses_leaves_no_threads_or_files(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_records(path, [b"%d" % number for number in range(50)])
    dataset = TFRecordDataset(path).map(bytes, num_parallel_calls=2).shuffle(10, seed=1).prefetch(2)
    state = state_after(dataset, 5)
    wrong = resealed({**state, "operator": {**state["operator"], "inputs": [3]}})
    with no_leaks(), iter(dataset) as iterator:
        next(iterator)
        for _ in range(5):
            with pytest.raises(StateError):
                iterator.load_state_dict(wrong)
        assert len(outcomes(iterator)) == 49


# JSON.


def test_no_character_of_the_json_text_can_be_changed_unseen():
    def make():
        return Dataset.range(9).map(double).shuffle(3, seed=1)

    expected = outcomes(iter(make()))[1:]
    text = json.dumps(checkpoint.to_json(state_after(make(), 1)))
    iterator = iter(make())
    for place in range(len(text)):
        for character in {"0", "9", '"', "}", " ", "\u00e9"} - {text[place]}:
            try:
                data = json.loads(text[:place] + character + text[place + 1 :])
                iterator.load_state_dict(data)
            except (ValueError, StateError):
                continue
            with iter(make()) as resumed:
                resumed.load_state_dict(data)
                assert_elements_equal(outcomes(resumed), expected)


def test_deep_json_is_a_state_error():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    data = checkpoint.to_json(state_after(BASE, 1))
    for wrong in ({**data, "state": deep}, {**state_after(BASE, 1), "operator": deep}):
        assert "nested too deeply" in refusal(BASE, wrong)
    with pytest.raises(StateError, match="nested too deeply"):
        checkpoint.to_json({"a": deep})
    with pytest.raises(StateError):
        checkpoint.describe({"a": deep})


@pytest.mark.parametrize("count", [-1, -(2**63), 2**64, 2.5, "5", b"5", np.array(-2), 10**400], ids=repr)
def test_a_count_that_cannot_be_one_is_refused_before_any_operator_sees_it(count):
    """A negative position caused an infinite loop."""
    dataset = Dataset.from_tensor_slices(np.arange(6)).shuffle(6, seed=1).map(double).repeat(2)
    state = state_after(dataset, 3)
    for path in paths_in(state["operator"]):
        if path[-1:] in {("at",), ("finished",), ("epoch",)}:
            message = refusal(dataset, resealed(damaged(state, ("operator", *path), count)))
            assert "the state is damaged" in message


LONG = 1 << 20_000  # Python refuses to print this many digits


@pytest.mark.parametrize(
    "changes",
    [{"version": LONG}, {"elements": -LONG}, {"orders": [[LONG, "x"]]}, {"operator": {"op": "map", "at": LONG}}],
    ids=lambda changes: next(iter(changes)),
)
def test_an_integer_that_is_too_long_to_be_shown_is_refused_too(changes):
    dataset = Dataset.range(10).filter(lambda x: x >= 0).shuffle(4, seed=1)
    state = resealed(state_after(dataset, 1), **changes)
    refusal(dataset, state)
    refusal(dataset, checkpoint.to_json(state))
    for form in ({"state": LONG}, {LONG: 1, "format": checkpoint.to_json(state)["format"]}):
        with pytest.raises(StateError):
            checkpoint.from_json(form)

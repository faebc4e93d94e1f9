"""Tests that names in a saved state are compared with those of the pipeline's input, and are never opened directly."""

import builtins
import copy
import os
import pickle
from functools import partial

import pytest

from dataset import Dataset, StateError, TensorSpec, TextLineDataset, TFRecordDataset, checkpoint, set_random_seed
from support.resuming import resealed
from support.states import rest_of, state_after
from support.tfrecord_files import frames

slices = Dataset.from_tensor_slices


def generated(names):
    return Dataset.from_generator(lambda: iter(map(os.fsencode, names)), output_signature=TensorSpec((), bytes))


PIPELINES = {
    "list": TextLineDataset,
    "parallel reads": partial(TextLineDataset, num_parallel_reads=2),
    "shuffled": lambda names: TextLineDataset(slices(names).shuffle(2, seed=1).repeat(2)),
    "generated, shuffled": lambda names: TextLineDataset(generated(names).shuffle(2, seed=3)),
    "concatenated": lambda names: TextLineDataset(slices(names[:1]).concatenate(slices(names[1:]))),
    "flat_map of generated": lambda names: generated(names).flat_map(TextLineDataset),
    "nested": lambda names: slices([0, 1]).flat_map(lambda _: slices(names).flat_map(TextLineDataset)),
    "interleave": lambda names: slices(names).repeat(2).interleave(TextLineDataset, cycle_length=2, block_length=2),
    "interleave of shuffled": lambda names: (
        slices(names).shuffle(3, seed=3).repeat(2).interleave(TextLineDataset, cycle_length=4)
    ),
    "interleave of shuffled batches of generated": lambda names: (
        generated(names).shuffle(3, seed=3).batch(2).repeat(2).interleave(TextLineDataset, cycle_length=2)
    ),
    "interleave of choices, by a repeated order": lambda names: Dataset.choose_from_datasets(
        [generated(names), generated(names).shuffle(3, seed=4)], Dataset.range(2).repeat(4), stop_on_empty_dataset=False
    ).interleave(TextLineDataset, cycle_length=2),
    "interleave of what follows a whole epoch": lambda names: (
        generated(names).repeat(2).skip(len(names)).interleave(TextLineDataset, cycle_length=2)
    ),
    "nested interleave of rows of whole batches": lambda names: (
        generated(names)
        .batch(2, drop_remainder=True)
        .unbatch()
        .interleave(lambda name: TextLineDataset(name).interleave(Dataset.from_tensors, cycle_length=2), cycle_length=1)
    ),
    "interleave of batches across epochs without end": lambda names: (
        generated(names)
        .shuffle(3, seed=3)
        .repeat()
        .batch(2, drop_remainder=True)
        .interleave(TextLineDataset, cycle_length=2)
        .take(40)
    ),
    "parallel interleave": lambda names: (
        slices(names).repeat(2).interleave(TextLineDataset, cycle_length=2, num_parallel_calls=2)
    ),
    "zip": lambda names: Dataset.zip((TextLineDataset(names), TextLineDataset(names[::-1]))),
    "shard": lambda names: slices(names).shard(2, 0).interleave(TextLineDataset, cycle_length=2),
    "references": lambda names: TextLineDataset(names).shuffle(6, seed=1),
    "references, generated": lambda names: generated(names).repeat(2).flat_map(TextLineDataset).shuffle(6, seed=1),
    "prefetched": lambda names: TextLineDataset(slices(names).prefetch(2)).batch(2).unbatch().prefetch(2),
}


def write(folder, names=("x", "y", "z"), count=5):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("".join(f"{name}{i}\n" for i in range(count)))
    return [str(folder / name) for name in names]


def names_file(state, names):
    """Return whether a file is known: the position may be before the first one, whose name is not known yet."""
    return os.path.dirname(names[0]).encode() in pickle.dumps(state["operator"])  # noqa: PTH120


def replaced(value, old, new):
    """Return a part of a state in which every name has another prefix."""
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    if isinstance(value, bytes):
        return value.replace(os.fsencode(old), os.fsencode(new))
    return value.replace(old, new) if isinstance(value, str) else value


def forged(state, old, new):
    """Return the state with other names and a correct digest."""
    found = resealed({**copy.deepcopy(state), "operator": replaced(state["operator"], old, new)})
    assert found["operator"] != state["operator"]
    return found


@pytest.mark.parametrize("name", PIPELINES)
def test_other_files_are_refused_and_moved_ones_taken(name, tmp_path):
    make, names, others = PIPELINES[name], write(tmp_path / "a"), write(tmp_path / "b")
    whole = list(make(names))
    for count in (1, 3, 6, 9):
        state = state_after(make(names), count)
        if name == "prefetched" and not names_file(state, names):
            continue
        with pytest.raises(StateError) as found:
            rest_of(make(others), state)
        assert f"{tmp_path}/a/" in str(found.value)
        assert "moved=" in str(found.value)
        for moved in ({f"{tmp_path}/a/": f"{tmp_path}/b/"}, lambda path: path.replace("/a/", "/b/")):
            assert rest_of(make(others), state, moved=moved) == whole[count:]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_forged_name_opens_nothing(name, tmp_path, monkeypatch):
    make, names = PIPELINES[name], write(tmp_path / "a")
    write(tmp_path / "secret")
    states = [state_after(make(names), count) for count in (1, 3, 6, 9)]
    opened = []

    def noted(path, *arguments, original=open, **keywords):
        opened.append(str(path))
        return original(path, *arguments, **keywords)

    monkeypatch.setattr(builtins, "open", noted)
    list(make(names))
    assert set(names) & set(opened)
    for state in states:
        if names_file(state, names):
            for place in (f"{tmp_path}/secret/", "http://127.0.0.1:9/", "simplecache::http://127.0.0.1:9/"):
                with pytest.raises(StateError):  # a request would be an error of the connection
                    rest_of(make(names), forged(state, f"{tmp_path}/a/", place))
    assert not [path for path in opened if "secret" in path]


SOME_NAMES = {  # the names differ from pass to pass, and from iteration to iteration
    "interleave": lambda names: names.take(1).interleave(TextLineDataset, cycle_length=2),
    "interleave of repeated": lambda names: names.take(1).repeat(3).interleave(TextLineDataset, cycle_length=2),
    "repeated interleave": lambda names: names.skip(5).interleave(TextLineDataset, cycle_length=2).repeat(3),
    "interleave of a part of a cache": lambda names: (
        names.cache().take(1).repeat(2).interleave(TextLineDataset, cycle_length=2)
    ),
    "references": lambda names: TextLineDataset(names.take(2)).repeat(2).shuffle(3, seed=1),
    "nested": lambda names: slices([0, 1]).flat_map(lambda _: TextLineDataset(names.take(2))),
}


@pytest.mark.parametrize("name", SOME_NAMES)
@pytest.mark.parametrize("earlier", [0, 1])
def test_names_chosen_at_random_are_found_in_another_process(name, earlier, tmp_path):
    """The names in a state are searched in the order of the run that saved it, not in a new one."""
    names = write(tmp_path, "abcdef", count=2)

    def make(seed):
        set_random_seed(seed)  # as another process draws another one
        return SOME_NAMES[name](generated(names).shuffle(6))

    first, whole = make(1), make(1)
    for _ in range(earlier):
        list(first), list(whole)
    expected = list(whole)
    assert set(expected[:2]) != set(list(make(2))[:2])
    with iter(first) as iterator:
        states = [iterator.state_dict(), *(iterator.state_dict() for _ in iterator)]
    assert [rest_of(make(2), state) for state in states] == [expected[at:] for at in range(len(states))]
    with pytest.raises(StateError, match="moved="):
        rest_of(SOME_NAMES[name](generated(write(tmp_path / "other", "abcdef")).shuffle(6)), states[1])


def test_a_file_that_failed_or_ended_is_compared_too_and_so_is_the_order(tmp_path):
    """The position between two files is after the first one, whose name is in the state."""
    names, others = write(tmp_path / "a"), write(tmp_path / "b")
    state = state_after(TextLineDataset(names), 5)
    with pytest.raises(StateError, match=r"while reading .*, but the input has"):
        rest_of(TextLineDataset(others), state)
    with pytest.raises(StateError, match="has no such file at this position now"):
        rest_of(TextLineDataset(generated([])), state_after(TextLineDataset(generated(names)), 1))
    with pytest.raises(StateError, match=r"while reading '.*/y', but the input has '.*/x' at this position"):
        rest_of(TextLineDataset([names[1], names[0], names[2]]), state_after(TextLineDataset(names), 6))


@pytest.mark.parametrize("dataset", [TextLineDataset, lambda names: TextLineDataset(names).shuffle(4, seed=1)])
def test_checkpoints_of_moved_files(tmp_path, dataset):
    names, others = write(tmp_path / "a"), write(tmp_path / "b")
    with iter(dataset(names)) as iterator:
        next(iterator)
        checkpoint.save(tmp_path / "s", iterator)
        expected = list(iterator)
    with iter(dataset(others)) as iterator:
        with pytest.raises(StateError, match="moved="):
            checkpoint.restore(tmp_path / "s", iterator)
        checkpoint.restore(tmp_path / "s", iterator, moved={str(tmp_path / "a"): str(tmp_path / "b")})
        assert list(iterator) == expected


@pytest.mark.parametrize("moved", [1, "a", {"a": 1}, [("a", "b")]])
def test_moved_is_checked(tmp_path, moved):
    dataset = TextLineDataset(write(tmp_path / "a"))
    with pytest.raises(TypeError, match="moved must"):
        rest_of(dataset, state_after(dataset, 1), moved=moved)


def test_names_by_value_and_a_place_that_no_argument_has_are_refused(tmp_path):
    """If a state may hold an argument by value, it is checked before it is passed to functions of the library."""
    names, (secret,) = write(tmp_path / "a"), write(tmp_path / "b", ["x"])
    dataset = slices(names).interleave(TextLineDataset, cycle_length=2)
    indexed = slices(names).interleave(lambda name: TFRecordDataset(name, index=True), cycle_length=2)
    value = {"length": 1, "structure": ".", "columns": [{"shape": None, "values": [os.fsencode(secret)]}]}
    for kind, held, own, words in (
        (dataset, {}, {"place": 77}, "no argument at position 77"),
        (dataset, {"argument": value}, {}, None),
        (indexed, {"argument": value}, {}, None),
    ):
        state = state_after(dataset, 3)
        slot = state["operator"]["inputs"][1]
        slot["held"], slot["own"] = held, {"order": slot["own"]["order"], "ended": False, **own}
        with pytest.raises(StateError, match=words):
            rest_of(kind, resealed(state))


def test_an_indexed_file_is_not_opened_for_a_name_in_a_state(tmp_path):
    """The index is read or written when the function is called."""
    for folder in ("a", "secret"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_bytes(frames([b"1", b"2", b"3"]))
    # An order that is not replayable: prefetched names are saved by value.
    names = slices([str(tmp_path / "a" / "x")]).map(lambda name: name, num_parallel_calls=2, deterministic=False)
    dataset = names.flat_map(lambda name: TFRecordDataset(name, index=True))
    state = state_after(dataset, 1)
    assert rest_of(dataset, state) == [b"2", b"3"]
    with pytest.raises(StateError, match="which the input does not contain"):
        rest_of(dataset, forged(state, "/a/x", "/secret/x"))
    assert [file.name for file in (tmp_path / "secret").iterdir()] == ["x"]


def test_rows_of_other_batches_are_taken_whole(tmp_path):
    """A batch in a state has rows of several batches of the input, but no row of its own."""
    rows = [(os.fsencode(name), i) for i, name in enumerate(write(tmp_path))]
    pairs = Dataset.from_generator(lambda: iter(rows), output_signature=(TensorSpec((), bytes), TensorSpec((), int)))

    def make():
        batches = pairs.shuffle(3, seed=3).batch(2).repeat(4)
        return batches.interleave(lambda names, first: TextLineDataset(names).enumerate(first[0]), cycle_length=2)

    whole = list(make())
    states = [state_after(make(), count) for count in range(len(whole))]
    assert [rest_of(make(), state) for state in states] == [whole[count:] for count in range(len(whole))]
    state = states[20]
    (numbers,) = state["operator"]["inputs"][2]["held"]["argument"]["columns"][1]["values"]
    numbers["array"] = numbers["array"][::-1].copy()
    with pytest.raises(StateError, match="which the input does not contain"):
        rest_of(make(), resealed(state))


@pytest.mark.parametrize("make", [TextLineDataset, lambda names: names.interleave(TextLineDataset, cycle_length=2)])
def test_names_that_are_read_from_a_forged_place_are_looked_up(tmp_path, make):
    """A list of names has another name in the middle of a line."""
    names, (secret,) = write(tmp_path / "a"), write(tmp_path / "b", ["z"])
    (tmp_path / "list").write_text("\n".join([*names, f"{tmp_path}/no/{secret}", ""]))
    dataset = make(TextLineDataset(tmp_path / "list"))
    state = state_after(dataset, 2)
    assert rest_of(dataset.take(8), state_after(dataset.take(8), 2)) == list(dataset.take(8))[2:]
    middle = (tmp_path / "list").read_text().index(secret)
    place = {"path": str(tmp_path / "list"), "offset": middle, "number": 1}
    changed = replaced(copy.deepcopy(state), names[0], secret)
    changed["operator"]["inputs"][0]["own"] |= {"file": place, "first": None}
    changed["operator"].pop("given", None)
    with pytest.raises(StateError, match="which the input does not contain"):
        rest_of(dataset, resealed(changed))

"""Tests of to_jax with Orbax: its iterators are saved beside the weights, by Grain's handler."""

import json
import pathlib

import numpy as np
import pytest

from dataset import Dataset, StateError
from support.states import rest_of


def pipeline():
    return Dataset.range(40).shuffle(9, seed=1).map(lambda x: x * 2).batch(3).prefetch(2).to_jax()


def batches(iterator):
    return [np.asarray(batch).tolist() for batch in iterator]


def after(steps):
    """Return an iterator after some steps. The 14th batch is the last one; there is also a state after it."""
    iterator = iter(pipeline())
    for _ in range(steps):
        next(iterator, None)
    return iterator


def by_grains_handler(directory, iterator):
    from etils import epath
    from grain.checkpoint import CheckpointHandler

    CheckpointHandler().save(epath.Path(directory), iterator)
    return lambda fresh: CheckpointHandler().restore(epath.Path(directory), fresh)


def by_orbax(directory, iterator):
    import grain
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(pathlib.Path(directory) / "run") as manager:
        weights = {"w": np.arange(3.0)}
        saved = ocp.args.Composite(
            weights=ocp.args.StandardSave(weights), data=grain.checkpoint.CheckpointSave(iterator)
        )
        manager.save(5, args=saved)
        manager.wait_until_finished()

    def restore(fresh):
        with ocp.CheckpointManager(pathlib.Path(directory) / "run") as manager:
            wanted = ocp.args.Composite(
                weights=ocp.args.StandardRestore(weights), data=grain.checkpoint.CheckpointRestore(fresh)
            )
            found = manager.restore(manager.latest_step(), args=wanted)
        assert found["weights"]["w"].tolist() == [0, 1, 2]
        return found["data"]

    return restore


pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of modules that Grain and Orbax import


@pytest.mark.explore  # it needs Grain and Orbax
@pytest.mark.parametrize(
    ("save", "steps"), [(by_grains_handler, 0), (by_grains_handler, 14), (by_orbax, 4), (by_orbax, 15)]
)
def test_an_iterator_resumes_where_the_checkpoint_was_saved_twice(tmp_path, save, steps):
    first = after(steps)
    (tmp_path / "one").mkdir()
    restore = save(tmp_path / "one", first)
    expected = batches(first)
    second = iter(pipeline())
    assert restore(second) is second
    found = batches([next(second)]) if expected else []
    (tmp_path / "two").mkdir()
    restore = save(tmp_path / "two", second)
    found += batches(restore(after(2)))
    assert found == expected


def test_a_state_is_bytes_of_json_with_the_content_of_state_dict():
    iterator = after(3)
    state, same = iterator.get_state(), iterator.state_dict()
    assert type(state) is bytes
    rest = batches(iterator)
    for form in (state, state.decode(), json.loads(state)):
        resumed = iter(pipeline())
        resumed.set_state(form)
        assert batches(resumed) == rest
    assert batches(rest_of(pipeline(), same)) == rest


def test_anything_but_a_state_of_this_pipeline_is_refused_and_changes_nothing():
    iterator = after(3)
    for bad in (b"", b"{", b"[]", b"null", b"7", b"{}", "text", {}, [], None, b"\xff", b"[" * 100_000):
        with pytest.raises(StateError):
            iterator.set_state(bad)
    with pytest.raises(StateError, match="another pipeline"):
        iterator.set_state(iter(Dataset.range(3).batch(2).to_jax()).get_state())
    assert batches(iterator) == batches(after(3))

"""save with checkpoint_args: one that was interrupted goes on from its last checkpoint."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, StateError
from dataset.plan.plain import state_from_json, state_to_json
from dataset.testing import assert_elements_equal, no_leaks
from support.op_cases import fail_at


class Source:
    """A pipeline that fails at element ``bad``, and remembers for which elements it was called."""

    def __init__(self, size=20, bad=None):
        self.size, self.bad, self.calls = size, bad, []

    def make(self):
        return Dataset.range(self.size).shuffle(5, seed=1).map(self.element)

    def element(self, x):
        if len(self.calls) == self.bad:
            raise ValueError("interrupted")
        self.calls.append(int(x))
        return x, b"x" * int(x)

    def save(self, path, **more):
        self.make().save(path, checkpoint_args=args_of(path, checkpoint_interval=3, **more))


def args_of(path, **more):
    return {"directory": f"{path}-checkpoints", "max_to_keep": 2} | more


def interrupted(path, bad=10, **more):
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=bad).save(path, **more)


def saved_anew(path):
    """Save without interruption. Return how many elements that took."""
    source = Source()
    source.save(path)
    assert_elements_equal(list(Dataset.load(path)), expected())
    return len(source.calls)


def checkpoints(path):
    return sorted(p.name for p in Path(f"{path}-checkpoints").iterdir())


def expected():
    return [(x, b"x" * int(x)) for x in Dataset.range(20).shuffle(5, seed=1)]


@pytest.mark.parametrize("bad", [0, 2, 3, 10, 19, 20])
def test_goes_on_from_the_last_checkpoint(path, bad):
    with no_leaks():
        if bad < 20:
            interrupted(path, bad)
            with pytest.raises(FileNotFoundError):
                Dataset.load(path)
        second = Source()
        second.save(path)
    done = bad - bad % 3 if bad < 20 else 0
    assert second.calls == [int(x) for x, _ in expected()][done:]
    assert_elements_equal(list(Dataset.load(path)), expected())
    assert checkpoints(path) == []
    assert [p for p in Path(path).iterdir() if p.suffix == ".lock"] == []


def test_may_be_interrupted_again_and_again_with_shards_and_compression(path):
    shards = lambda x, text: x % 3
    arguments = args_of(path, max_to_keep=1, checkpoint_interval=4, checkpoint_name="c")
    for bad in (6, 1, 5, 7):
        with pytest.raises(ValueError, match="interrupted"):
            Source(bad=bad).make().save(path, "GZIP", shards, arguments)
        (name,) = checkpoints(path)
        assert name.startswith("c-")
    Source().make().save(path, "GZIP", shards, arguments)
    loaded = Dataset.load(path, reader_func=lambda d: d.flat_map(lambda x: x))
    assert_elements_equal(list(loaded), sorted(expected(), key=lambda pair: pair[0] % 3))
    assert loaded.cardinality() == 20


@pytest.mark.parametrize(("keep", "left"), [(1, 1), (3, 3), (None, 6)])
def test_keeps_so_many_checkpoints(path, keep, left):
    interrupted(path, 19, max_to_keep=keep)
    assert len(checkpoints(path)) == left


def test_without_an_interval_bytes_count(path):
    large = Dataset.range(100).map(fail_at(90)).map(lambda x: np.full(1 << 16, x))
    with pytest.raises(ValueError, match="bad 90"):
        large.save(path, checkpoint_args=args_of(path, max_to_keep=None))
    assert 2 <= len(checkpoints(path)) <= 3


def test_checkpoints_stay_as_private_as_the_first_was_made(path):
    interrupted(path, 4)
    for name in checkpoints(path):
        Path(f"{path}-checkpoints", name).chmod(0o600)
    interrupted(path, 9)
    assert len(checkpoints(path)) == 2
    assert {Path(f"{path}-checkpoints", name).stat().st_mode & 0o777 for name in checkpoints(path)} == {0o600}


def test_what_was_saved_before_stays_until_the_end(path):
    Dataset.range(3).save(path)
    interrupted(path)
    assert list(Dataset.load(path)) == [0, 1, 2]
    assert saved_anew(path) == 11


def test_starts_anew_where_the_files_are_gone(path):
    interrupted(path)
    Dataset.range(3).save(path)  # which removes what no process writes any more
    assert saved_anew(path) == 20


def test_a_checkpoint_of_a_save_that_is_complete_is_of_no_use(path):
    interrupted(path)
    shutil.copytree(f"{path}-checkpoints", f"{path}-old")
    saved_anew(path)
    shutil.copytree(f"{path}-old", f"{path}-checkpoints", dirs_exist_ok=True)
    assert saved_anew(path) == 20


def test_shards_of_a_later_time_are_removed_and_other_files_stay(path):
    interrupted(path)
    (run,) = (found for found in Path(path).iterdir() if found.is_dir())
    others = ["0000001.tfrecord", "00000001.tfrecord.bak", "00000001.tfrecord\n", "a00000001.tfrecord"]
    for name in [*others, "00000001.tfrecord"]:
        (run / name).write_text("precious")
    assert saved_anew(path) == 11
    assert sorted(found.name for found in run.iterdir()) == sorted(["00000000.tfrecord", *others])


CHANGES = {
    "no writer": lambda state: state.pop("writer"),
    "no run": lambda state: state["writer"].pop("run"),
    "a shard without a number": lambda state: state["writer"]["shards"][0].pop("number"),
    "a size that is not a number": lambda state: state["writer"]["shards"][0].update(size="x"),
    "components of another kind": lambda state: state["writer"].update(components=[{"kind": "object"}]),
    "not a dict": lambda state: state.update(writer=3),
}


def changed(path, change):
    """Change the last checkpoint, with a digest that fits, as an attacker could."""
    checkpoint = Path(f"{path}-checkpoints", max(checkpoints(path), key=lambda name: int(name[5:-5])))
    state = state_from_json(json.loads(checkpoint.read_text()))
    change(state)
    checkpoint.write_text(json.dumps(state_to_json(state)))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_checkpoint_says_is_not_believed(path, change):
    interrupted(path)
    changed(path, change)
    with pytest.raises(DataLossError, match=r"ckpt-9\.json"):
        Source().save(path)


@pytest.mark.parametrize("change", [{"size": 1 << 40}, {"size": -1}, {"file": 7}, {"run": "0123456789abcdef"}], ids=str)
def test_a_checkpoint_that_names_another_shard_or_run_is_of_no_use(path, change):
    interrupted(path)
    changed(path, lambda state: (state["writer"] if "run" in change else state["writer"]["shards"][0]).update(change))
    assert saved_anew(path) == 20


def test_a_state_that_the_pipeline_cannot_restore_is_an_error(path):
    interrupted(path)
    changed(path, lambda state: state["iteration"].update(elements=7))  # its own digest does not fit
    with pytest.raises(StateError, match="digest") as caught:
        Source().save(path)
    assert "delete the checkpoints" in caught.value.__notes__[-1]


def test_a_checkpoint_of_another_process_is_an_error(path):
    def shard(rank, bad):
        return Dataset.range(20).map(fail_at(bad)).shard_by_process(rank, 2)

    arguments = args_of(path, checkpoint_interval=2)
    with pytest.raises(ValueError, match="bad 12"):
        shard(0, 12).save(path, checkpoint_args=arguments)
    with pytest.raises(StateError, match="the state is from process 0 of 2"):
        shard(1, 12).save(path, checkpoint_args=arguments)


def test_a_checkpoint_of_another_save_is_an_error(path):
    interrupted(path)
    with pytest.raises(StateError, match=r"the state belongs to another pipeline: .*\n.*delete the checkpoints"):
        Dataset.range(5).save(path, checkpoint_args=args_of(path))
    with pytest.raises(StateError, match="belongs to another path or compression"):
        Source().save(path + "2", directory=f"{path}-checkpoints")
    assert saved_anew(path) == 11  # the failed attempts removed nothing


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": "x", "about": {}, "state": {}}'])
def test_a_damaged_checkpoint_says_so(path, content):
    Path(f"{path}-checkpoints").mkdir()
    Path(f"{path}-checkpoints", "ckpt-3.json").write_bytes(content)
    with pytest.raises(DataLossError, match=r"ckpt-3\.json"):
        Source().save(path)


WRONG_TYPES = [{"directory": 3}, {"step_counter": 3}, {"checkpoint": 3}, {"max_to_keep": "1"}]
WRONG_VALUES = [{"max_to_keep": 0}, {"checkpoint_interval": 0}, {"checkpoint_name": "a/b"}]


def test_what_is_no_checkpoint_args(path):
    whole = {"directory": "a", "max_to_keep": 1}
    incomplete = [3, {"directory": "a"}, {"max_to_keep": 1}]
    for error, wrong in {TypeError: [*incomplete, *WRONG_TYPES], ValueError: WRONG_VALUES}.items():
        for each in wrong:
            arguments = each if each in incomplete else whole | each
            with pytest.raises(error, match=r"save\(\): |path"):
                Dataset.range(3).save(path, checkpoint_args=arguments)
    assert not Path(path).exists()

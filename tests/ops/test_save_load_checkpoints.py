"""save with checkpoint_args: one that was interrupted goes on from its last checkpoint."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, StateError
from dataset.testing import assert_elements_equal, no_leaks


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
        arguments = {"directory": f"{path}-checkpoints", "max_to_keep": 2, "checkpoint_interval": 3} | more
        self.make().save(path, checkpoint_args=arguments)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "saved")


def checkpoints(path):
    return sorted(p.name for p in Path(f"{path}-checkpoints").iterdir())


def expected():
    return [(x, b"x" * int(x)) for x in Dataset.range(20).shuffle(5, seed=1)]


@pytest.mark.parametrize("bad", range(0, 21, 2))
def test_goes_on_from_the_last_checkpoint(path, bad):
    first = Source(bad=bad)
    with no_leaks():
        if bad < 20:
            with pytest.raises(ValueError, match="interrupted"):
                first.save(path)
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
    arguments = {"directory": f"{path}-checkpoints", "max_to_keep": 1, "checkpoint_interval": 4, "checkpoint_name": "c"}
    for bad in (6, 1, 5, 7, None):
        source = Source(bad=bad)
        if bad is None:
            source.make().save(path, "GZIP", shards, arguments)
            break
        with pytest.raises(ValueError, match="interrupted"):
            source.make().save(path, "GZIP", shards, arguments)
        assert len(checkpoints(path)) == 1
        assert checkpoints(path)[0].startswith("c-")
    loaded = Dataset.load(path, reader_func=lambda d: d.flat_map(lambda x: x))
    assert_elements_equal(list(loaded), sorted(expected(), key=lambda pair: pair[0] % 3))
    assert loaded.cardinality() == 20


def test_keeps_so_many_checkpoints(path):
    for keep, left in ((1, 1), (3, 3), (None, 6)):
        with pytest.raises(ValueError, match="interrupted"):
            Source(bad=19).save(path, max_to_keep=keep)
        assert len(checkpoints(path)) == left
        shutil.rmtree(f"{path}-checkpoints")


def test_without_an_interval_bytes_count(path):
    def make(x):
        if x == 90:
            raise ValueError("interrupted")
        return np.full(1 << 16, x)

    with pytest.raises(ValueError, match="interrupted"):
        Dataset.range(100).map(make).save(
            path, checkpoint_args={"directory": f"{path}-checkpoints", "max_to_keep": None}
        )
    assert 2 <= len(checkpoints(path)) <= 3


def test_checkpoints_stay_as_private_as_the_first_was_made(path):
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=4).save(path)
    for name in checkpoints(path):
        Path(f"{path}-checkpoints", name).chmod(0o600)
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=9).save(path)
    assert len(checkpoints(path)) == 2
    assert {Path(f"{path}-checkpoints", name).stat().st_mode & 0o777 for name in checkpoints(path)} == {0o600}


def test_what_was_saved_before_stays_until_the_end(path):
    Dataset.range(3).save(path)
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=10).save(path)
    assert list(Dataset.load(path)) == [0, 1, 2]
    Source().save(path)
    assert_elements_equal(list(Dataset.load(path)), expected())


def test_starts_anew_where_the_files_are_gone(path):
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=10).save(path)
    Dataset.range(3).save(path)  # which removes what nobody writes any more
    source = Source()
    source.save(path)
    assert len(source.calls) == 20
    assert_elements_equal(list(Dataset.load(path)), expected())


def test_a_checkpoint_of_a_save_that_is_complete_is_of_no_use(path):
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=10).save(path)
    shutil.copytree(f"{path}-checkpoints", f"{path}-old")
    Source().save(path)
    shutil.copytree(f"{path}-old", f"{path}-checkpoints", dirs_exist_ok=True)
    source = Source()
    source.save(path)
    assert len(source.calls) == 20
    assert_elements_equal(list(Dataset.load(path)), expected())


def test_a_checkpoint_of_another_save_is_an_error(path):
    with pytest.raises(ValueError, match="interrupted"):
        Source(bad=10).save(path)
    arguments = {"directory": f"{path}-checkpoints", "max_to_keep": 1}
    with pytest.raises(StateError, match="belongs to another pipeline, path or compression"):
        Dataset.range(5).save(path, checkpoint_args=arguments)
    with pytest.raises(StateError, match="belongs to another pipeline, path or compression"):
        Source().save(path + "2", **arguments)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": "x", "about": {}, "state": {}}'])
def test_a_damaged_checkpoint_says_so(path, content):
    Path(f"{path}-checkpoints").mkdir()
    Path(f"{path}-checkpoints", "ckpt-3.json").write_bytes(content)
    with pytest.raises(DataLossError, match=r"ckpt-3\.json"):
        Source().save(path)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (3, TypeError),
        ({}, TypeError),
        ({"directory": "a"}, TypeError),
        ({"max_to_keep": 1}, TypeError),
        ({"directory": 3, "max_to_keep": 1}, TypeError),
        ({"directory": "a", "max_to_keep": 0}, ValueError),
        ({"directory": "a", "max_to_keep": "1"}, TypeError),
        ({"directory": "a", "max_to_keep": 1, "checkpoint_interval": 0}, ValueError),
        ({"directory": "a", "max_to_keep": 1, "checkpoint_name": "a/b"}, ValueError),
        ({"directory": "a", "max_to_keep": 1, "step_counter": 3}, TypeError),
        ({"directory": "a", "max_to_keep": 1, "checkpoint": 3}, TypeError),
    ],
)
def test_what_is_no_checkpoint_args(path, arguments, error):
    with pytest.raises(error, match=r"save\(\): |path"):
        Dataset.range(3).save(path, checkpoint_args=arguments)
    assert not Path(path).exists()

"""snapshot: the elements of a first full run, for all later runs of the same pipeline."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import unoptimized

CALLS = deque()  # which counts by its type, so that its content makes no other pipeline of it


def count(x):
    CALLS.append(int(x))
    return x


@pytest.fixture(autouse=True)
def _no_calls_yet():
    CALLS.clear()


def counting(stop=6):
    return Dataset.range(stop).map(count)


def flat(shards):
    return shards.flat_map(lambda shard: shard)


def files_in(path, pattern="*"):
    return [found for found in Path(path).rglob(pattern) if found.is_file()]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: Dataset.range(7).shuffle(7, seed=1).snapshot(path, "GZIP").repeat(2).batch(3),
        lambda path: Dataset.range(6).map(fail_at(2)).snapshot(path, shard_func=lambda x: x % 3).repeat(2),
    ],
)
def test_keeps_the_whole_contract_while_writing(new, make):
    check_operator(lambda: make(new()), positions=10)


@pytest.mark.parametrize("reader", [None, lambda d: flat(d.shuffle(4, seed=1)).prefetch(2)])
def test_keeps_the_whole_contract_while_reading(path, reader):
    make = lambda: Dataset.range(23).map(lambda x: (x, str(x))).snapshot(path, reader_func=reader)
    list(make())
    found = check_operator(make, positions=8)
    assert sorted(int(x) for x, _ in found) == list(range(23))


def test_takes_one_element_for_each_and_nothing_for_the_spec(new):
    check_laziness(lambda numbers: numbers.snapshot(new()), lambda k: k)
    path = new()
    assert Dataset.range(3).snapshot(path).map(lambda x: x).element_spec.dtype == np.int64
    assert not Path(path).exists()


def test_another_pipeline_has_a_snapshot_of_its_own(path):
    assert list(counting(3).snapshot(path)) == [0, 1, 2]
    assert list(counting(4).snapshot(path)) == [0, 1, 2, 3]
    assert [int(x) for x in Dataset.range(3).map(lambda x: x + 1).snapshot(path)] == [1, 2, 3]
    assert [int(x) for x in Dataset.range(3).map(lambda x: x + 2).snapshot(path)] == [2, 3, 4]
    list(Dataset.range(3).snapshot(path))
    list(Dataset.range(3).snapshot(path, "GZIP"))
    list(Dataset.range(3).snapshot(path, shard_func=lambda x: 0))
    assert len(list(Path(path).iterdir())) == 7
    list(Dataset.range(3).snapshot(path, None))  # which AUTO is
    list(Dataset.range(3).snapshot(path, reader_func=flat))
    list(unoptimized(Dataset.range(3).snapshot(path)))
    assert len(list(Path(path).iterdir())) == 7


def test_two_writers_at_once_both_see_everything_and_the_first_to_end_is_kept(path):
    one, two = iter(counting().snapshot(path)), iter(counting().snapshot(path))
    assert list(zip(one, two, strict=True)) == [(i, i) for i in range(6)]
    assert len(files_in(path, "metadata.json")) == 1
    assert len(files_in(path, "*.tfrecord")) == 4
    CALLS.clear()
    assert list(counting().snapshot(path)) == [0, 1, 2, 3, 4, 5]
    assert not CALLS


def test_a_shard_function_that_fails_fails_its_element(path):
    dataset = Dataset.range(4).snapshot(path, shard_func=lambda x: x if x != 2 else "two")
    for pulled in (dataset, dataset.batch(4)):
        found = outcomes(iter(pulled))
        (error,) = [one for one in found if isinstance(one, TypeError)]
        assert "shard_func must return an int, got 'two'" in str(error)
        assert "element 2" in error.__notes__[0]
    assert_elements_equal(found[1:], [np.array([3])])
    assert_elements_equal(outcomes(iter(dataset))[:2], ints(0, 1))


def test_a_directory_that_no_snapshot_wrote_is_refused(tmp_path):
    dataset = Dataset.range(5).snapshot(str(tmp_path))
    assert list(dataset) == list(range(5))
    (path,) = files_in(tmp_path, "metadata.json")
    path.unlink()
    Dataset.range(5).save(str(path.parent))
    with pytest.raises(SpecError, match=r"was written by save\(\), not by snapshot\(\)"):
        list(dataset)

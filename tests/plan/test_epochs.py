"""with_epoch: a new process takes up a training in the middle."""

import pickle

import pytest

from dataset import Dataset
from dataset.plan.epochs import with_epoch


def everything(dataset):
    return [tuple(map(float, element)) for element in dataset]


def pairs(folder):
    shuffled = Dataset.range(12).shuffle(12, seed=1)
    return Dataset.zip(shuffled, Dataset.random(seed=4, rerandomize_each_iteration=True))


def loaded(folder):
    if not (folder / "saved").exists():
        Dataset.range(12).enumerate().save(folder / "saved", shard_func=lambda number, x: x % 4)
    reader = lambda shards: shards.shuffle(4, seed=1).flat_map(lambda shard: shard)
    return Dataset.load(folder / "saved", reader_func=reader)


@pytest.mark.parametrize("make", [pairs, loaded])
def test_an_epoch_is_that_of_a_process_that_has_been_through_those_before_and_epochs_go_on_from_there(make, tmp_path):
    dataset = make(tmp_path)
    epochs = [everything(dataset) for _ in range(4)]
    assert epochs[0] != epochs[1]
    given = make(tmp_path)
    for number in range(4):
        later = Dataset(with_epoch(given.plan, number))
        assert [everything(later) for _ in epochs[number:]] == epochs[number:]
    assert everything(given) == epochs[0]  # the plan that is given stays where it is


def test_a_copy_stays_at_the_epoch():
    plan = with_epoch(Dataset.range(20).shuffle(20, seed=1).plan, 3)
    assert list(Dataset(pickle.loads(pickle.dumps(plan)))) == list(Dataset(plan))


def test_what_has_one_order_for_all_epochs_is_not_touched():
    fixed = Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False)
    assert list(Dataset(with_epoch(fixed.plan, 7))) == list(fixed)
    plain = Dataset.range(5).batch(2)
    assert with_epoch(plain.plan, 3) is plain.plan

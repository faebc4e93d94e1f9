"""Tests that a shuffle over remote files saves the positions of its elements, as for local files."""

import itertools
import pickle

import pytest

from dataset import Dataset, StateError, TFRecordDataset
from support.tfrecord_files import frames


@pytest.fixture
def paths(memory):
    for number in range(3):
        records = [b"%d-%d" % (number, index) + b"x" * 100 for index in range(30)]
        memory.pipe_file(f"/records/{number}", frames(records))
    return [f"memory://records/{number}" for number in range(3)]


def test_records(paths):
    make = lambda: TFRecordDataset(paths, buffer_size=300).shuffle(40, seed=1)
    iterator = iter(make())
    list(itertools.islice(iterator, 20))
    state = iterator.state_dict()
    assert len(pickle.dumps(state)) < 6000
    again = iter(make())
    again.load_state_dict(state)
    assert list(again) == list(iterator)


def test_an_object_that_is_gone(memory, paths):
    make = lambda: Dataset.from_tensor_slices(paths).interleave(TFRecordDataset).shuffle(40, seed=1)
    iterator = iter(make())
    next(iterator)
    state = iterator.state_dict()
    memory.rm("/records/1")
    with pytest.raises(StateError, match=r"memory://records/1"):
        iter(make()).load_state_dict(state)

"""Tests that a shuffle over remote files saves the positions of its elements, as for local files."""

import itertools
import pickle

import pytest

from dataset import Dataset, StateError, TextLineDataset, TFRecordDataset
from dataset.io import TFRecordWriter


@pytest.fixture
def paths(memory):
    found = []
    for number in range(3):
        with TFRecordWriter(f"memory://records/{number}") as writer:
            for index in range(30):
                writer.write(b"%d-%d" % (number, index) + b"x" * 100)
        found.append(f"memory://records/{number}")
    return found


def test_records(paths):
    make = lambda: TFRecordDataset(paths, buffer_size=300).shuffle(40, seed=1)
    iterator = iter(make())
    for _ in range(5):
        list(itertools.islice(iterator, 9))
        state = iterator.state_dict()
        assert len(pickle.dumps(state)) < 6000
        again = iter(make())
        again.load_state_dict(state)
        assert list(again) == list(iterator)
        iterator = iter(make())
        iterator.load_state_dict(state)


def test_an_object_that_is_gone(memory, paths):
    make = lambda: Dataset.from_tensor_slices(paths).interleave(TFRecordDataset).shuffle(40, seed=1)
    iterator = iter(make())
    next(iterator)
    state = iterator.state_dict()
    memory.rm("/records/1")
    with pytest.raises(StateError, match=r"memory://records/1"):
        iter(make()).load_state_dict(state)


def test_lines(memory):
    memory.pipe("/lines", b"".join(b"line %d\n" % index for index in range(100)))
    make = lambda: TextLineDataset("memory://lines", buffer_size=64).shuffle(30, seed=1)
    iterator = iter(make())
    list(itertools.islice(iterator, 40))
    again = iter(make())
    again.load_state_dict(iterator.state_dict())
    assert list(again) == list(iterator)

"""Tests of speculative pulls that the caller cannot observe: only their cost may differ."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from dataset import ClosedError, Dataset
from dataset.plan.structure import map_structure
from dataset.runtime.chunks.chunk import Chunk
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import advanced

COUNT = 3000


def warm(dataset):
    cached = dataset.cache()
    for _ in cached.batch(7):
        pass
    return cached


def array(x):
    return np.full(3, x)


DATASETS = {
    "range": Dataset.range(COUNT),
    "downwards": Dataset.range(COUNT, 0, -1, output_type=np.float32),
    "map": Dataset.range(COUNT).map(lambda x: x * 2),
    "filter": Dataset.range(2 * COUNT).filter(lambda x: x % 2 == 1),
    "failures": Dataset.range(COUNT).map(lambda x: 1 / (x % 700 - 3)),
    "slices": Dataset.from_tensor_slices((np.arange(2 * COUNT).reshape(COUNT, 2), np.arange(COUNT))),
    "dicts": Dataset.from_tensor_slices({"a": np.arange(COUNT), "b": (np.arange(COUNT), np.ones(COUNT))}),
    "bytes": Dataset.from_tensor_slices(np.array([b"%d" % x for x in range(COUNT)], object)),
    "cache": warm(Dataset.range(COUNT).map(array)),
    "cache of strings": warm(Dataset.range(COUNT).map(lambda x: b"%d" % x)),
}


def after(dataset, count):
    iterator = iter(dataset)
    return iterator, advanced(iterator, count)


def all_of(dataset):
    return outcomes(iter(dataset.filter(lambda *element: True)))  # a function is called for each element


@pytest.mark.parametrize("count", [0, 1, 5, 64, 701, 2999])
@pytest.mark.parametrize("name", DATASETS)
def test_a_place_is_behind_what_was_handed_out(name, count):
    dataset = DATASETS[name]
    everything = all_of(dataset)
    iterator, begun = after(dataset, count)
    state = iterator.state_dict()
    resumed = iter(dataset)
    resumed.load_state_dict(state)
    assert_elements_equal(begun + outcomes(resumed), everything)
    assert iterator.stats().elements == count
    assert iterator.skip(3) == min(3, len(everything) - count)
    assert_elements_equal(outcomes(iterator), everything[count + 3 :])


@pytest.mark.parametrize("name", DATASETS)
def test_elements_are_of_the_same_types_and_as_writable(name):
    first, *_, last = (x for x in outcomes(iter(DATASETS[name])) if not isinstance(x, Exception))
    assert map_structure(described, first) == map_structure(described, last)


def described(component):
    if not isinstance(component, np.ndarray):
        return type(component)
    return component.dtype, component.shape, component.flags.writeable


@dataclasses.dataclass
class Point:
    x: int
    made: ClassVar[list] = []

    def __post_init__(self):
        self.made.append(self.x)


def test_constructors_of_the_users_are_called_for_no_element_early():
    Point.made.clear()
    for count, _ in enumerate(Dataset.from_tensor_slices(Point(np.arange(300))), 1):
        assert len(Point.made) <= count + 3  # some calls for the spec
    assert count == 300


def test_an_interrupt_loses_nothing(monkeypatch):
    for name in ("range", "map", "cache"):
        dataset = DATASETS[name]
        iterator, begun = after(dataset, 100)
        rows, interrupts = Chunk.rows, [True]

        def interrupted(chunk, rows=rows, interrupts=interrupts):
            if interrupts:
                interrupts.clear()
                raise KeyboardInterrupt
            return rows(chunk)

        with monkeypatch.context() as patched:
            patched.setattr(Chunk, "rows", interrupted)
            with pytest.raises(KeyboardInterrupt):
                begun.extend(iterator)
        assert not interrupts
        # An element that extend() was adding is in the list.
        assert iterator.stats().elements == len(begun)
        assert_elements_equal(begun + list(iterator), list(dataset))


def test_nothing_comes_out_of_a_closed_iterator_or_one_of_another_process():
    iterator, _ = after(DATASETS["range"], 1000)
    iterator._coordinator.forked = True
    with pytest.raises(ClosedError, match="parent"):
        next(iterator)
    iterator._coordinator.forked = False
    iterator.close()
    assert iterator.stats().elements == 1000
    with pytest.raises(ClosedError, match="closed"):
        next(iterator)

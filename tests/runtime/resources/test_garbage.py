"""Tests of garbage collection at fixed steps: when it collects, and that the collector is restored."""

import gc
import os

import pytest

from dataset import Dataset
from support.pipelines import with_options
from support.process_helpers import exit_code_of, fork


def scheduled(every, count=100):
    return with_options(Dataset.range(count).map(str), garbage_collection=every)


@pytest.fixture
def collections():
    """Return a list to which the number of each collection is added, and restore the collector."""
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.unfreeze()  # the tests run with a frozen heap
    found = []

    def note(phase, info):
        if phase == "start" and info["generation"] == 2:
            found.append(len(found))

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    assert gc.isenabled() == enabled
    if frozen:
        gc.freeze()


def test_it_collects_at_the_same_elements_and_not_in_between(collections):
    steps, seen = [], 0
    iterator = iter(scheduled(30))
    for number, _ in enumerate(iterator):
        assert not gc.isenabled()
        assert gc.get_freeze_count()
        if len(collections) > seen:
            steps.append(number)
            seen = len(collections)
    assert steps == [0, 30, 60, 90]
    assert gc.isenabled()
    assert not gc.get_freeze_count()
    stats = iterator.stats()
    assert stats.garbage_collections == 3
    assert stats.garbage_collection_seconds > 0
    assert "\ngarbage collections: 3, " in repr(stats)


@pytest.mark.parametrize("end", ["close", "drop", "exhaust", "error"])
def test_the_collector_is_restored_at_every_end(collections, end):
    iterator = iter(scheduled(50))
    next(iterator)
    assert not gc.isenabled()
    if end == "close":
        iterator.close()
    elif end == "exhaust":
        list(iterator)
    elif end == "error":
        with pytest.raises(KeyError), iterator:
            raise KeyError
    del iterator
    assert gc.isenabled()
    assert not gc.get_freeze_count()


def test_the_last_of_several_iterations_restores_it(collections):
    first, second = iter(scheduled(50)), iter(scheduled(7))
    next(first), next(second)
    first.close()
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_what_the_program_has_set_is_kept(collections):
    gc.disable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    list(scheduled(50))
    assert not gc.isenabled()
    assert gc.get_freeze_count() >= frozen - 100  # some frozen objects may be gone
    gc.unfreeze()
    gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_collects_by_itself(collections):
    iterator = iter(scheduled(50))
    next(iterator)
    assert exit_code_of(fork(gc.isenabled)) == 0
    assert not gc.isenabled()
    iterator.close()

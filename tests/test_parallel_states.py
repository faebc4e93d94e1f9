"""Tests of states of parallel ops: saving does not wait, states hold positions, each element is returned once."""

import pickle
import threading
import types

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import no_leaks
from support.overlap import WAIT, Gate, double
from support.pipelines import with_options
from support.states import rest_of

SIZE = 60
ORDERS = {"in order": True, "in any order": False}
in_both_orders = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)


def promptly(function):
    """Return the result of the function; fail if it needs a gate to be opened."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive(), "it waits for work that is in progress"
    return found[0]


def parallel(calls=4, *, order=True):
    return {"num_parallel_calls": calls, "deterministic": order}


# Saving does not wait


@in_both_orders
def test_a_state_is_taken_at_once_while_all_workers_are_inside_the_function(order):
    function = Gate(1)
    dataset = Dataset.range(SIZE).map(function, **parallel(order=order))
    with no_leaks():
        iterator = iter(dataset)
        iterator._root._alone = False  # otherwise one worker is enough until the consumer waits
        assert next(iterator) == 0
        function.wait_for(4)
        state = promptly(iterator.state_dict)
        assert promptly(iterator.state_dict) == state
        function.opened.set()
        assert sorted(map(int, iterator)) == list(range(1, SIZE))
        function.called.clear()
        assert sorted(map(int, rest_of(dataset, state))) == list(range(1, SIZE))
        assert sorted(function.called) == list(range(1, SIZE))  # and for no element that was returned


def test_in_any_order_what_came_before_an_element_that_takes_long_is_not_made_again():
    function = Gate()

    def slow_at_first(x):
        if int(x) in {3, 7}:
            return function(x)
        function.called.append(int(x))
        return x

    dataset = Dataset.range(SIZE).map(slow_at_first, **parallel(order=False))
    iterator = iter(dataset)
    found = [int(next(iterator)) for _ in range(3)]  # in any order
    function.wait_for(1)
    state = promptly(iterator.state_dict)
    function.opened.set()
    iterator.close()
    function.called.clear()
    again = iter(dataset)
    again.load_state_dict(state)
    found += [int(next(again)) for _ in range(10)]
    second = promptly(again.state_dict)
    again.close()
    assert not set(found[:3]) & set(function.called)
    found += map(int, rest_of(dataset, second))
    assert sorted(found) == list(range(SIZE))


@in_both_orders
def test_a_state_is_taken_at_once_while_the_input_blocks(order):
    gate, reads = threading.Event(), threading.Semaphore(0)

    def numbers():
        for x in range(20):
            if x == 10:
                reads.release()
                assert gate.wait(WAIT)
            yield x

    dataset = Dataset.from_generator(numbers).map(double, **parallel(2, order=order))
    iterator = iter(dataset)
    found = [int(next(iterator)) for _ in range(3)]
    assert reads.acquire(timeout=WAIT)
    state = promptly(iterator.state_dict)
    gate.set()
    iterator.close()
    assert sorted(found + list(map(int, rest_of(dataset, state)))) == list(range(0, 40, 2))


# Positions, not elements


@in_both_orders
def test_a_state_holds_numbers_however_large_the_elements_are(order):
    dataset = Dataset.range(200).map(lambda x: np.full(50_000, x), **parallel(order=order))
    with iter(dataset.batch(2, **parallel(2)) if order else dataset) as iterator:
        for _ in range(30):
            next(iterator)
            assert len(pickle.dumps(iterator.state_dict())) < 4096


@in_both_orders
def test_elements_of_classes_that_a_state_cannot_hold_can_be_made_in_parallel(order):
    dataset = Dataset.range(SIZE).map(lambda x: types.SimpleNamespace(number=int(x)), **parallel(order=order))
    with iter(dataset) as iterator:
        found = [next(iterator).number for _ in range(7)]
        state = iterator.state_dict()
    assert sorted(found + [element.number for element in rest_of(dataset, state)]) == list(range(SIZE))


# Filters


@in_both_orders
def test_what_a_filter_leaves_out_is_not_remembered_one_by_one(order):
    kept = Dataset.range(40_000).map(lambda x: x, **parallel(2, order=order)).filter(lambda x: x in {5, 39_990})
    with iter(with_options(kept, optimization__filter_parallelization=True)) as iterator:
        assert {next(iterator), next(iterator)} == {5, 39_990}
        assert len(pickle.dumps(iterator.state_dict())) < 3000

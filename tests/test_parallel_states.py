"""Tests of states of parallel ops: saving does not wait, states hold positions, each element is returned once."""

import dataclasses
import pickle
import threading
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset
from dataset.ops.elementwise import Elementwise
from dataset.runtime.context import open_plan
from dataset.testing import no_leaks, outcomes
from support.overlap import WAIT, Gate, Work, double

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


def resumed(dataset, state):
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    return iterator


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
        assert sorted(map(int, resumed(dataset, state))) == list(range(1, SIZE))
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
    again = resumed(dataset, state)
    found += [int(next(again)) for _ in range(10)]
    second = promptly(again.state_dict)
    again.close()
    assert not set(found[:3]) & set(function.called)
    found += map(int, resumed(dataset, second))
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
    assert sorted(found + list(map(int, resumed(dataset, state)))) == list(range(0, 40, 2))


def test_batches_in_the_making_are_not_waited_for():
    function = Gate(8)
    dataset = Dataset.range(SIZE).map(function).batch(4, **parallel(2))
    iterator = iter(dataset)
    first = next(iterator)
    assert first.tolist() == [0, 1, 2, 3]
    function.wait_for(1)
    state = promptly(iterator.state_dict)
    function.opened.set()
    iterator.close()
    found = np.concatenate(list(resumed(dataset, state)))
    assert found.tolist() == list(range(4, SIZE))


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
    assert sorted(found + [element.number for element in resumed(dataset, state)]) == list(range(SIZE))


# The same as sequentially

delays = st.lists(st.sampled_from([0.0, 0.0, 0.0002, 0.001]), min_size=1, max_size=5).map(tuple)
works = st.builds(Work, delays, st.frozensets(st.integers(0, 25), max_size=4))
NOTHING = {"num_parallel_calls": None, "deterministic": True}


def odd_ones(x):
    if x == 11:
        raise ValueError("eleven")
    return x % 3 > 0


CHAINS = {
    "maps": lambda d, work, how: d.map(work, **how).map(lambda x: x + 1, **how).map(Work((0.0,), work.bad), **how),
    "filters": lambda d, work, how: d.map(work, **how).filter(odd_ones).map(lambda x: x + 1, **how),
    "filter below": lambda d, work, how: d.filter(lambda x: x % 4 > 0).map(work, **how).filter(odd_ones),
}


@pytest.mark.parametrize("make", list(CHAINS.values()), ids=list(CHAINS))
@settings(max_examples=25)
@given(
    work=works,
    forms=st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 3])), min_size=4, max_size=4),
    steps=st.lists(st.lists(st.integers(1, 9), max_size=3), min_size=3, max_size=3),
)
def test_states_go_between_ops_that_run_as_one_and_those_that_do_not(make, work, forms, steps):
    def pulled(operator, sizes):
        found = []
        for size in sizes:
            try:
                chunk = operator.pull(size)
            except ValueError as error:
                found.append(str(error))
            else:
                found += map(repr, () if chunk is None else chunk.rows())
        return found

    expected = [
        str(x) if isinstance(x, ValueError) else repr(x)
        for x in outcomes(iter(make(Dataset.range(26), work.at_once(), NOTHING)))
    ]
    found, state = [], None
    for form, sizes in zip(forms, [*steps, [5] * 30], strict=True):
        joined, calls = form
        plan = make(Dataset.range(26), work, parallel(calls)).plan
        coordinator, operator = open_plan(one_after_another(plan, calls, joined=joined))
        try:
            if state is not None:
                operator.load(state)
            found += pulled(operator, sizes)
            state = operator.save()
        finally:
            coordinator.shut_down(operator.close, wait=True)
    assert found == expected


def one_after_another(node, calls, *, joined, order=True):
    """Return the plan with the same parallelism for all ops; ``joined`` if they run as one stage."""
    node = node.with_inputs([one_after_another(source, calls, joined=joined, order=order) for source in node.inputs])
    if not isinstance(node, Elementwise):
        return node
    joined = joined and isinstance(node.source, Elementwise)
    return dataclasses.replace(node, num_parallel_calls=calls, deterministic=order, fused=joined, columnwise=None)


@in_both_orders
def test_what_a_filter_leaves_out_is_not_remembered_one_by_one(order):
    plan = Dataset.range(40_000).map(lambda x: x).filter(lambda x: x in {5, 39_990}).plan
    coordinator, operator = open_plan(one_after_another(plan, 2, joined=True, order=order))
    try:
        operator.controller.exclude("inline")
        assert operator.pull(1).only() == 5
        assert operator.pull(1).only() == 39_990
        assert len(operator._accepted) < 100
        assert len(pickle.dumps(operator.save())) < 2000
    finally:
        coordinator.shut_down(operator.close, wait=True)

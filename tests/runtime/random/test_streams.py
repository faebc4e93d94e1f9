"""Tests of random numbers as a function of key and position alone."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, set_random_seed
from dataset.runtime.random.streams import ElementGenerators, EpochCounter, EpochLedger, Stream, resolve_seed


@pytest.fixture(autouse=True)
def no_global_seed():
    set_random_seed(None)
    yield
    set_random_seed(None)


@given(st.lists(st.integers(0, 9), max_size=8))
def test_a_stream_does_not_depend_on_how_it_is_read(steps):
    stream = Stream(1, 2, 3)
    pieces = [stream.random(step) for step in steps]
    assert stream.position == sum(steps)
    assert np.array_equal(np.concatenate([*pieces, []]), Stream(1, 2, 3).random(sum(steps)))


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_stream_goes_on_at_any_position(position, before):
    whole = Stream(7).random(60)
    stream = Stream(7)
    stream.random(before)
    stream.seek(position)
    assert stream.position == position
    assert np.array_equal(stream.random(60 - position), whole[position:])


def test_a_far_position_costs_nothing():
    stream = Stream(7)
    stream.seek(10**15 + 3)
    ahead = stream.random(5)
    stream.seek(10**15)
    assert np.array_equal(stream.random(8)[3:], ahead)


WORDS = st.integers(0, 2**64 - 1)
KEYS = st.tuples(WORDS, WORDS, WORDS)


@given(KEYS, KEYS)
def test_other_keys_give_other_streams(a, b):
    same = np.array_equal(Stream(*a).random(4), Stream(*b).random(4))
    assert same == (a == b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 0, 0), (0, 1, 0)),
        ((5, 0, 1), (5, 1, 0)),
        ((2**32, 0, 0), (0, 1, 0)),
        ((1, 2, 0), (1 + (2 << 32), 0, 0)),
        ((2**63, 0, 0), (0, 2**31, 0)),
        ((0, 0, 1), (0, 0, 0)),
    ],
)
def test_numbers_do_not_run_into_each_other_in_a_key(a, b):
    assert not np.array_equal(Stream(*a).random(4), Stream(*b).random(4))


def test_negative_keys_are_keys():
    assert not np.array_equal(Stream(-1).random(4), Stream(1).random(4))
    assert np.array_equal(Stream(-1).random(4), Stream(2**64 - 1).random(4))


def test_numbers_are_uniform_between_zero_and_one():
    numbers = Stream(3).random(100_000)
    assert 0 <= numbers.min() < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.005
    assert np.all(abs(np.histogram(numbers, 10, (0, 1))[0] - 10_000) < 500)


def test_a_permutation_holds_every_number_and_is_the_same_at_every_position():
    stream = Stream(3)
    first = stream.permutation(50)
    stream.random(9)
    assert sorted(first) == list(range(50))
    assert np.array_equal(stream.permutation(50), first)
    assert not np.array_equal(Stream(4).permutation(50), first)


def test_a_permutation_is_drawn_from_other_numbers_than_the_stream():
    far = np.random.Generator(np.random.Philox(key=Stream(3)._seed.key, counter=2**128)).random(4)
    assert not np.isin(far, Stream(3).random(1000)).any()


def test_a_seed_means_the_same_every_time_and_none_does_not():
    assert resolve_seed(5) == resolve_seed(5) == resolve_seed(np.int64(5))
    assert resolve_seed(5) != resolve_seed(6)
    assert resolve_seed(-5) != resolve_seed(5)
    assert resolve_seed(None) != resolve_seed(None)
    assert 0 <= resolve_seed(0) < 2**64


def test_the_global_seed_repeats_the_sequence_of_ops():
    set_random_seed(1)
    first = [resolve_seed(None) for _ in range(3)]
    set_random_seed(1)
    assert [resolve_seed(None) for _ in range(3)] == first
    assert len(set(first)) == 3
    set_random_seed(2)
    assert resolve_seed(None) != first[0]


def test_both_seeds_count_where_both_are_given():
    alone = resolve_seed(5)
    set_random_seed(1)
    both = resolve_seed(5)
    set_random_seed(2)
    assert len({alone, both, resolve_seed(5)}) == 3


def test_the_global_seed_is_that_of_the_thread():
    set_random_seed(1)
    expected = resolve_seed(None)
    set_random_seed(1)
    found = []

    def other():
        set_random_seed(99)
        found.append(resolve_seed(None))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert resolve_seed(None) == expected != found[0]


@pytest.mark.parametrize("seed", [1.0, "1", True, [1]])
def test_a_seed_is_an_int(seed):
    with pytest.raises(TypeError, match="seed must be an int or None"):
        set_random_seed(seed)


def test_each_iterator_is_another_iteration():
    counter = EpochCounter()
    first, second = EpochLedger(), EpochLedger()
    assert [first.iteration(counter), second.iteration(counter), first.iteration(counter)] == [0, 1, 0]


def test_a_look_at_one_element_uses_up_no_order():
    counter = EpochCounter()
    assert EpochLedger(probing=True).iteration(counter) == 0
    assert EpochLedger().iteration(counter) == 0
    dataset = Dataset.range(20).shuffle(20, seed=3).map(lambda x: [x])
    fresh = Dataset.range(20).shuffle(20, seed=3).map(lambda x: [x])
    assert dataset.element_spec
    assert list(dataset) == list(fresh)


def test_a_resumed_ledger_is_in_the_saved_iteration():
    counter, ledger = EpochCounter(), EpochLedger()
    ledger.resume(counter, 99, 4)
    assert ledger.place(counter, 7) == (4, 99)


def test_two_threads_never_get_one_iteration_number():
    counter, found = EpochCounter(), []

    def draw():
        found.extend(counter.next_iteration() for _ in range(200))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(800))


def test_an_order_does_not_depend_on_how_it_is_asked_for():
    def dataset():
        return Dataset.range(50).shuffle(7, seed=3)

    one_by_one = [int(x) for x in dataset()]
    assert [int(x) for batch in dataset().batch(9) for x in batch] == one_by_one
    assert [int(x) for x in dataset().prefetch(5)] == one_by_one


def test_the_generator_of_an_element_is_philox_at_a_place_of_its_own():
    generators = ElementGenerators(5, 0, 1)
    reference = np.random.Philox(key=generators.at(0).bit_generator.state["state"]["key"], counter=7 << 64)
    assert generators.at(7).random(5).tolist() == np.random.Generator(reference).random(5).tolist()
    assert generators.at(7).random() == generators.at(7).random()


def test_generators_of_elements_never_meet():
    generators = ElementGenerators(5, 0, 1)
    counters = [generators.at(index).bit_generator.state["state"]["counter"].tolist() for index in (0, 1, 2, 2**40)]
    assert counters == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0], [0, 2**40, 0, 0]]


def test_generators_of_elements_are_none_of_the_streams_of_a_shuffle():
    first = {Stream(5, 0, epoch).random(1)[0] for epoch in range(3)}
    first |= {ElementGenerators(5, 0, epoch).at(index).random() for epoch in range(3) for index in range(3)}
    assert len(first) == 12


def test_a_generator_of_an_element_can_be_copied_and_spawns_repeatably():
    generator = ElementGenerators(1).at(3)
    generator.random(3)
    copied = pickle.loads(pickle.dumps(generator))
    assert copied.random() == generator.random()
    children = [child.random() for child in ElementGenerators(1).at(3).spawn(2)]
    assert children == [child.random() for child in ElementGenerators(1).at(3).spawn(2)]
    assert ElementGenerators(1).at(4).spawn(1)[0].random() not in children

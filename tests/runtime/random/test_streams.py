"""Tests of random numbers as a function of key and position alone."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataset import set_random_seed
from dataset.plan.random_state import RandomState
from dataset.runtime.random.streams import ElementGenerators, EpochLedger, Stream, resolve_seed
from support.process_helpers import in_thread


@given(st.lists(st.integers(0, 9), max_size=8), st.sampled_from([0, 1, 3, 4, 39, 10**15, 10**15 + 3]))
def test_a_stream_does_not_depend_on_how_it_is_read_and_continues_at_any_position(steps, start):
    stream = Stream(1, 2, 3)
    stream.random(sum(steps))
    stream.seek(start)
    pieces = [stream.random(step) for step in steps]
    assert stream.position == start + sum(steps)
    aligned = Stream(1, 2, 3)
    aligned.seek(start // 8 * 8)
    assert np.array_equal(np.concatenate([*pieces, []]), aligned.random(start % 8 + sum(steps))[start % 8 :])


KEYS = st.tuples(*[st.integers(0, 2**64 - 1)] * 3)


@given(KEYS, KEYS)
@example((1, 0, 0), (0, 1, 0))
@example((5, 0, 1), (5, 1, 0))
@example((2**32, 0, 0), (0, 1, 0))
@example((1, 2, 0), (1 + (2 << 32), 0, 0))
@example((2**63, 0, 0), (0, 2**31, 0))
@example((0, 0, 1), (0, 0, 0))
@example((-1, 0, 0), (1, 0, 0))
def test_other_keys_give_other_streams(a, b):
    same = np.array_equal(Stream(*a).random(4), Stream(*b).random(4))
    assert same == (a == b)
    assert np.array_equal(Stream(-1).random(4), Stream(2**64 - 1).random(4))


def test_numbers_are_uniform_between_zero_and_one():
    numbers = Stream(3).random(100_000)
    assert 0 <= numbers.min() < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.005
    assert np.all(abs(np.histogram(numbers, 10, (0, 1))[0] - 10_000) < 500)


def test_a_permutation_is_the_same_at_every_position_and_drawn_from_other_numbers_than_the_stream():
    stream = Stream(3)
    first = stream.permutation(50)
    stream.random(9)
    assert sorted(first) == list(range(50))
    assert np.array_equal(stream.permutation(50), first)
    assert not np.array_equal(Stream(4).permutation(50), first)
    far = np.random.Generator(np.random.Philox(key=stream._seed.key, counter=2**128)).random(4)
    assert not np.isin(far, Stream(3).random(1000)).any()


def test_a_seed_means_the_same_every_time_and_none_does_not():
    assert resolve_seed(5) == resolve_seed(5) == resolve_seed(np.int64(5))
    assert resolve_seed(5) != resolve_seed(6)
    assert resolve_seed(-5) != resolve_seed(5)
    assert resolve_seed(None) != resolve_seed(None)
    assert 0 <= resolve_seed(0) < 2**64


def test_the_global_seed_repeats_the_sequence_of_ops_and_both_seeds_count_where_both_are_given():
    found = {}
    for seed in (1, 2, None):
        for _ in range(2):
            set_random_seed(seed)
            found.setdefault(seed, []).append([resolve_seed(None), resolve_seed(None), resolve_seed(5)])
    assert [first == second for first, second in found.values()] == [True, True, False]
    assert len({number for first, _ in found.values() for number in first}) == 9


def test_the_global_seed_is_that_of_the_thread():
    def other():
        set_random_seed(99)
        return resolve_seed(None)

    set_random_seed(1)
    expected = resolve_seed(None)
    set_random_seed(1)
    found = in_thread(other).result()
    assert resolve_seed(None) == expected != found


@pytest.mark.parametrize("seed", [1.0, "1", True, [1]])
def test_a_seed_is_an_int(seed):
    with pytest.raises(TypeError, match="seed must be an int or None"):
        set_random_seed(seed)


def test_each_iterator_is_another_iteration_and_a_resumed_one_is_in_the_saved_iteration():
    random = RandomState(7)
    assert EpochLedger(probing=True).place(random) == (0, 7)  # a look at one element uses up no order
    first, second, resumed = EpochLedger(), EpochLedger(), EpochLedger()
    assert [ledger.place(random) for ledger in (first, second, first)] == [(0, 7), (1, 7), (0, 7)]
    resumed.resume(random, 99, 4)
    assert resumed.place(random) == (4, 99)


def test_two_threads_never_get_one_iteration_number():
    random = RandomState(7)
    threads = [in_thread(lambda: [EpochLedger().place(random)[0] for _ in range(200)]) for _ in range(4)]
    assert sorted(number for thread in threads for number in thread.result()) == list(range(800))


def test_the_generator_of_an_element_is_philox_at_a_position_of_its_own():
    generators = ElementGenerators(5, 0, 1)
    reference = np.random.Philox(key=generators.at(0).bit_generator.state["state"]["key"], counter=7 << 64)
    assert generators.at(7).random(5).tolist() == np.random.Generator(reference).random(5).tolist()
    counters = [generators.at(index).bit_generator.state["state"]["counter"].tolist() for index in (0, 1, 2, 2**40)]
    assert counters == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0], [0, 2**40, 0, 0]]


@pytest.mark.parametrize(
    ("keep", "draw"),
    [
        (lambda generator: generator, lambda kept: kept.random()),
        (lambda generator: generator.random, lambda kept: kept()),
        (lambda generator: generator.bit_generator, lambda kept: kept.random_raw()),
        (lambda generator: generator.bit_generator.seed_seq, lambda kept: kept.spawn(1)[0].generate_state(1)[0]),
    ],
)
def test_what_is_kept_of_a_generator_is_not_used_for_another_element(keep, draw):
    generators = ElementGenerators(5)
    kept = [keep(generators.at(index)) for index in range(12)]
    assert [draw(part) for part in kept] == [draw(keep(ElementGenerators(5).at(index))) for index in range(12)]


def test_generators_of_elements_are_none_of_the_streams_of_a_shuffle():
    first = {Stream(5, 0, epoch).random(1)[0] for epoch in range(3)}
    first |= {ElementGenerators(5, 0, epoch).at(index).random() for epoch in range(3) for index in range(3)}
    assert len(first) == 12


def test_a_generator_of_an_element_can_be_copied_and_spawns_repeatably():
    def children(index):
        return [child.random() for child in ElementGenerators(1).at(index).spawn(2)]

    generator = ElementGenerators(1).at(3)
    generator.random(3)
    assert pickle.loads(pickle.dumps(generator)).random() == generator.random()
    assert children(3) == children(3)
    assert children(4)[0] not in children(3)

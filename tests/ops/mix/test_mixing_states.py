"""States of the ops with several inputs: every place, behind the end of one input, behind failures, and twice."""

import pickle

import numpy as np
import pytest

from dataset import Dataset, StateError
from dataset.testing import assert_elements_equal, outcomes
from support.op_cases import fail_at
from support.resuming import advanced, damaged, paths_in, resealed


def numbers(length, *bad):
    """Numbers, some of which fail, of which the library cannot know how many there are."""
    return Dataset.range(length).map(fail_at(*bad)).filter(lambda x: x >= 0)


def inputs():
    """A short one, one that fails, one without user code."""
    return [numbers(3), numbers(14, 2, 9).map(lambda x: 100 + x), Dataset.range(200, 220)]


CHOICES = np.random.default_rng(1).integers(0, 3, 60)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 1, (60, 3))

PLANS = {
    "sample": lambda stop: Dataset.sample_from_datasets(inputs(), [0.5, 0.3, 0.2], seed=1, stop_on_empty_dataset=stop),
    "sample again": lambda stop: Dataset.sample_from_datasets(
        inputs(), seed=4, stop_on_empty_dataset=stop, rerandomize_each_iteration=True
    ).repeat(2),
    "sample exactly": lambda stop: Dataset.sample_from_datasets(
        inputs(), [0.5, 0.3, 0.2], exact=True, stop_on_empty_dataset=stop
    ),
    "sample exactly, in many parts": lambda stop: Dataset.sample_from_datasets(
        inputs(), [0.5001, 0.3, 0.1999], exact=True, stop_on_empty_dataset=stop
    ),
    "sample by weights": lambda stop: Dataset.sample_from_datasets(
        inputs(), Dataset.from_tensor_slices(WEIGHTS), seed=3, stop_on_empty_dataset=stop
    ),
    "choose": lambda stop: Dataset.choose_from_datasets(inputs(), Dataset.from_tensor_slices(CHOICES), stop),
    "choose with failures": lambda stop: Dataset.choose_from_datasets(
        inputs(), Dataset.from_tensor_slices(CHOICES % 5 - 1).map(fail_at(3)), stop
    ),
    "without user code": lambda stop: Dataset.sample_from_datasets(
        [Dataset.range(5), Dataset.range(100, 130)], seed=7, stop_on_empty_dataset=stop
    ),
    "many without user code": lambda stop: Dataset.sample_from_datasets(
        [Dataset.range(100 * i, 100 * i + 3 + i % 4) for i in range(12)], seed=5, stop_on_empty_dataset=stop
    ),
    "choose without user code, with failures": lambda stop: Dataset.choose_from_datasets(
        [Dataset.range(30), Dataset.range(9).shuffle(4, seed=1).repeat(3), Dataset.range(200, 220).batch(2).unbatch()],
        Dataset.from_tensor_slices(np.concatenate([CHOICES[:40], [7], CHOICES[40:]])),
        stop,
    ),
}
OTHERS = {
    "resample": lambda: Dataset.range(90).rejection_resample(lambda x: x % 3, [0.6, 0.3, 0.1], seed=5),
    "resample from known": lambda: Dataset.range(60).rejection_resample(
        lambda x: x % 2, [0.8, 0.2], initial_dist=[0.5, 0.5], seed=5
    ),
    "resample with failures": lambda: (
        Dataset.range(60).map(fail_at(4, 33)).rejection_resample(lambda x: x % 2, [0.8, 0.2], seed=6)
    ),
    "scan": lambda: numbers(12, 5).scan(np.int64(0), lambda total, x: (total + x, (total, x))),
    "concatenate": lambda: numbers(6, 0, 5).concatenate(Dataset.range(4).shuffle(3, seed=1)).repeat(2),
    "zip": lambda: Dataset.zip((numbers(9, 3), numbers(12, 3, 4), Dataset.range(40).shuffle(5, seed=2))),
    "zip of interleaves": lambda: Dataset.zip(
        tuple(
            Dataset.range(4).interleave(lambda n: Dataset.range(5 * n, 5 * n + 5), cycle, num_parallel_calls=calls)
            for cycle, calls in ((2, None), (3, 2))
        )
    ),
}
CASES = {
    f"{name}, {stop}": (lambda make=make, stop=stop: make(stop))
    for name, make in PLANS.items()
    for stop in (False, True)
}


@pytest.mark.parametrize(
    ("case", "prefetched"), [*((case, False) for case in [*CASES, *OTHERS]), ("sample again, False", True)]
)
def test_from_every_place_and_from_there_again_the_rest_comes(case, prefetched):
    def make():
        dataset = {**CASES, **OTHERS}[case]()
        return dataset.prefetch(2) if prefetched else dataset

    expected = outcomes(iter(make()))
    assert len(expected) > 4
    walking = iter(make())
    for place in range(len(expected) + 1):
        if place % 5 == 0 or place < 10 or place > len(expected) - 4:
            state = walking.state_dict()
            first = iter(make())
            first.load_state_dict(pickle.loads(pickle.dumps(state)))
            assert_elements_equal(advanced(first, 2), expected[place : place + 2])
            again = first.state_dict()
            first.close()
            second = iter(make())
            second.load_state_dict(again)
            assert_elements_equal(outcomes(second), expected[place + 2 :])
        advanced(walking, 1)
    walking.close()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stop", [False, True])
def test_a_mix_of_arrays_is_saved_as_a_few_numbers(exact, stop):
    images = [Dataset.from_tensor_slices(np.zeros((300, 28, 28), np.uint8)) for _ in range(2)]
    seed = None if exact else 1
    dataset = Dataset.sample_from_datasets(images, [0.7, 0.3], seed=seed, stop_on_empty_dataset=stop, exact=exact)
    iterator = iter(dataset)
    for _ in range(20):
        advanced(iterator, 13)
        assert len(pickle.dumps(iterator.state_dict())) < 1500
    iterator.close()


def test_choices_that_were_drawn_ahead_are_drawn_again():
    dataset = Dataset.sample_from_datasets([Dataset.range(300), Dataset.range(1000, 1300)], [0.4, 0.6], seed=1)
    iterator = iter(dataset)
    advanced(iterator, 100)
    assert len(iterator.state_dict()["operator"]["source"]["choices"]) == 0
    iterator.close()


@pytest.mark.parametrize("width", [2, 300])
def test_a_state_is_small_whatever_was_read_ahead(width):
    rows = [Dataset.from_tensor_slices(np.zeros((200, 2000), np.uint8)) for _ in range(width)]
    choices = Dataset.from_tensor_slices(np.random.default_rng(0).integers(0, width, 10_000))
    alone = len(pickle.dumps(iter(Dataset.choose_from_datasets(rows, choices)).state_dict()))
    iterator = iter(Dataset.choose_from_datasets(rows, choices))
    for _ in range(10):
        advanced(iterator, 7)
        assert len(pickle.dumps(iterator.state_dict())) < alone + 3000  # fewer than two rows; 256 choices are in it
    iterator.close()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"gone": np.array([True, False])},
        {"gone": np.array([True, True])},
        {"gone": np.array([False])},
        {"gone": np.array([0, 0])},
        {"choices": np.array([0.5])},
        {"choices": np.array([[0]])},
    ],
    ids=repr,
)
def test_a_state_in_which_no_input_is_left_to_choose_is_refused(exact, changes):
    """Where the choices were those of inputs that had ended, the next element was looked for without end."""
    dataset = Dataset.sample_from_datasets([numbers(9), numbers(9)], [0.5, 0.5], exact=exact, seed=None if exact else 1)
    with iter(dataset) as iterator:
        assert len(outcomes(iterator)) > 2
    with iter(dataset) as iterator:
        next(iterator)
        state = iterator.state_dict()
    (path,) = [path for path in paths_in(state) if path[-1:] == ("gone",)]
    for key, value in changes.items():
        state = damaged(state, (*path[:-1], key), value)
    with iter(dataset) as iterator, pytest.raises(StateError, match="choices do not fit"):
        iterator.load_state_dict(resealed(state))


def test_choices_of_other_weights_in_a_state_are_refused():
    dataset = Dataset.sample_from_datasets([numbers(9), numbers(9)], [0.5, 0.5], seed=1)
    state = iter(dataset).state_dict()
    (path,) = [path for path in paths_in(state) if path[-1:] == ("weights",)]
    with iter(dataset) as iterator, pytest.raises(StateError, match="choices do not fit"):
        iterator.load_state_dict(resealed(damaged(state, path, np.array([0.0, 0.5]))))

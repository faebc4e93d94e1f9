"""States of choose_from_datasets and sample_from_datasets: after the end of one input, after failures, and again."""

import pickle

import numpy as np
import pytest

from dataset import Dataset, StateError
from support.op_cases import fail_at
from support.resuming import advanced, damaged, paths_in, resealed

choose, sample = Dataset.choose_from_datasets, Dataset.sample_from_datasets


def numbers(length, *bad):
    """Numbers, some of which fail, of unknown cardinality."""
    return Dataset.range(length).map(fail_at(*bad)).filter(lambda x: x >= 0)


def inputs():
    """A short one, one that fails, one without user code."""
    return [numbers(3), numbers(14, 2, 9).map(lambda x: 100 + x), Dataset.range(200, 220)]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stop", [False, True])
def test_a_state_holds_no_arrays_and_no_choices_drawn_ahead(exact, stop):
    images = [Dataset.from_tensor_slices(np.zeros((300, 28, 28), np.uint8)) for _ in range(2)]
    seed = None if exact else 1
    dataset = sample(images, [0.7, 0.3], seed=seed, stop_on_empty_dataset=stop, exact=exact)
    with iter(dataset) as iterator:
        for _ in range(20):
            advanced(iterator, 13)
            assert len(pickle.dumps(iterator.state_dict())) < 1500
    with iter(sample([Dataset.range(300), Dataset.range(1000, 1300)], [0.4, 0.6], seed=1)) as iterator:
        advanced(iterator, 100)
        place = iterator.state_dict()["operator"]
        while "choices" not in place:
            place = place["source"]
        assert len(place["choices"]) == 0


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
def test_a_state_whose_choices_do_not_fit_is_refused(exact, changes):
    """Otherwise, if the choices were those of ended inputs, the search for the next element would not end."""
    dataset = sample([numbers(9), numbers(9)], [0.5, 0.5], exact=exact, seed=None if exact else 1)
    with iter(dataset) as iterator:
        next(iterator)
        state = iterator.state_dict()
    (path,) = [path for path in paths_in(state) if path[-1:] == ("gone",)]
    for key, value in changes.items():
        state = damaged(state, (*path[:-1], key), value)
    with iter(dataset) as iterator, pytest.raises(StateError, match="choices do not fit"):
        iterator.load_state_dict(resealed(state))


def test_choices_of_other_inputs_in_a_state_are_refused():
    dataset = sample([numbers(9), numbers(9)], [0.5, 0.5], seed=1)
    with iter(dataset) as iterator:
        state = iterator.state_dict()
        (path,) = [path for path in paths_in(state) if path[-1:] == ("live",)]
        with pytest.raises(StateError, match="choices do not fit"):
            iterator.load_state_dict(resealed(damaged(state, path, np.array([False, True]))))

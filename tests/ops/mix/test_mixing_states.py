"""States of choose_from_datasets and sample_from_datasets: after the end of one input, after failures, and again."""

import pickle

import numpy as np
import pytest

from dataset import Dataset, StateError
from support.resuming import advanced, damaged, paths_in, resealed
from support.states import rest_of, state_after

sample = Dataset.sample_from_datasets


def numbers(length):
    return Dataset.range(length).filter(lambda x: x >= 0)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stop", [False, True])
def test_a_state_holds_no_arrays(exact, stop):
    images = [Dataset.from_tensor_slices(np.zeros((300, 28, 28), np.uint8)) for _ in range(2)]
    seed = None if exact else 1
    dataset = sample(images, [0.7, 0.3], seed=seed, stop_on_empty_dataset=stop, exact=exact)
    with iter(dataset) as iterator:
        for _ in range(20):
            advanced(iterator, 13)
            assert len(pickle.dumps(iterator.state_dict())) < 1500


@pytest.mark.parametrize(
    ("exact", "key", "value"),
    [
        *((exact, "gone", gone) for exact in (False, True) for gone in ([True, False], [True, True], [False], [0, 0])),
        *((exact, "choices", choices) for exact in (False, True) for choices in ([0.5], [[0]])),
        (False, "live", [False, True]),  # of other inputs
    ],
)
def test_a_state_whose_choices_do_not_fit_is_refused(exact, key, value):
    """Otherwise, if the choices were those of ended inputs, the search for the next element would not end."""
    dataset = sample([numbers(9), numbers(9)], [0.5, 0.5], exact=exact, seed=None if exact else 1)
    state = state_after(dataset, 1)
    (path,) = [path for path in paths_in(state) if path[-1:] == (key,)]
    with pytest.raises(StateError, match="choices do not fit"):
        rest_of(dataset, resealed(damaged(state, path, np.array(value))))

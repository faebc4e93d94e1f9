"""Tests of split against keras.utils.split_dataset, and of the leak of take and skip against tf.data."""

import itertools

import pytest
from compare import in_both, theirs

from dataset import Dataset


def numbers(dataset):
    return [int(x) for x in dataset]


# Of 97 elements, Keras drops one: it rounds both halves down.
CASES = [(count, sizes) for count in (10, 98, 100) for sizes in ([0.8, 0.2], [0.5, 0.5], [0.29, 0.71], [0.9, 0.1])]


@pytest.mark.parametrize(("count", "sizes"), [*CASES, (20, [13, 7])])
def test_consecutive_parts_are_those_of_keras(count, sizes):
    split = lambda lib: lib.tf.keras.utils.split_dataset(lib.range(count), *sizes)
    expected = theirs(lambda lib: [numbers(part.as_numpy_iterator()) for part in split(lib)])
    assert [numbers(part) for part in Dataset.range(count).split(sizes)] == expected


@pytest.mark.filterwarnings("ignore:take:UserWarning")
@pytest.mark.parametrize("steps", [lambda d: d, lambda d: d.map(lambda x: x)])
def test_take_and_skip_of_a_reshuffled_dataset_overlap_in_both(steps):
    def check(lib):
        dataset = steps(lib.range(1000).shuffle(1000))
        validation, train = (numbers(part.as_numpy_iterator()) for part in (dataset.take(300), dataset.skip(300)))
        assert 150 < len(set(validation) & set(train)) < 270

    in_both(check)
    parts = steps(Dataset.range(1000)).split([300, 700], seed=1)
    found = [numbers(part.shuffle(1000)) for part in parts]
    assert sorted(itertools.chain(*found)) == list(range(1000))

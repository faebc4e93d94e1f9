"""Tests of random against tf.data's: everything except the random numbers."""

import pytest
from compare import assert_both_refuse, oracle

from support.libraries import Ours


def test_spec_cardinality_and_bounds():
    lib = oracle()
    ours, theirs = Ours.Dataset.random(seed=1), lib.Dataset.random(seed=1)
    assert ours.element_spec == lib.spec(theirs.element_spec)
    assert ours.cardinality() == int(theirs.cardinality())
    for dataset in (ours, theirs):
        numbers = [int(x) for x in dataset.take(2000)]
        assert 0 <= min(numbers) < 2**25
        assert 2**32 - 2**25 < max(numbers) < 2**32


@pytest.mark.parametrize("rerandomize", [None, False, True])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("global_seed", [None, 3])
def test_which_passes_are_alike(seed, rerandomize, global_seed):
    def alike(lib):
        def make():
            return lib.Dataset.random(seed=seed, rerandomize_each_iteration=rerandomize).take(3).repeat(2)

        if global_seed is not None:
            lib.set_random_seed(global_seed)
        dataset = make()
        first, again, rebuilt = ([int(x) for x in run] for run in (dataset, dataset, make()))
        if global_seed is not None:
            lib.set_random_seed(global_seed)
        seeded_again = [int(x) for x in make()]
        return [first[:3] == first[3:], first == again, first == rebuilt, first == seeded_again]

    try:
        found, expected = alike(Ours()), alike(oracle())
    finally:
        Ours.set_random_seed(None)
    assert found == expected


@pytest.mark.parametrize(
    "keywords",
    [{"seed": 1.5}, {"seed": "a"}, {"seed": [1, 2]}, {"rerandomize_each_iteration": "yes"}],
    ids=str,
)
def test_what_is_refused(keywords):
    assert_both_refuse(lambda lib: lib.Dataset.random(**keywords), TypeError)

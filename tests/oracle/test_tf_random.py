"""Tests of random against tf.data's: everything except the random numbers."""

import pytest
from compare import in_both, refused


def test_spec_cardinality_and_bounds():
    def described(lib):
        dataset = lib.random(seed=1)
        numbers = [int(x) for x in dataset.take(2000)]
        assert 0 <= min(numbers) < 2**25
        assert 2**32 - 2**25 < max(numbers) < 2**32
        return dataset.element_spec, int(dataset.cardinality())

    ours, theirs = in_both(described)
    assert ours == theirs


@pytest.mark.parametrize("rerandomize", [None, False, True])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("global_seed", [None, 3])
def test_which_passes_are_alike(seed, rerandomize, global_seed):
    def alike(lib):
        def make():
            return lib.random(seed=seed, rerandomize_each_iteration=rerandomize).take(3).repeat(2)

        lib.set_random_seed(global_seed)
        dataset = make()
        first, again, rebuilt = ([int(x) for x in run] for run in (dataset, dataset, make()))
        lib.set_random_seed(global_seed)
        seeded_again = [int(x) for x in make()]
        return [first[:3] == first[3:], first == again, first == rebuilt, first == seeded_again]

    found, expected = in_both(alike)
    assert found == expected


REFUSED = [{"seed": 1.5}, {"seed": "a"}, {"seed": [1, 2]}, {"rerandomize_each_iteration": "yes"}]
test_what_is_refused = refused({TypeError: REFUSED}, "random(**case)")

"""Tests of rejection_resample against tf.data's: specs, cardinalities, proportions, and the deterministic cases."""

import numpy as np
import pytest
from compare import Ours, assert_both_raise, in_both, programs, same

HALF = [0.5, 0.5]


def assert_same_description(build):
    ours, theirs = in_both(lambda lib: (int(build(lib).cardinality()), build(lib).element_spec))
    assert ours == theirs


test_cardinality_and_spec = same(
    "source.rejection_resample(lambda x: x % 2, target, initial, seed=1)",
    source=programs(["range(4)", "range(4).repeat()", "range(4).filter(lambda x: x >= 0)"]),
    target=[[0.2, 0.8], HALF, [0.0, 1.0]],
    initial=[None, HALF],
    by=assert_same_description,
)
CASES = programs(
    scalars="range(6), lambda x: x % 2",
    tuples="range(6).enumerate(), lambda i, x: i % 2",
    dicts="zip({'a': range(6)}), lambda x: x['a'] % 2",
    failing_data="failing(2, 5, size=8), lambda x: x % 2",
    failing_function="range(8), lambda x: check(2, 5)(x) % 2",
)
# Data as wanted pass with their class, and a class alone is filtered out.
test_without_chance = same(
    "case[0].rejection_resample(case[1], target, HALF, seed=1)",
    case=CASES,
    target=[HALF, [0.0, 1.0]],
    spec="compatible",
)
test_tuples_of_one = same(  # tf.data does not unwrap them when it filters
    "zip((range(6),)).rejection_resample(lambda x: x % 2, HALF, HALF, seed=1)", spec="compatible"
)


@pytest.mark.parametrize("given", [True, False])
def test_shares_and_equal_passes(given):
    classes = np.random.default_rng(0).choice(3, size=3000, p=[0.6, 0.3, 0.1])

    def shares(lib):
        data = lib.from_tensor_slices(classes.astype(np.int32))
        initial = [0.6, 0.3, 0.1] if given else None
        dataset = data.rejection_resample(lambda x: x, [0.3, 0.3, 0.4], initial, seed=1)
        labels, again = ([int(label) for label, _ in dataset] for _ in range(2))
        assert labels == again
        return np.append(np.bincount(labels, minlength=3) / len(labels), len(labels) / 3000)

    ours, theirs = in_both(shares)
    assert abs(ours - theirs).max() < 0.06


def test_what_is_refused():
    for arguments in ((abs, [0.3, 0.3, 0.4], HALF), (abs, [HALF], [HALF]), (3, HALF)):
        assert_both_raise(lambda lib, given=arguments: lib.range(4).rejection_resample(*given), Exception)
        with pytest.raises((TypeError, ValueError)):
            Ours().range(4).rejection_resample(*arguments)

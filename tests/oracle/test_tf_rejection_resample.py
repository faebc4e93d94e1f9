"""Tests of rejection_resample against tf.data's: specs, cardinalities, proportions, and the deterministic cases."""

import numpy as np
import pytest
from cases import check, failing
from compare import Ours, assert_both_raise, in_both, same

LENGTHS = {
    "known": lambda dataset: dataset,
    "endless": lambda dataset: dataset.repeat(),
    "unknown": lambda dataset: dataset.filter(lambda x: x >= 0),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("target", [[0.2, 0.8], [0.5, 0.5], [0.0, 1.0]])
@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
def test_cardinality_and_spec(length, target, initial):
    def described(lib):
        dataset = LENGTHS[length](lib.range(4)).rejection_resample(lambda x: x % 2, target, initial, seed=1)
        return int(dataset.cardinality()), dataset.element_spec

    ours, theirs = in_both(described)
    assert ours == theirs


STRUCTURES = {
    "scalars": (lambda lib: lib.range(6), lambda x: x % 2),
    "tuples": (lambda lib: lib.range(6).enumerate(), lambda i, x: i % 2),
    "dicts": (lambda lib: lib.zip({"a": lib.range(6)}), lambda x: x["a"] % 2),
    "tuples of one": (lambda lib: lib.zip((lib.range(6),)), lambda x: x % 2),
}
test_data_as_wanted_pass_with_their_class = same(
    lambda lib, case: case[0](lib).rejection_resample(case[1], [0.5, 0.5], [0.5, 0.5], seed=1),
    STRUCTURES,
    spec="compatible",
)
UNWRAPPED = {name: case for name, case in STRUCTURES.items() if name != "tuples of one"}  # tf.data does not unwrap it
test_a_class_alone_is_filtered_out = same(
    lambda lib, case: case[0](lib).rejection_resample(case[1], [0.0, 1.0], [0.5, 0.5], seed=1),
    UNWRAPPED,
    spec="compatible",
)
test_failures = same(
    {
        "of the data": lambda lib, target: failing(lib, 2, 5, size=8).rejection_resample(
            lambda x: x % 2, target, [0.5, 0.5], seed=1
        ),
        "of the function": lambda lib, target: lib.range(8).rejection_resample(
            lambda x: check(lib, 2, 5)(x) % 2, target, [0.5, 0.5], seed=1
        ),
    },
    [[0.5, 0.5], [0.0, 1.0]],
    spec="compatible",
)


@pytest.mark.parametrize("given", [True, False])
def test_shares(given):
    classes = np.random.default_rng(0).choice(3, size=3000, p=[0.6, 0.3, 0.1])

    def shares(lib):
        data = lib.from_tensor_slices(classes.astype(np.int32))
        initial = [0.6, 0.3, 0.1] if given else None
        dataset = data.rejection_resample(lambda x: x, [0.3, 0.3, 0.4], initial, seed=1)
        labels = [int(label) for label, _ in dataset]
        return np.append(np.bincount(labels, minlength=3) / len(labels), len(labels) / 3000)

    ours, theirs = in_both(shares)
    assert abs(ours - theirs).max() < 0.06


@pytest.mark.parametrize("given", [True, False])
def test_which_passes_are_alike(given):
    def check(lib):
        data = lib.range(60)
        dataset = data.rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5] if given else None, seed=5)
        first, second = ([int(x) for _, x in dataset] for _ in range(2))
        assert first == second

    in_both(check)


def test_what_is_refused():
    half = [0.5, 0.5]
    for arguments in ((abs, [0.3, 0.3, 0.4], half), (abs, [half], [half]), (3, half)):
        assert_both_raise(lambda lib, given=arguments: lib.range(4).rejection_resample(*given), Exception)
        with pytest.raises((TypeError, ValueError)):
            Ours().range(4).rejection_resample(*arguments)

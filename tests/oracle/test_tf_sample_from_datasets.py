"""Tests of sample_from_datasets against tf.data's: everything that does not depend on the random numbers."""

import numpy as np
import pytest
from cases import failing
from compare import assert_same, in_both, outcomes_of, refused, same

from dataset.testing import assert_elements_equal
from support.combinations import diagonals


def known(lib):
    return [lib.range(30), lib.range(100, 110)]


SOURCES = {
    "known": known,
    "empty": lambda lib: [lib.range(0), lib.range(3)],
    "endless": lambda lib: [source.repeat() for source in known(lib)],
    "one endless": lambda lib: [lib.range(3), lib.range(3).repeat()],
    "unknown": lambda lib: [source.filter(lambda x: x % 2 == 0) for source in known(lib)],
    "one": lambda lib: [lib.range(4)],
}

WEIGHTS = {
    "none": lambda lib: None,
    "list": lambda lib: [0.25, 0.75],
    "not normalised": lambda lib: [2.0, 6.0],
    "first is zero": lambda lib: [0.0, 1.0],
    "second is zero": lambda lib: [0.5, 0.0],
    "all are zero": lambda lib: [0.0, 0.0],
    "array": lambda lib: np.array([0.5, 0.5], np.float32),
    "dataset": lambda lib: lib.from_tensor_slices(np.array([[0.5, 0.5], [1, 0]])),
    "endless dataset": lambda lib: lib.from_tensors(np.array([0.5, 0.5])).repeat(),
}


@pytest.mark.parametrize(("source", "weights", "stop"), diagonals(3, SOURCES, WEIGHTS, [True, False]))
def test_cardinality_and_spec(source, weights, stop):
    def build(lib):
        sources, shares = SOURCES[source](lib), WEIGHTS[weights](lib)
        if source == "one" and shares is not None:
            sources = [*sources, *sources]
        return lib.sample_from_datasets(sources, shares, 1, stop)

    assert_same(lambda lib: build(lib).take(0), limit=1)
    ours, theirs = in_both(lambda lib: int(build(lib).cardinality()))
    assert ours == theirs


@pytest.mark.parametrize("weights", ["none", "list", "not normalised", "first is zero", "all are zero", "array"])
def test_the_elements_are_the_same_in_each_dataset_in_the_same_order(weights):
    def split(lib):
        found = [int(x) for x in lib.sample_from_datasets(known(lib), WEIGHTS[weights](lib), seed=1)]
        return [x for x in found if x < 100], [x for x in found if x >= 100]

    ours, theirs = in_both(split)
    assert ours == theirs


WEIGHT_ROWS = {
    "turns": [[1, 0], [0, 1], [3, 0], [0, 0.5]],
    "behind an end": [[1, 0]] * 31 + [[0, 1], [1, 0], [0, 1]],
    "nothing": [[1, 0], [0, 0], [0, 1]],
}


test_weights_without_chance = same(
    lambda lib, rows, stop: lib.sample_from_datasets(
        known(lib), lib.from_tensor_slices(np.array(rows, np.float64)), seed=1, stop_on_empty_dataset=stop
    ),
    WEIGHT_ROWS,
    [True, False],
)
BOTH = np.array([[1.0, 0]] * 6 + [[0, 1.0]] * 3)
test_failures_keep_their_place_among_the_elements_of_their_dataset = same(
    lambda lib: lib.sample_from_datasets(
        [failing(lib, 0, 3, 5, size=6), lib.range(10, 12)], lib.from_tensor_slices(BOTH), seed=1
    ),
    spec="compatible",
)


@pytest.mark.parametrize("rerandomize", [None, False, True])
@pytest.mark.parametrize("seed", [None, 5])
def test_which_passes_are_alike(seed, rerandomize):
    def alike(lib):
        def make():
            sources = [lib.range(25), lib.range(100, 125)]
            options = {"seed": seed, "rerandomize_each_iteration": rerandomize}
            return lib.sample_from_datasets(sources, **options)

        repeated = make().repeat(2)
        runs = [[int(x) for x in dataset] for dataset in (repeated, repeated, make())]
        first, again, rebuilt = runs
        return [first[:50] == first[50:], first == again, first[:50] == rebuilt]

    ours, theirs = in_both(alike)
    assert ours == theirs


def test_shapes_are_merged():
    def build(lib):
        return lib.sample_from_datasets([lib.range(6).batch(n, drop_remainder=True) for n in (2, 3)], seed=1)

    ours, theirs = in_both(lambda lib: build(lib).element_spec)
    assert ours == theirs
    found, expected = in_both(lambda lib: sorted(outcomes_of(lib, build(lib), 9), key=str))
    assert_elements_equal(found, expected)


REFUSED = {
    "a dataset": lambda lib: {"datasets": lib.range(3)},
    "a number among them": lambda lib: {"datasets": [lib.range(3), 3]},
    "dtypes": lambda lib: {"datasets": [lib.range(2), lib.range(2, output_type=np.int32)]},
    "a dataset of scalars": lambda lib: {"weights": lib.from_tensor_slices(np.ones(3))},
    "a dataset of matrices": lambda lib: {"weights": lib.from_tensor_slices(np.ones((3, 1, 2)))},
}
NO_WEIGHTS = [[0.5], [0.5, 0.5, 0.5], [], ["a", "b"], [True, True], {"a": 0.5, "b": 0.5}, iter([0.5, 0.5])]
OTHERS = [{"datasets": []}, {"seed": 1.5}, {"seed": "a"}, *({"weights": weights} for weights in NO_WEIGHTS)]
test_what_is_refused = refused(
    {(TypeError, ValueError): [*REFUSED.values(), *(lambda lib, others=others: others for others in OTHERS)]},
    lambda lib, arguments: lib.sample_from_datasets(**{"datasets": known(lib), **arguments(lib)}),
)

"""Tests of sample_from_datasets against tf.data's: everything that does not depend on the random numbers."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, oracle, outcomes, plain, to_numpy

from dataset import TensorSpec
from dataset.testing import assert_elements_equal
from support.combinations import diagonals
from support.libraries import Ours, fail_at


def known(lib):
    return [lib.Dataset.range(30), lib.Dataset.range(100, 110)]


SOURCES = {
    "known": known,
    "empty": lambda lib: [lib.Dataset.range(0), lib.Dataset.range(3)],
    "endless": lambda lib: [source.repeat() for source in known(lib)],
    "one endless": lambda lib: [lib.Dataset.range(3), lib.Dataset.range(3).repeat()],
    "unknown": lambda lib: [source.filter(lambda x: x % 2 == 0) for source in known(lib)],
    "one": lambda lib: [lib.Dataset.range(4)],
}

WEIGHTS = {
    "none": lambda lib: None,
    "list": lambda lib: [0.25, 0.75],
    "not normalised": lambda lib: [2.0, 6.0],
    "first is zero": lambda lib: [0.0, 1.0],
    "second is zero": lambda lib: [0.5, 0.0],
    "all are zero": lambda lib: [0.0, 0.0],
    "array": lambda lib: np.array([0.5, 0.5], np.float32),
    "dataset": lambda lib: lib.Dataset.from_tensor_slices(np.array([[0.5, 0.5], [1, 0]])),
    "endless dataset": lambda lib: lib.Dataset.from_tensors(np.array([0.5, 0.5])).repeat(),
}


@pytest.mark.parametrize(("source", "weights", "stop"), diagonals(3, SOURCES, WEIGHTS, [True, False]))
def test_cardinality_and_spec(source, weights, stop):
    def build(lib):
        sources, shares = SOURCES[source](lib), WEIGHTS[weights](lib)
        if source == "one" and shares is not None:
            sources = [*sources, *sources]
        return lib.Dataset.sample_from_datasets(sources, shares, 1, stop)

    assert_same(lambda lib: build(lib).take(0), limit=1)
    assert build(Ours()).cardinality() == int(build(oracle()).cardinality())


@pytest.mark.parametrize("weights", ["none", "list", "not normalised", "first is zero", "all are zero", "array"])
def test_the_elements_are_the_same_in_each_dataset_in_the_same_order(weights):
    def build(lib):
        return lib.Dataset.sample_from_datasets(known(lib), WEIGHTS[weights](lib), seed=1)

    def split(found):
        return [[int(x) for x in found if int(x) < 100], [int(x) for x in found if int(x) >= 100]]

    assert split(build(Ours())) == split(build(oracle()))


WEIGHT_ROWS = {
    "turns": [[1, 0], [0, 1], [3, 0], [0, 0.5]],
    "behind an end": [[1, 0]] * 31 + [[0, 1], [1, 0], [0, 1]],
    "nothing": [[1, 0], [0, 0], [0, 1]],
}


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("rows", WEIGHT_ROWS)
def test_weights_without_chance(rows, stop):
    def build(lib):
        weights = lib.Dataset.from_tensor_slices(np.array(WEIGHT_ROWS[rows], np.float64))
        return lib.Dataset.sample_from_datasets(known(lib), weights, seed=1, stop_on_empty_dataset=stop)

    assert_same(build)


def test_failures_keep_their_place_among_the_elements_of_their_dataset():
    def build(lib):
        failing = lib.Dataset.range(6).map(lib.call(fail_at(0, 3, 5), TensorSpec((), np.int64)))
        weights = lib.Dataset.from_tensor_slices(np.array([[1.0, 0]] * 6 + [[0, 1.0]] * 3))
        return lib.Dataset.sample_from_datasets([failing, lib.Dataset.range(10, 12)], weights, seed=1)

    assert_same(build, spec="compatible")


@pytest.mark.parametrize("rerandomize", [None, False, True])
@pytest.mark.parametrize("seed", [None, 5])
def test_which_passes_are_alike(seed, rerandomize):
    def alike(lib):
        def make():
            sources = [lib.Dataset.range(25), lib.Dataset.range(100, 125)]
            options = {"seed": seed, "rerandomize_each_iteration": rerandomize}
            return lib.Dataset.sample_from_datasets(sources, **options)

        repeated = make().repeat(2)
        runs = [[int(x) for x in dataset] for dataset in (repeated, repeated, make())]
        first, again, rebuilt = runs
        return [first[:50] == first[50:], first == again, first[:50] == rebuilt]

    assert alike(Ours()) == alike(oracle())


def test_shapes_are_merged():
    def build(lib):
        sources = [lib.Dataset.range(6).batch(n, drop_remainder=True) for n in (2, 3)]
        return lib.Dataset.sample_from_datasets(sources, seed=1)

    lib = oracle()
    assert build(Ours()).element_spec == lib.spec(build(lib).element_spec)
    found = outcomes(iter(build(Ours())), plain, 9)
    expected = outcomes(iter(build(lib)), lambda value: to_numpy(lib.tf, value), 9)
    assert_elements_equal(sorted(found, key=str), sorted(expected, key=str))


REFUSED = {
    "no datasets": lambda lib: {"datasets": []},
    "a dataset": lambda lib: {"datasets": lib.Dataset.range(3)},
    "a number among them": lambda lib: {"datasets": [lib.Dataset.range(3), 3]},
    "too few weights": lambda lib: {"weights": [0.5]},
    "too many weights": lambda lib: {"weights": [0.5, 0.5, 0.5]},
    "no weights": lambda lib: {"weights": []},
    "text": lambda lib: {"weights": ["a", "b"]},
    "bools": lambda lib: {"weights": [True, True]},
    "a dict": lambda lib: {"weights": {"a": 0.5, "b": 0.5}},
    "an iterator": lambda lib: {"weights": iter([0.5, 0.5])},
    "a dataset of scalars": lambda lib: {"weights": lib.Dataset.from_tensor_slices(np.ones(3))},
    "a dataset of matrices": lambda lib: {"weights": lib.Dataset.from_tensor_slices(np.ones((3, 1, 2)))},
    "a float seed": lambda lib: {"seed": 1.5},
    "a text as seed": lambda lib: {"seed": "a"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    def build(lib):
        return lib.Dataset.sample_from_datasets(**{"datasets": known(lib), **REFUSED[case](lib)})

    assert_both_refuse(build, (TypeError, ValueError))


def test_dtypes_that_differ_are_refused():
    def build(lib):
        return lib.Dataset.sample_from_datasets([lib.Dataset.range(2), lib.Dataset.range(2, output_type=np.int32)])

    assert_both_refuse(build, TypeError)

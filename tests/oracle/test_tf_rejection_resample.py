"""Tests of rejection_resample against tf.data's: specs, cardinalities, proportions, and the deterministic cases."""

import numpy as np
import pytest
from compare import assert_same, oracle

from dataset import TensorSpec
from support.libraries import Ours, fail_at

SCALAR = TensorSpec((), np.int64)
LENGTHS = {
    "known": lambda dataset: dataset,
    "endless": lambda dataset: dataset.repeat(),
    "unknown": lambda dataset: dataset.filter(lambda x: x >= 0),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("target", [[0.2, 0.8], [0.5, 0.5], [0.0, 1.0]])
@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
def test_cardinality_and_spec(length, target, initial):
    def build(lib):
        return LENGTHS[length](lib.Dataset.range(4)).rejection_resample(lambda x: x % 2, target, initial, seed=1)

    ours, theirs = build(Ours()), build(oracle())
    assert ours.cardinality() == int(theirs.cardinality())
    assert ours.element_spec == oracle().spec(theirs.element_spec)


STRUCTURES = {
    "scalars": (lambda lib: lib.Dataset.range(6), lambda x: x % 2),
    "tuples": (lambda lib: lib.Dataset.range(6).enumerate(), lambda i, x: i % 2),
    "dicts": (lambda lib: lib.Dataset.zip({"a": lib.Dataset.range(6)}), lambda x: x["a"] % 2),
    "tuples of one": (lambda lib: lib.Dataset.zip((lib.Dataset.range(6),)), lambda x: x % 2),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_data_as_wanted_pass_with_their_class(structure):
    source, label = STRUCTURES[structure]
    assert_same(lambda lib: source(lib).rejection_resample(label, [0.5, 0.5], [0.5, 0.5], seed=1), spec="compatible")


@pytest.mark.parametrize("structure", ["scalars", "tuples", "dicts"])  # there tf.data does not unwrap a tuple of one
def test_a_class_alone_is_filtered_out(structure):
    source, label = STRUCTURES[structure]
    assert_same(lambda lib: source(lib).rejection_resample(label, [0.0, 1.0], [0.5, 0.5], seed=1), spec="compatible")


@pytest.mark.parametrize("target", [[0.5, 0.5], [0.0, 1.0]])
def test_failures_of_the_function_and_of_the_data(target):
    def build(lib, *, in_data):
        check = lib.call(fail_at(2, 5), SCALAR)
        data = lib.Dataset.range(8).map(check) if in_data else lib.Dataset.range(8)
        return data.rejection_resample(
            (lambda x: x % 2) if in_data else (lambda x: check(x) % 2), target, [0.5, 0.5], seed=1
        )

    for in_data in (True, False):
        assert_same(lambda lib, in_data=in_data: build(lib, in_data=in_data), spec="compatible")


@pytest.mark.parametrize("given", [True, False])
def test_shares(given):
    classes = np.random.default_rng(0).choice(3, size=3000, p=[0.6, 0.3, 0.1])

    def shares(lib):
        data = lib.Dataset.from_tensor_slices(classes.astype(np.int32))
        initial = [0.6, 0.3, 0.1] if given else None
        dataset = data.rejection_resample(lambda x: x, [0.3, 0.3, 0.4], initial, seed=1)
        labels = [int(label) for label, _ in dataset]
        return np.append(np.bincount(labels, minlength=3) / len(labels), len(labels) / 3000)

    assert abs(shares(Ours()) - shares(oracle())).max() < 0.06


@pytest.mark.parametrize("given", [True, False])
def test_which_passes_are_alike(given):
    for lib in (Ours(), oracle()):
        data = lib.Dataset.range(60)
        dataset = data.rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5] if given else None, seed=5)
        first, second = ([int(x) for _, x in dataset] for _ in range(2))
        assert first == second


@pytest.mark.parametrize(
    "arguments",
    [(lambda x: x % 2, [0.3, 0.3, 0.4], [0.5, 0.5]), (lambda x: x % 2, [[0.5, 0.5]], [[0.5, 0.5]]), (3, [0.5, 0.5])],
)
def test_what_is_refused(arguments):
    for lib, errors in ((Ours(), (TypeError, ValueError)), (oracle(), Exception)):
        with pytest.raises(errors):
            lib.Dataset.range(4).rejection_resample(*arguments)

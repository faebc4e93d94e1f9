"""Tests of choose_from_datasets against tf.data's."""

import numpy as np
import pytest
from compare import FAILED, assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

SCALAR = TensorSpec((), np.int64)


def failing(lib, start, stop, *bad):
    return lib.Dataset.range(start, stop).map(lib.call(fail_at(*bad), SCALAR))


SOURCES = {
    "equal": lambda lib: [lib.Dataset.range(4), lib.Dataset.range(10, 14)],
    "one": lambda lib: [lib.Dataset.range(4)],
    "short first": lambda lib: [lib.Dataset.range(1), lib.Dataset.range(10, 14)],
    "empty first": lambda lib: [lib.Dataset.range(0), lib.Dataset.range(10, 14)],
    "empty second": lambda lib: [lib.Dataset.range(4), lib.Dataset.range(0)],
    "both empty": lambda lib: [lib.Dataset.range(0), lib.Dataset.range(0)],
    "endless": lambda lib: [lib.Dataset.range(2).repeat(), lib.Dataset.range(10, 13).repeat()],
    "one endless": lambda lib: [lib.Dataset.range(2), lib.Dataset.range(10, 13).repeat()],
    "unknown": lambda lib: [lib.Dataset.range(9).filter(lambda x: x % 3 == 0), lib.Dataset.range(10, 14)],
    "failing": lambda lib: [failing(lib, 0, 4, 0, 2), failing(lib, 10, 14, 11, 13)],
}

CHOICES = {
    "turns": [0, 1, 0, 1, 0, 1],
    "runs": [0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1],
    "first alone": [0] * 7,
    "none": [],
    "out of range": [0, 2, 0, -1, 0, 5, 0, 0, 0],
}


def picks(lib, name):
    return lib.Dataset.from_tensor_slices(np.array(CHOICES[name], np.int64))


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("source", SOURCES)
def test_choices(source, choice, stop):
    def build(lib):
        return lib.Dataset.choose_from_datasets(SOURCES[source](lib), picks(lib, choice), stop)

    found = assert_same(build, spec="compatible")
    if choice == "out of range" and source == "equal":
        assert found.count(FAILED) == 3


@pytest.mark.parametrize("source", ["equal", "short first", "endless", "failing"])
def test_the_default_is_to_stop(source):
    assert_same(
        lambda lib: lib.Dataset.choose_from_datasets(SOURCES[source](lib), picks(lib, "runs")),
        spec="compatible",
    )


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("source", ["equal", "endless", "unknown", "one endless", "failing"])
def test_choices_without_end(source, stop):
    def build(lib):
        return lib.Dataset.choose_from_datasets(SOURCES[source](lib), lib.Dataset.range(2).repeat(), stop)

    assert_same(build, limit=20, spec="compatible")


@pytest.mark.parametrize("stop", [True, False])
def test_choices_of_unknown_number_and_choices_that_fail(stop):
    def build(lib):
        choices = failing(lib, 0, 9, 1, 5).filter(lambda x: x < 8).map(lambda x: x % 2)
        return lib.Dataset.choose_from_datasets(SOURCES["equal"](lib), choices, stop)

    assert assert_same(build, spec="compatible").count(FAILED) == 2


def test_choices_whose_shape_is_unknown():
    def numbers():
        yield np.int64(1)
        yield np.int64(0)

    def build(lib):
        choices = lib.Dataset.from_generator(numbers, output_signature=lib.TensorSpec(None, np.int64))
        return lib.Dataset.choose_from_datasets(SOURCES["equal"](lib), choices)

    assert_same(build)


STRUCTURES = {
    "shapes": lambda lib: [lib.Dataset.range(5).batch(n, drop_remainder=True) for n in (2, 3)],
    "partly known shapes": lambda lib: [lib.Dataset.range(5).batch(2), lib.Dataset.range(6).batch(3, True)],
    "ranks": lambda lib: [lib.Dataset.range(5), lib.Dataset.range(5).batch(2)],
    "dicts": lambda lib: [
        lib.Dataset.zip({"a": lib.Dataset.range(2), "b": lib.Dataset.range(2, 4)}),
        lib.Dataset.zip({"b": lib.Dataset.range(5, 7), "a": lib.Dataset.range(7, 9)}),
    ],
    "tuples and text": lambda lib: [
        lib.Dataset.from_tensor_slices((np.arange(2.0), ["a", "bc"])),
        lib.Dataset.from_tensor_slices((np.arange(5.0, 7.0), ["", "d"])),
    ],
    "ragged": lambda lib: [
        lib.Dataset.from_tensors(lib.ragged([[1], [2, 3]])).repeat(2),
        lib.Dataset.from_tensors(lib.ragged([[4, 5], []])).repeat(2),
    ],
    "sparse": lambda lib: [
        lib.Dataset.from_tensors(lib.sparse([[1]], np.array([5]), [3])).repeat(2),
        lib.Dataset.from_tensors(lib.sparse([[0]], np.array([6]), [3])).repeat(2),
    ],
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structures_and_merged_specs(structure):
    def build(lib):
        return lib.Dataset.choose_from_datasets(STRUCTURES[structure](lib), picks(lib, "turns"))

    assert_same(build)


REFUSED = {
    "no datasets": lambda lib: ([], picks(lib, "turns")),
    "a dataset": lambda lib: (lib.Dataset.range(3), picks(lib, "turns")),
    "a number among them": lambda lib: ([lib.Dataset.range(3), 3], picks(lib, "turns")),
    "choices in a list": lambda lib: (SOURCES["equal"](lib), [0, 1]),
    "int32 choices": lambda lib: (SOURCES["equal"](lib), lib.Dataset.range(2, output_type=np.int32)),
    "vectors": lambda lib: (SOURCES["equal"](lib), lib.Dataset.range(2).batch(1)),
    "dtypes": lambda lib: (
        [lib.Dataset.range(2), lib.Dataset.range(2, output_type=np.int32)],
        picks(lib, "turns"),
    ),
    "structures": lambda lib: ([lib.Dataset.range(2), lib.Dataset.range(2).enumerate()], picks(lib, "turns")),
    "keys": lambda lib: (
        [lib.Dataset.from_tensors({"a": 1}), lib.Dataset.from_tensors({"b": 1})],
        picks(lib, "turns"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    assert_both_refuse(lambda lib: lib.Dataset.choose_from_datasets(*REFUSED[case](lib)), (TypeError, ValueError))

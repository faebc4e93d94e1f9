"""Tests of cardinality and element_spec against tf.data's, for chains of two ops that are not run."""

import pytest
from cases import SOURCES
from compare import compare_specs, oracle

from support.libraries import Ours

TRANSFORMATIONS = {
    "take(0)": lambda lib, ds: ds.take(0),
    "take(2)": lambda lib, ds: ds.take(2),
    "take(100)": lambda lib, ds: ds.take(100),
    "take(-1)": lambda lib, ds: ds.take(-1),
    "skip(0)": lambda lib, ds: ds.skip(0),
    "skip(2)": lambda lib, ds: ds.skip(2),
    "skip(100)": lambda lib, ds: ds.skip(100),
    "skip(-1)": lambda lib, ds: ds.skip(-1),
    "shard(3, 1)": lambda lib, ds: ds.shard(3, 1),
    "shard(2, 0)": lambda lib, ds: ds.shard(2, 0),
    "repeat(0)": lambda lib, ds: ds.repeat(0),
    "repeat(3)": lambda lib, ds: ds.repeat(3),
    "repeat()": lambda lib, ds: ds.repeat(),
    "shuffle(3)": lambda lib, ds: ds.shuffle(3),
    "shuffle(-2)": lambda lib, ds: ds.shuffle(-2),
    "batch(2)": lambda lib, ds: ds.batch(2),
    "batch(3, True)": lambda lib, ds: ds.batch(3, True),
    "prefetch(1)": lambda lib, ds: ds.prefetch(1),
    "cache()": lambda lib, ds: ds.cache(),
    "enumerate()": lambda lib, ds: ds.enumerate(),
    "zip with itself": lambda lib, ds: lib.Dataset.zip(ds, ds),
    "zip with 3": lambda lib, ds: lib.Dataset.zip(ds, lib.Dataset.range(3)),
    "zip with endless": lambda lib, ds: lib.Dataset.zip({"b": ds, "a": lib.Dataset.range(3).repeat()}),
    "concatenate with itself": lambda lib, ds: ds.concatenate(ds),
    "filter": lambda lib, ds: ds.filter(lambda *args: True),
    "with_options": lambda lib, ds: ds.with_options(lib.Options()),
    "apply": lambda lib, ds: ds.apply(lambda ds: ds.take(4)),
}


@pytest.mark.parametrize("first", TRANSFORMATIONS)
@pytest.mark.parametrize("source", ["known", "empty", "unknown", "endless"])
def test_chains(source, first):
    for second, transformation in TRANSFORMATIONS.items():

        def build(lib, transformation=transformation):
            return transformation(lib, TRANSFORMATIONS[first](lib, SOURCES[source](lib)))

        ours, theirs = build(Ours()), build(oracle())
        assert ours.cardinality() == int(theirs.cardinality()), second
        compare_specs(ours.element_spec, oracle().spec(theirs.element_spec), "equal")


FUNCTIONS = {
    "map": lambda lib, ds: ds.map(lambda *args: args),
    "flat_map": lambda lib, ds: ds.flat_map(lambda *args: lib.Dataset.range(2)),
    "interleave": lambda lib, ds: ds.interleave(lambda *args: lib.Dataset.range(2).repeat()),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("source", ["known", "unknown", "endless", "fails inside"])
def test_behind_functions(source, function):
    for first, transformation in TRANSFORMATIONS.items():
        if first in {"take(0)", "skip(100)", "skip(-1)", "repeat(0)", "skip(2)", "shard(3, 1)", "batch(3, True)"}:
            continue  # a dataset that may be empty has no spec downstream of a function
        if source == "endless" and first == "shuffle(-2)":
            continue  # it has no first element

        def build(lib, transformation=transformation):
            return FUNCTIONS[function](lib, transformation(lib, SOURCES[source](lib)))

        ours, theirs = build(Ours()), build(oracle())
        assert ours.cardinality() == int(theirs.cardinality()), first
        compare_specs(ours.element_spec, oracle().spec(theirs.element_spec), "compatible")


def test_constants():
    assert int(oracle().INFINITE) == Ours.INFINITE
    assert int(oracle().UNKNOWN) == Ours.UNKNOWN

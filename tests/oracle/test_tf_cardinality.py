"""Tests of cardinality and element_spec against tf.data's, for chains of two ops that are not run."""

import pytest
from cases import SOURCES
from compare import compare_specs, in_both

TRANSFORMATIONS = {
    **{f"take({n})": lambda lib, ds, n=n: ds.take(n) for n in (0, 2, 100, -1)},
    **{f"skip({n})": lambda lib, ds, n=n: ds.skip(n) for n in (0, 2, 100, -1)},
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
    "zip with itself": lambda lib, ds: lib.zip(ds, ds),
    "zip with 3": lambda lib, ds: lib.zip(ds, lib.range(3)),
    "zip with endless": lambda lib, ds: lib.zip({"b": ds, "a": lib.range(3).repeat()}),
    "concatenate with itself": lambda lib, ds: ds.concatenate(ds),
    "filter": lambda lib, ds: ds.filter(lambda *args: True),
    "with_options": lambda lib, ds: ds.with_options(lib.Options()),
    "apply": lambda lib, ds: ds.apply(lambda ds: ds.take(4)),
}
MAYBE_EMPTY = {"take(0)", "skip(100)", "skip(-1)", "repeat(0)", "skip(2)", "shard(3, 1)", "batch(3, True)"}
FUNCTIONS = {
    "map": lambda lib, ds: ds.map(lambda *args: args),
    "flat_map": lambda lib, ds: ds.flat_map(lambda *args: lib.range(2)),
    "interleave": lambda lib, ds: ds.interleave(lambda *args: lib.range(2).repeat()),
}


def assert_same_plan(source, first, second, spec):
    def planned(lib):
        dataset = second(lib, first(lib, SOURCES[source](lib)))
        return int(dataset.cardinality()), dataset.element_spec

    (cardinality, mine), (expected_cardinality, expected) = in_both(planned)
    assert cardinality == expected_cardinality
    compare_specs(mine, expected, spec)


@pytest.mark.parametrize("first", TRANSFORMATIONS)
@pytest.mark.parametrize("source", ["known", "empty", "unknown", "endless"])
def test_chains(source, first):
    for second in TRANSFORMATIONS.values():
        assert_same_plan(source, TRANSFORMATIONS[first], second, "equal")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("source", ["known", "unknown", "endless", "fails inside"])
def test_behind_functions(source, function):
    for name, first in TRANSFORMATIONS.items():
        has_elements = source != "endless" or name != "shuffle(-2)"
        if has_elements and name not in MAYBE_EMPTY:  # otherwise it has no spec downstream of a function
            assert_same_plan(source, first, FUNCTIONS[function], "compatible")

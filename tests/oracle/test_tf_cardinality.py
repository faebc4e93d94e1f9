"""Tests of cardinality and element_spec against tf.data's, for chains of two ops that are not run."""

from cases import SOURCES
from compare import compare_specs, in_both, programs, same


def assert_same_plans(build, spec):
    ours, theirs = in_both(lambda lib: [(int(dataset.cardinality()), dataset.element_spec) for dataset in build(lib)])
    for (cardinality, mine), (expected_cardinality, expected) in zip(ours, theirs, strict=True):
        assert cardinality == expected_cardinality
        compare_specs(mine, expected, spec)


CALLS = ["take(2)", "take(100)", "take(-1)", "skip(0)", "shard(2, 0)", "repeat(3)", "repeat()", "shuffle(3)"]
CALLS += ["batch(2)", "prefetch(1)", "cache()", "enumerate()", "with_options(Options())", "concatenate(ds)"]
CALLS += ["filter(lambda *args: True)", "apply(lambda ds: ds.take(4))"]
ZIPS = ["zip(ds, ds)", "zip(ds, range(3))", "zip({'b': ds, 'a': range(3).repeat()})"]
EMPTY = ["take(0)", "skip(2)", "skip(100)", "skip(-1)", "shard(3, 1)", "repeat(0)", "batch(3, True)", "shuffle(-2)"]
WITH_ELEMENTS = [f"lambda ds: {op}" for op in [*(f"ds.{call}" for call in CALLS), *ZIPS]]
EVERY = [*WITH_ELEMENTS, *(f"lambda ds: ds.{call}" for call in EMPTY)]
test_chains = same(
    f"[second(first(source)) for second in ({', '.join(EVERY)})]",
    source={name: SOURCES[name] for name in ("known", "empty", "unknown", "endless")},
    first=programs(EVERY),
    by=assert_same_plans,
    spec="equal",
)
# Without elements, a dataset has no spec downstream of a function.
FUNCTIONS = ["map(lambda *args: args)", "flat_map(lambda *args: range(2))"]
FUNCTIONS += ["interleave(lambda *args: range(2).repeat())"]
test_behind_functions = same(
    [f"[first(source).{call} for first in ({', '.join(WITH_ELEMENTS)})]" for call in FUNCTIONS],
    source={name: SOURCES[name] for name in ("known", "unknown", "endless", "fails_inside")},
    by=assert_same_plans,
    spec="compatible",
)

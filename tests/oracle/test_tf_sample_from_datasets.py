"""Tests of sample_from_datasets against tf.data's: everything that does not depend on the random numbers."""

import numpy as np
import pytest
from compare import in_both, outcomes_of, programs, refused, same

KNOWN = programs(known="[range(30), range(100, 110)]")["known"]
PAIRS = {
    "known": KNOWN,
    **programs(
        empty="[range(0), range(3)]",
        endless="[source.repeat() for source in KNOWN]",
        one_endless="[range(3), range(3).repeat()]",
        unknown="[source.filter(lambda x: x % 2 == 0) for source in KNOWN]",
    ),
}
CONSTANT = {
    "none": None,
    "list": [0.25, 0.75],
    "not normalised": [2.0, 6.0],
    "first is zero": [0.0, 1.0],
    "all are zero": [0.0, 0.0],
    "array": np.array([0.5, 0.5], np.float32),
}
WEIGHTS = CONSTANT | programs(
    second_is_zero="[0.5, 0.0]",
    dataset="from_tensor_slices(np.array([[0.5, 0.5], [1, 0]]))",
    endless_dataset="from_tensors(np.array([0.5, 0.5])).repeat()",
)


def assert_same_plan(build):
    def planned(lib):
        dataset = build(lib)
        return int(dataset.cardinality()), dataset.element_spec, outcomes_of(lib, dataset.take(0))

    ours, theirs = in_both(planned)
    assert ours == theirs


def assert_same_parts(build):
    """Check that the elements of each dataset are the same, in the same order."""

    def parts(lib):
        found = [int(x) for x in build(lib)]
        return [x for x in found if x < 100], [x for x in found if x >= 100]

    ours, theirs = in_both(parts)
    assert ours == theirs


test_cardinality_and_spec = same(
    "sample_from_datasets(source, weights, 1, stop)",
    source=PAIRS,
    weights=WEIGHTS,
    stop=[True, False],
    step=3,
    by=assert_same_plan,
)
test_one_dataset = same("sample_from_datasets([range(4)], seed=1)")
test_shapes_are_merged = same(
    "sample_from_datasets([range(6).batch(n, True) for n in (2, 3)], seed=1)", by=assert_same_plan
)
test_parts = same("sample_from_datasets(KNOWN, weights, seed=1)", weights=CONSTANT, by=assert_same_parts)
ROWS = {
    "turns": [[1.0, 0], [0, 1], [3, 0], [0, 0.5]],
    "behind an end": [[1.0, 0]] * 31 + [[0, 1], [1, 0], [0, 1]],
    "nothing": [[1.0, 0], [0, 0], [0, 1]],
}
test_weights_without_chance = same(
    "sample_from_datasets(KNOWN, from_tensor_slices(np.array(rows)), seed=1, stop_on_empty_dataset=stop)",
    rows=ROWS,
    stop=[True, False],
)
BOTH = np.array([[1.0, 0]] * 6 + [[0, 1.0]] * 3)
test_failures_keep_their_place_among_the_elements_of_their_dataset = same(
    "sample_from_datasets([failing(0, 3, 5, size=6), range(10, 12)], from_tensor_slices(BOTH), seed=1)",
    spec="compatible",
)


@pytest.mark.parametrize("rerandomize", [None, False, True])
@pytest.mark.parametrize("seed", [None, 5])
def test_which_passes_are_alike(seed, rerandomize):
    def alike(lib):
        def make():
            sources = [lib.range(25), lib.range(100, 125)]
            return lib.sample_from_datasets(sources, seed=seed, rerandomize_each_iteration=rerandomize)

        repeated = make().repeat(2)
        first, again, rebuilt = ([int(x) for x in dataset] for dataset in (repeated, repeated, make()))
        return [first[:50] == first[50:], first == again, first[:50] == rebuilt]

    ours, theirs = in_both(alike)
    assert ours == theirs


REFUSED = ["range(3)", "[range(3), 3]", "[range(2), range(2, output_type=np.int32)]", "[]", "KNOWN, seed=1.5"]
REFUSED += ["KNOWN, seed='a'", "KNOWN, from_tensor_slices(np.ones(3))", "KNOWN, from_tensor_slices(np.ones((3, 1, 2)))"]
NO_WEIGHTS = [
    "[0.5]",
    "[0.5, 0.5, 0.5]",
    "[]",
    "['a', 'b']",
    "[True, True]",
    "{'a': 0.5, 'b': 0.5}",
    "iter([0.5, 0.5])",
]
REFUSED += [f"KNOWN, {weights}" for weights in NO_WEIGHTS]
test_what_is_refused = refused({(TypeError, ValueError): [f"sample_from_datasets({case})" for case in REFUSED]})

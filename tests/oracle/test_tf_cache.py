"""Tests of cache() in memory against tf.data's."""

from cases import ELEMENTS, SOURCES, failing
from compare import FAILED, assert_same, same

FINITE = {name: make for name, make in SOURCES.items() if name != "endless"}

test_one_pass = same(lambda lib, source: source(lib).cache(), SOURCES, limit=12)
test_several_passes = same(lambda lib, source, count: source(lib).cache().repeat(count), FINITE, [1, 2, 3])
test_structures = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(2).cache().repeat(2), ELEMENTS)
test_behind_and_before_other_transformations = same(
    [
        lambda lib: lib.range(5).cache().take(3).repeat(2),
        lambda lib: lib.range(5).take(3).cache().repeat(2).cache(),
        lambda lib: lib.range(0).cache().repeat(3),
        lambda lib: lib.range(3).cache(name="label"),
    ]
)


def numbered(lib):
    """Return a dataset that returns the number of the pass over it, three times."""
    passes = []

    def count():
        passes.append(len(passes))
        for _ in range(3):
            yield passes[-1]

    return lib.from_generator(count, output_signature=lib.TensorSpec((), "int64"))


def taken(lib, stops):
    """Take the first elements of several iterators, one after the other; 4 is past the end."""
    dataset = numbered(lib).cache()
    if lib.name == "tf.data":  # disable its prefetching
        options = lib.Options()
        options.experimental_optimization.inject_prefetch = False
        dataset = dataset.with_options(options)
    seen = []
    for stop in stops:
        iterator = iter(dataset)
        seen += [int(element) for _, element in zip(range(stop), iterator, strict=False)]
        del iterator
    return lib.from_tensor_slices(lib.const([*seen, -1], "int64"))


test_only_a_full_pass_fills_it = same(taken, [(3,), (4,), (1, 4), (2, 3, 4), (0, 4), (4, 1, 4)])


def test_a_pass_with_a_failure():
    assert assert_same(lambda lib: failing(lib, 2).cache().repeat(2)).count(FAILED) == 1

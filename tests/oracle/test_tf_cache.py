"""Tests of cache() in memory against tf.data's."""

import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import FAILED, assert_same


@pytest.mark.parametrize("source", SOURCES)
def test_one_pass(source):
    assert_same(lambda lib: SOURCES[source](lib).cache(), limit=12)


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "endless"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_passes(source, count):
    assert_same(lambda lib: SOURCES[source](lib).cache().repeat(count), limit=30)


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(2).cache().repeat(2))


def test_behind_and_before_other_transformations():
    assert_same(lambda lib: lib.Dataset.range(5).cache().take(3).repeat(2))
    assert_same(lambda lib: lib.Dataset.range(5).take(3).cache().repeat(2).cache())
    assert_same(lambda lib: lib.Dataset.range(0).cache().repeat(3))
    assert_same(lambda lib: lib.Dataset.range(3).cache(name="label"))


def numbered(lib, passes):
    """Return a dataset that returns the number of the pass over it, three times."""

    def count():
        passes.append(len(passes))
        for _ in range(3):
            yield passes[-1]

    return lib.Dataset.from_generator(count, output_signature=lib.TensorSpec((), "int64"))


@pytest.mark.parametrize("stops", [(3,), (4,), (1, 4), (2, 3, 4), (0, 4), (4, 1, 4)], ids=str)
def test_only_a_full_pass_fills_it(stops):
    """Take the first elements of several iterators, one after the other; 4 is past the end."""

    def build(lib):
        dataset = numbered(lib, []).cache()
        if lib.name == "tf.data":  # disable its prefetching
            options = lib.Options()
            options.experimental_optimization.inject_prefetch = False
            dataset = dataset.with_options(options)
        seen = []
        for stop in stops:
            iterator = iter(dataset)
            seen += [int(element) for _, element in zip(range(stop), iterator, strict=False)]
            del iterator
        return lib.Dataset.from_tensor_slices(lib.const([*seen, -1], "int64"))

    assert_same(build)


def test_a_pass_with_a_failure():
    found = assert_same(lambda lib: failing(lib, 2).cache().repeat(2))
    assert found.count(FAILED) == 1

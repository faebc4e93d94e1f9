"""Tests of cache() in memory against tf.data's."""

from cases import ELEMENTS, FINITE, SOURCES
from compare import FAILED, assert_same, same

test_one_pass = same("source.cache(name='label')", source=SOURCES, limit=12)
test_several_passes = same("source.cache().repeat(count)", source=FINITE, count=[1, 2, 3])
test_structures = same("from_tensors(element).repeat(2).cache().repeat(2)", element=ELEMENTS)
test_behind_and_before_other_transformations = same(
    ["range(5).cache().take(3).repeat(2)", "range(5).take(3).cache().repeat(2).cache()"]
)


def taken(lib, stops):
    """Take the first elements of several iterators, one after the other; 4 is past the end."""
    passes = []

    def number_of_the_pass():
        passes.append(len(passes))
        for _ in range(3):
            yield passes[-1]

    dataset = lib.from_generator(number_of_the_pass, output_signature=lib.TensorSpec((), "int64")).cache()
    if lib.name == "tf.data":  # disable its prefetching
        options = lib.Options()
        options.experimental_optimization.inject_prefetch = False
        dataset = dataset.with_options(options)
    seen = [int(element) for stop in stops for _, element in zip(range(stop), dataset, strict=False)]
    return lib.from_tensor_slices(lib.const([*seen, -1], "int64"))


test_only_a_full_pass_fills_it = same("taken(stops)", stops=[(3,), (4,), (1, 4), (2, 3, 4), (0, 4), (4, 1, 4)])


def test_a_pass_with_a_failure():
    assert assert_same(lambda lib: lib.failing(2).cache().repeat(2)).count(FAILED) == 1

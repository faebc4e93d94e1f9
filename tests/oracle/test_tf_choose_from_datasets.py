"""Tests of choose_from_datasets against tf.data's."""

import numpy as np
from cases import check
from compare import FAILED, assert_same, refused, same


def failing(lib, start, stop, *bad):
    return lib.range(start, stop).map(check(lib, *bad))


SOURCES = {
    "equal": lambda lib: [lib.range(4), lib.range(10, 14)],
    "one": lambda lib: [lib.range(4)],
    "short first": lambda lib: [lib.range(1), lib.range(10, 14)],
    "empty first": lambda lib: [lib.range(0), lib.range(10, 14)],
    "empty second": lambda lib: [lib.range(4), lib.range(0)],
    "both empty": lambda lib: [lib.range(0), lib.range(0)],
    "endless": lambda lib: [lib.range(2).repeat(), lib.range(10, 13).repeat()],
    "one endless": lambda lib: [lib.range(2), lib.range(10, 13).repeat()],
    "unknown": lambda lib: [lib.range(9).filter(lambda x: x % 3 == 0), lib.range(10, 14)],
    "failing": lambda lib: [failing(lib, 0, 4, 0, 2), failing(lib, 10, 14, 11, 13)],
}
TURNS = [0, 1, 0, 1, 0, 1]
CHOICES = {
    "turns": TURNS,
    "runs": [0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1],
    "first alone": [0] * 7,
    "none": [],
    "out of range": [0, 2, 0, -1, 0, 5, 0, 0, 0],
}


def picks(lib, choices=TURNS):
    return lib.from_tensor_slices(np.array(choices, np.int64))


test_choices = same(
    lambda lib, source, choices, stop: lib.choose_from_datasets(source(lib), picks(lib, choices), stop),
    SOURCES,
    CHOICES,
    [True, False],
    spec="compatible",
)
test_the_default_is_to_stop = same(
    lambda lib, source: lib.choose_from_datasets(SOURCES[source](lib), picks(lib, CHOICES["runs"])),
    ["equal", "short first", "endless", "failing"],
    spec="compatible",
)
test_choices_without_end = same(
    lambda lib, source, stop: lib.choose_from_datasets(SOURCES[source](lib), lib.range(2).repeat(), stop),
    ["equal", "endless", "unknown", "one endless", "failing"],
    [True, False],
    limit=20,
    spec="compatible",
)


def test_choices_that_fail():
    def build(lib, stop):
        choices = failing(lib, 0, 9, 1, 5).filter(lambda x: x < 8).map(lambda x: x % 2)
        return lib.choose_from_datasets(SOURCES["equal"](lib), choices, stop)

    for stop in (True, False):
        assert assert_same(lambda lib, stop=stop: build(lib, stop), spec="compatible").count(FAILED) == 2
    outside = assert_same(lambda lib: lib.choose_from_datasets(SOURCES["equal"](lib), picks(lib, [0, 2, 0, -1, 0, 5])))
    assert outside.count(FAILED) == 3


STRUCTURES = {
    "shapes": lambda lib: [lib.range(5).batch(n, drop_remainder=True) for n in (2, 3)],
    "partly known shapes": lambda lib: [lib.range(5).batch(2), lib.range(6).batch(3, True)],
    "ranks": lambda lib: [lib.range(5), lib.range(5).batch(2)],
    "dicts": lambda lib: [
        lib.zip({"a": lib.range(2), "b": lib.range(2, 4)}),
        lib.zip({"b": lib.range(5, 7), "a": lib.range(7, 9)}),
    ],
    "tuples and text": lambda lib: [
        lib.from_tensor_slices((np.arange(2.0), ["a", "bc"])),
        lib.from_tensor_slices((np.arange(5.0, 7.0), ["", "d"])),
    ],
    "ragged": lambda lib: [lib.from_tensors(lib.ragged(rows)).repeat(2) for rows in ([[1], [2, 3]], [[4, 5], []])],
    "sparse": lambda lib: [
        lib.from_tensors(lib.sparse([[place]], np.array([place]), [3])).repeat(2) for place in (1, 0)
    ],
}
test_structures_and_merged_specs = same(
    lambda lib, structure: lib.choose_from_datasets(structure(lib), picks(lib)), STRUCTURES
)
test_choices_whose_shape_is_unknown = same(
    lambda lib: lib.choose_from_datasets(
        SOURCES["equal"](lib), lib.from_generator(lambda: iter([1, 0]), output_signature=lib.TensorSpec(None, np.int64))
    )
)
REFUSED = {
    "no datasets": lambda lib: ([], picks(lib)),
    "a dataset": lambda lib: (lib.range(3), picks(lib)),
    "a number among them": lambda lib: ([lib.range(3), 3], picks(lib)),
    "choices in a list": lambda lib: (SOURCES["equal"](lib), [0, 1]),
    "int32 choices": lambda lib: (SOURCES["equal"](lib), lib.range(2, output_type=np.int32)),
    "vectors": lambda lib: (SOURCES["equal"](lib), lib.range(2).batch(1)),
    "dtypes": lambda lib: ([lib.range(2), lib.range(2, output_type=np.int32)], picks(lib)),
    "structures": lambda lib: ([lib.range(2), lib.range(2).enumerate()], picks(lib)),
    "keys": lambda lib: ([lib.from_tensors({key: 1}) for key in "ab"], picks(lib)),
}
test_what_is_refused = refused(
    {(TypeError, ValueError): REFUSED}, lambda lib, arguments: lib.choose_from_datasets(*arguments(lib))
)

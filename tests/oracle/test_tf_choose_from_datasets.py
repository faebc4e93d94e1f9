"""Tests of choose_from_datasets against tf.data's."""

import numpy as np
from compare import programs, refused, same

SOURCES = programs(
    equal="[range(4), range(10, 14)]",
    one="[range(4)]",
    short_first="[range(1), range(10, 14)]",
    empty_first="[range(0), range(10, 14)]",
    empty_second="[range(4), range(0)]",
    both_empty="[range(0), range(0)]",
    endless="[range(2).repeat(), range(10, 13).repeat()]",
    one_endless="[range(2), range(10, 13).repeat()]",
    unknown="[range(9).filter(lambda x: x % 3 == 0), range(10, 14)]",
    failing="[range(4).map(check(0, 2)), range(10, 14).map(check(11, 13))]",
)
EQUAL = SOURCES["equal"]
TURNS = [0, 1, 0, 1, 0, 1]
RUNS = [0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]


def picks(lib, choices=TURNS):
    return lib.from_tensor_slices(np.array(choices, np.int64))


CHOICES = programs(
    turns="picks()",
    runs="picks(RUNS)",
    first_alone="picks([0] * 7)",
    none="picks([])",
    out_of_range="picks([0, 2, 0, -1, 0, 5, 0, 0, 0])",
    without_end="range(2).repeat()",
    that_fail="range(9).map(check(1, 5)).filter(lambda x: x < 8).map(lambda x: x % 2)",
)
test_choices = same(
    "choose_from_datasets(source, choices, stop)",
    source=SOURCES,
    choices=CHOICES,
    stop=[True, False],
    limit=20,
    spec="compatible",
)
test_the_default_is_to_stop = same(
    "choose_from_datasets(source, picks(RUNS))", source=SOURCES, limit=20, spec="compatible"
)
test_structures_and_merged_specs = same(
    "choose_from_datasets(structure, picks())",
    structure=programs(
        shapes="[range(5).batch(2, True), range(5).batch(3, True)]",
        partly_known_shapes="[range(5).batch(2), range(6).batch(3, True)]",
        ranks="[range(5), range(5).batch(2)]",
        dicts="[zip({'a': range(2), 'b': range(2, 4)}), zip({'b': range(5, 7), 'a': range(7, 9)})]",
        tuples_and_text="[from_tensor_slices((np.arange(2.0) + n, ['a', 'bc' * n])) for n in (1, 5)]",
        ragged="[from_tensors(ragged(rows)).repeat(2) for rows in ([[1], [2, 3]], [[4, 5], []])]",
        sparse="[from_tensors(sparse([[place]], np.array([place]), [3])).repeat(2) for place in (1, 0)]",
    ),
)
test_choices_whose_shape_is_unknown = same("choose_from_datasets(EQUAL, arrays([1, 0], None))")
REFUSED = {
    "no datasets": "([], picks())",
    "a dataset": "(range(3), picks())",
    "a number among them": "([range(3), 3], picks())",
    "choices in a list": "(EQUAL, [0, 1])",
    "int32 choices": "(EQUAL, range(2, output_type=np.int32))",
    "vectors": "(EQUAL, range(2).batch(1))",
    "dtypes": "([range(2), range(2, output_type=np.int32)], picks())",
    "structures": "([range(2), range(2).enumerate()], picks())",
    "keys": "([from_tensors({key: 1}) for key in 'ab'], picks())",
}
test_what_is_refused = refused({(TypeError, ValueError): programs(REFUSED)}, "choose_from_datasets(*case)")

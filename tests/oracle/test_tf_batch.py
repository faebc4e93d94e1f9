"""Tests of batch against tf.data's."""

import numpy as np
from cases import NUMBERS, Pair
from compare import programs, refused, same

ROWS = [0, 2, 2, 3, 3, 5]
TEXTS = np.array([b"a\0", b"", b"b", b"c", b"d"], object)
RAGGED = programs(
    vectors="np.arange(15).reshape(5, 3)",
    ragged="from_splits([ROWS], np.arange(5))",
    ragged_int32="from_splits([ROWS], np.arange(5), np.int32)",
)
COMPONENTS = {
    **{dtype: np.arange(5).astype(dtype) for dtype in NUMBERS},
    "text": [b"a\0", b"", b"b", b"\0\0", b"c"],
    "lists of text": [[b"a\0", b"b"]] * 5,
    "arrays of no size": np.zeros((5, 0, 2)),
    "tuple": (np.arange(5), (np.zeros(5), np.zeros((5, 2)))),
    "one in a tuple": (np.arange(5),),
    "dict": {"b": np.arange(5), "a": {"c": np.zeros(5)}},
    "named tuple": Pair(np.arange(5), (np.arange(5), np.zeros(5))),
    **RAGGED,
    **programs(
        ragged_twice="from_splits([ROWS, [0, 1, 1, 4, 5, 6]], np.arange(6.0))",
        ragged_thrice="from_splits([ROWS, [0, 1, 1, 4, 5, 6], [0] * 6 + [3]], np.arange(3))",
        ragged_with_inner_dimensions="from_splits([ROWS], np.arange(10.0).reshape(5, 2))",
        ragged_text="from_splits([ROWS], TEXTS)",
        ragged_of_nothing="from_splits([[0] * 6], np.zeros(0))",
        sparse="sparse([[0, 1], [0, 2], [3, 0]], [1.5, 2, 3], [5, 3])",
        sparse_of_nothing="sparse([], np.zeros(0), [5, 3])",
        sparse_cubes="sparse([[0, 1, 1], [4, 0, 0]], [1.5, 2], [5, 2, 2])",
        beside_ragged="(from_splits([ROWS], np.arange(5)), np.arange(5))",
    ),
}


def slices(lib, component="ragged"):
    return lib.from_tensor_slices(RAGGED[component].run(lib))


test_components = same(
    "from_tensor_slices(component).batch(size, drop)",
    component=COMPONENTS,
    size=[1, 2, 3, 5, 9],
    drop=[False, True],
    step=4,
)
test_rows_of_a_ragged_tensor_are_ragged_until_a_function_has_seen_them = same(
    {
        "filter": "slices().filter(lambda row: True).batch(3)",
        "concatenate": "slices().concatenate(slices()).batch(3)",
        "zip": "zip(slices(), range(5)).batch(2)",
        "map": "slices().map(lambda row: row).batch(5)",
    },
    spec=lambda name: "any" if name == "map" else "equal",
    fails=lambda name: name == "map",
)
OTHER_ROWS = [("ragged", "vectors"), ("vectors", "ragged"), ("ragged", "ragged_int32")]
test_rows_of_a_ragged_tensor_and_arrays_do_not_follow_each_other = refused(
    {TypeError: OTHER_ROWS}, "slices(case[0]).concatenate(slices(case[1]))"
)
SHAPES = [[9, 1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2], [1, 1, 1, 2], [0, 1], [2, 2], [2, (2, 1), 2, 2, ()]]
SHAPES = [list(map(np.ones, shapes)) for shapes in SHAPES]
test_elements_of_different_shapes_fail_in_their_batch = same(
    "arrays(elements, shape).batch(size, drop_remainder=shape is None)",
    elements=SHAPES[:6],
    shape=[(None,), None],
    size=[1, 2, 3, 4],
)
test_elements_of_different_ranks_fail_in_their_batch = same("arrays(SHAPES[6], None).batch(size)", size=[1, 2, 3, 4])


def of_size(lib, size):
    return lib.from_tensors(lib.sparse([[0]], [1.5], [size]))


test_sparse_elements_of_different_shapes_have_room_in_their_batch = same(
    "of_size(sizes[0]).concatenate(of_size(sizes[1])).concatenate(of_size(sizes[2])).batch(2)",
    sizes=[[2, 3, 3], [3, 2, 9], [1, 1, 1]],
)
test_failures = same(
    "unfused(failing(*bad, size=5)).batch(size, drop)",
    bad=[(0,), (1,), (2,), (1, 2), (4,), (0, 4), (0, 1, 2)],
    size=[1, 2, 3, 9],
    drop=[False, True],
    fails=True,
)
REFUSED = [*((size,) for size in (0, -1, 2.0, "2", None, [2], [[2]])), (2, 1), (2, 0), (2, None), (2, "yes")]
test_what_is_refused = refused({(TypeError, ValueError): REFUSED}, "range(3).batch(*case)")
test_what_is_a_batch_size = same("range(3).batch(size, np.bool_(True))", size=[np.int32(2), np.array(2), np.uint8(2)])

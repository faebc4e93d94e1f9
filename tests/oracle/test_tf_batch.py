"""Tests of batch against tf.data's."""

import numpy as np
from cases import Pair, failing
from compare import refused, same

from support.libraries import arrays

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
ROWS = [0, 2, 2, 3, 3, 5]
TEXTS = np.array([b"a\0", b"", b"b", b"c", b"d"], object)

COMPONENTS = {
    **{dtype: lambda lib, dtype=dtype: np.arange(5).astype(dtype) for dtype in DTYPES},
    "text": lambda lib: [b"a\0", b"", b"b", b"\0\0", b"c"],
    "lists of text": lambda lib: [[b"a\0", b"b"]] * 5,
    "vectors": lambda lib: np.arange(15).reshape(5, 3),
    "arrays of no size": lambda lib: np.zeros((5, 0, 2)),
    "ragged": lambda lib: lib.from_splits([ROWS], np.arange(5)),
    "ragged, int32": lambda lib: lib.from_splits([ROWS], np.arange(5), np.int32),
    "ragged twice": lambda lib: lib.from_splits([ROWS, [0, 1, 1, 4, 5, 6]], np.arange(6.0)),
    "ragged thrice": lambda lib: lib.from_splits([ROWS, [0, 1, 1, 4, 5, 6], [0] * 6 + [3]], np.arange(3)),
    "ragged, with inner dimensions": lambda lib: lib.from_splits([ROWS], np.arange(10.0).reshape(5, 2)),
    "ragged text": lambda lib: lib.from_splits([ROWS], TEXTS),
    "ragged of nothing": lambda lib: lib.from_splits([[0] * 6], np.zeros(0)),
    "sparse": lambda lib: lib.sparse([[0, 1], [0, 2], [3, 0]], [1.5, 2, 3], [5, 3]),
    "sparse of nothing": lambda lib: lib.sparse([], np.zeros(0), [5, 3]),
    "sparse cubes": lambda lib: lib.sparse([[0, 1, 1], [4, 0, 0]], [1.5, 2], [5, 2, 2]),
    "tuple": lambda lib: (np.arange(5), (np.zeros(5), np.zeros((5, 2)))),
    "one in a tuple": lambda lib: (np.arange(5),),
    "dict": lambda lib: {"b": np.arange(5), "a": {"c": np.zeros(5)}},
    "named tuple": lambda lib: Pair(np.arange(5), (np.arange(5), np.zeros(5))),
    "beside ragged": lambda lib: (lib.from_splits([ROWS], np.arange(5)), np.arange(5)),
}


def slices(lib, component):
    return lib.from_tensor_slices(COMPONENTS[component](lib))


test_components = same(
    lambda lib, component, size, drop: lib.from_tensor_slices(component(lib)).batch(size, drop),
    COMPONENTS,
    [1, 2, 3, 5, 9],
    [False, True],
    step=4,
)
test_rows_of_a_ragged_tensor_are_ragged_until_a_function_has_seen_them = same(
    {
        "filter": lambda lib: slices(lib, "ragged").filter(lambda row: True).batch(3),
        "concatenate": lambda lib: slices(lib, "ragged").concatenate(slices(lib, "ragged")).batch(3),
        "zip": lambda lib: lib.zip(slices(lib, "ragged"), lib.range(5)).batch(2),
        "map": lambda lib: slices(lib, "ragged").map(lambda row: row).batch(5),
    },
    spec=lambda name: "any" if name == "map" else "equal",
    fails=lambda name: name == "map",
)
test_rows_of_a_ragged_tensor_and_arrays_do_not_follow_each_other = refused(
    {TypeError: [("ragged", "vectors"), ("vectors", "ragged"), ("ragged", "ragged, int32")]},
    lambda lib, pair: slices(lib, pair[0]).concatenate(slices(lib, pair[1])),
)
LENGTHS = [[9, 1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2], [1, 1, 1, 2], [0, 1], [2, 2]]
test_elements_of_different_shapes_fail_in_their_batch = same(
    lambda lib, lengths, size: arrays(lib, map(np.ones, lengths), (None,)).batch(size), LENGTHS, [1, 2, 3, 4]
)
test_elements_of_different_ranks_fail_in_their_batch = same(
    lambda lib, shapes, size: arrays(lib, map(np.ones, shapes), None).batch(size, drop_remainder=True),
    [*LENGTHS, [2, (2, 1), 2, 2, ()]],
    [1, 2, 3, 4],
)


def of_shapes(lib, shapes):
    first, *others = (lib.from_tensors(lib.sparse([[0]], [1.5], [size])) for size in shapes)
    for other in others:
        first = first.concatenate(other)
    return first


test_sparse_elements_of_different_shapes_have_room_in_their_batch = same(
    lambda lib, shapes: of_shapes(lib, shapes).batch(2), [[2, 3, 3], [3, 2, 9], [1, 1, 1]]
)
test_failures = same(
    lambda lib, bad, size, drop: lib.unfused(failing(lib, *bad, size=5)).batch(size, drop),
    [(0,), (1,), (2,), (1, 2), (4,), (0, 4), (0, 1, 2)],
    [1, 2, 3, 9],
    [False, True],
    fails=True,
)
REFUSED = [*((size,) for size in (0, -1, 2.0, "2", None, [2], [[2]])), (2, 1), (2, 0), (2, None), (2, "yes")]
test_what_is_refused = refused(
    {(TypeError, ValueError): REFUSED}, lambda lib, arguments: lib.range(3).batch(*arguments)
)
test_what_is_a_batch_size = same(
    lambda lib, size: lib.range(3).batch(size, np.bool_(True)), [np.int32(2), np.array(2), np.uint8(2)]
)

"""Tests of unbatch against tf.data's, which crashes for rows of size 0."""

import numpy as np
from cases import Pair, failing
from compare import refused, same

from support.libraries import arrays, counting

SPLITS, TWICE = [0, 2, 2, 3], [[0, 2, 2, 3], [0, 1, 1, 4]]
ELEMENTS = {
    **{dtype: lambda lib, dtype=dtype: np.arange(3).astype(dtype) for dtype in ["?", "i1", "u8", "f2", "f8", "c8"]},
    "text": lambda lib: [b"a\0", b"", b"\0"],
    "matrix": lambda lib: np.arange(6).reshape(3, 2),
    "ragged": lambda lib: lib.from_splits([SPLITS], np.arange(3)),
    "ragged, int32": lambda lib: lib.from_splits([SPLITS], np.arange(3), np.int32),
    "ragged twice": lambda lib: lib.from_splits(TWICE, np.arange(4.0)),
    "ragged twice, int32": lambda lib: lib.from_splits(TWICE, np.arange(4.0), np.int32),
    "ragged text": lambda lib: lib.from_splits([SPLITS], np.array([b"a\0", b"", b"b"], object)),
    "ragged, with inner dimensions": lambda lib: lib.from_splits([SPLITS], np.arange(6.0).reshape(3, 2)),
    "ragged of nothing": lambda lib: lib.from_splits([[0, 0, 0]], np.zeros(0)),
    "sparse": lambda lib: lib.sparse([[0, 1], [2, 0]], [1.5, 2], [3, 2]),
    "sparse of nothing": lambda lib: lib.sparse([], np.zeros(0), [3, 2]),
    "sparse cubes": lambda lib: lib.sparse([[0, 1, 1], [2, 0, 0]], [1.5, 2], [3, 2, 2]),
    "tuple": lambda lib: (np.arange(3), (np.zeros((3, 2)), np.zeros(3))),
    "one in a tuple": lambda lib: (np.arange(3),),
    "dict": lambda lib: {"b": np.arange(3), "a": {"c": np.zeros(3)}},
    "named tuple": lambda lib: Pair(np.arange(3), (np.arange(3), np.zeros(3))),
    "beside None": lambda lib: (np.arange(3), None),
    "beside ragged": lambda lib: (lib.from_splits([SPLITS], np.arange(3)), np.arange(3)),
}


def whole(lib, element):
    return lib.from_tensors(ELEMENTS[element](lib))


test_elements = same(
    {
        "alone": lambda lib, element: whole(lib, element).unbatch(),
        "skip": lambda lib, element: whole(lib, element).repeat(3).unbatch().skip(2),
        "endless": lambda lib, element: whole(lib, element).repeat().unbatch(),
        "batch": lambda lib, element: whole(lib, element).unbatch().batch(2),
        "batches": lambda lib, element: whole(lib, element).batch(2).unbatch().unbatch(),
        "nothing": lambda lib, element: whole(lib, element).take(0).unbatch(),
    },
    list(ELEMENTS),
    limit=12,
    # tf.data does not see the number of rows of sparse tensors.
    cardinality=lambda element, _: "sparse" not in element,
)
test_rows_of_rows = same(
    lambda lib, element: whole(lib, element).unbatch().unbatch(),
    ["ragged", "ragged twice", "ragged, with inner dimensions", "matrix"],
)
test_elements_of_different_sizes = same(
    {
        "rows of rows of rows": lambda lib: whole(lib, "ragged twice").unbatch().unbatch().unbatch(),
        "batches of rows": lambda lib: whole(lib, "ragged twice").unbatch().unbatch().batch(2),
        "growing": lambda lib: counting(lib, 5).skip(1).unbatch(),
        "sizes": lambda lib: arrays(lib, [[1], [2, 3, 4], [5, 6]], (None,)).unbatch(),
        "ranks": lambda lib: arrays(lib, [np.ones((2, 2)), np.ones(2)], None).unbatch(),
    }
)
test_components_of_different_lengths_fail_in_their_place = same(
    lambda lib, both: lib.zip(*(arrays(lib, map(np.arange, lengths), (None,)) for lengths in both)).unbatch(),
    [([3, 2], [2, 2]), ([2, 2], [3, 2]), ([2, 2, 1], [2, 3, 1]), ([1], [2]), ([2], [1])],
    fails=True,
)
test_scalars_that_only_running_shows_fail_in_their_place = same(
    lambda lib, values: arrays(lib, values, None).unbatch(), [[3, [1, 2]], [[1, 2], 3], [3]], fails=True
)
BAD = [(1,), (4,), (2, 3)]
test_failures_of_vectors = same(
    lambda lib, bad: counting(lib, 5, bad=bad).skip(1).unbatch(), BAD, spec="any", fails=True
)
test_failures_in_batches = same(
    lambda lib, bad: lib.unfused(failing(lib, *bad, size=6)).batch(2).unbatch(), BAD, fails=True
)


COUNTED = {
    "full batches of full batches": lambda lib: lib.range(9).batch(2, True).batch(2, True).unbatch(),
    "batches of full batches": lambda lib: lib.range(9).batch(2, True).batch(2).unbatch(),
    "full batches of batches": lambda lib: lib.range(9).batch(2).batch(2, True).unbatch(),
    "known and unknown": lambda lib: lib.zip(lib.range(6).batch(2, True), lib.range(6).batch(2)).unbatch(),
    "unknown and known": lambda lib: lib.zip(lib.range(6).batch(2), lib.range(6).batch(2, True)).unbatch(),
    "ragged": lambda lib: counting(lib, 5).ragged_batch(2, drop_remainder=True).unbatch(),
    "sparse": lambda lib: counting(lib, 5).sparse_batch(2, [5]).unbatch(),
    "rebatched": lambda lib: lib.range(8).batch(4, True).rebatch(2).unbatch(),
}


test_counts = same(COUNTED, limit=12, spec="compatible")

REFUSED = {
    "scalars": lambda lib: lib.range(3).unbatch(),
    "text": lambda lib: lib.from_tensors(b"a").unbatch(),
    "a scalar component": lambda lib: lib.from_tensors((np.zeros(2), np.float64(1))).unbatch(),
    "rows known to differ": lambda lib: lib.from_tensors((np.zeros(2), np.zeros(3))).unbatch(),
    "ragged rows known to differ": lambda lib: lib.from_tensors(
        (lib.from_splits([[0, 1]], [1]), np.zeros(3))
    ).unbatch(),
}


test_what_is_refused = refused({(TypeError, ValueError): REFUSED})

"""Tests of ragged_batch against tf.data's."""

import numpy as np
from compare import refused, same

from support.libraries import arrays, counting

UNEVEN = {
    "vectors": ([np.arange(i) for i in range(5)], (None,)),
    "all empty": ([np.zeros(0)] * 3, (None,)),
    "matrices": ([np.ones((i, 3 - i)) for i in range(4)], (None, None)),
    "rows of two": ([np.full((i, 2), i) for i in range(3)], (None, 2)),
    "two rows": ([np.full((2, i), i) for i in range(3)], (2, None)),
    "a fixed axis between": ([np.full((i, 2, 3 - i), i) for i in range(3)], (None, 2, None)),
    "a fixed axis behind": ([np.full((i, 3 - i, 2), i) for i in range(3)], (None, None, 2)),
    "fixed axes around": ([np.full((2, i, 3), i) for i in range(3)], (2, None, 3)),
    "fixed axes before": ([np.full((1, 2, i), i) for i in range(3)], (1, 2, None)),
    "fixed": ([np.full((2, 2), i) for i in range(3)], (2, 2)),
    "scalars": ([1, 2, 3], ()),
    "fixed but zero": ([np.zeros((0, 2))] * 3, (0, 2)),
    "none": ([], (None, 2)),
}


test_shapes = same(
    lambda lib, values, size, drop: arrays(lib, *values).ragged_batch(size, drop),
    UNEVEN,
    [1, 2, 3, 9],
    [False, True],
    step=2,
)
# With more than one ragged dimension, tf.data fails to make int32 row splits.
test_the_dtype_of_row_splits = same(
    lambda lib, values, splits: arrays(lib, *UNEVEN[values]).ragged_batch(2, row_splits_dtype=splits),
    ["vectors", "all empty", "rows of two", "fixed", "scalars", "none"],
    [np.int32, np.int64, "int32", np.dtype("int64")],
)
CONTENT = {dtype: [[1], [], [0, 1]] for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64)}
CONTENT |= {bytes: [[b"a\0"], [b"", b"b"], []]}
test_dtypes = same(lambda lib, dtype: arrays(lib, CONTENT[dtype], (None,), dtype).ragged_batch(2), list(CONTENT))


RAGGED = {
    "rank 1": ([[0, 2, 3, 3]], np.int64),
    "rank 2": ([[0, 2, 3, 3], [0, 1, 3, 3]], np.int64),
    "rank 1, int32": ([[0, 2, 3, 3]], np.int32),
    "rank 2, int32": ([[0, 2, 3, 3], [0, 1, 3, 3]], np.int32),
}


def rows(lib, ragged):
    levels, dtype = ragged
    return lib.from_tensor_slices(lib.from_splits(levels, np.arange(3), dtype))


test_ragged_components_keep_their_row_splits = same(
    lambda lib, ragged, splits: rows(lib, ragged).ragged_batch(2, row_splits_dtype=splits), RAGGED, [np.int32, np.int64]
)
test_batches_of_batches = same(lambda lib, ragged: rows(lib, ragged).ragged_batch(2).ragged_batch(2), RAGGED)
test_rows_of_batches = same(lambda lib, ragged: rows(lib, ragged).ragged_batch(2).unbatch(), RAGGED, cardinality=False)


def vectors(lib):
    return arrays(lib, *UNEVEN["vectors"])


def matrices(lib):
    return arrays(lib, *UNEVEN["matrices"]).ragged_batch(2)


CHAINS = {
    "sparse, as by batch": lambda lib: lib.from_tensor_slices(
        lib.sparse([[0, 0], [1, 1]], [1.5, 2], [3, 2])
    ).ragged_batch(2),
    "nested": lambda lib: lib.zip({"b": vectors(lib), "a": (lib.range(5), vectors(lib))}).ragged_batch(2),
    "beside None": lambda lib: lib.from_tensors((np.int64(1), None)).repeat(3).ragged_batch(2),
    "twice": lambda lib: vectors(lib).ragged_batch(2).ragged_batch(2),
    "unbatch": lambda lib: vectors(lib).ragged_batch(2).unbatch(),
    "unbatch matrices": lambda lib: matrices(lib).unbatch(),
    "unbatch twice": lambda lib: matrices(lib).unbatch().unbatch(),
}
test_chains = same(CHAINS, limit=12)
test_failures = same(
    lambda lib, bad: counting(lib, 5, bad=bad).ragged_batch(2), [(0,), (1,), (2,), (1, 2), (4,)], spec="any", fails=True
)
REFUSED = [*((size,) for size in (0, -1, 2.0, "2", None, [2])), (2, 1), (2, None), (2, "yes")]
REFUSED += [(2, False, splits) for splits in (np.int16, np.float32, np.uint32)]
test_what_is_refused = refused(
    {(TypeError, ValueError): REFUSED}, lambda lib, arguments: vectors(lib).ragged_batch(*arguments)
)

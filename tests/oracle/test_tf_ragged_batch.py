"""Tests of ragged_batch against tf.data's."""

import numpy as np
from compare import programs, refused, same

UNEVEN = {
    "vectors": ([np.arange(i) for i in range(5)], (None,)),
    "all empty": ([np.zeros(0)] * 3, (None,)),
    "rows of two": ([np.full((i, 2), i) for i in range(3)], (None, 2)),
    "fixed": ([np.full((2, 2), i) for i in range(3)], (2, 2)),
    "scalars": ([1, 2, 3], ()),
    "none": ([], (None, 2)),
}
# With more than one ragged dimension, tf.data fails to make int32 row splits.
MORE = {
    "matrices": ([np.ones((i, 3 - i)) for i in range(4)], (None, None)),
    "two rows": ([np.full((2, i), i) for i in range(3)], (2, None)),
    "a fixed axis between": ([np.full((i, 2, 3 - i), i) for i in range(3)], (None, 2, None)),
    "a fixed axis behind": ([np.full((i, 3 - i, 2), i) for i in range(3)], (None, None, 2)),
    "fixed axes around": ([np.full((2, i, 3), i) for i in range(3)], (2, None, 3)),
    "fixed axes before": ([np.full((1, 2, i), i) for i in range(3)], (1, 2, None)),
    "fixed but zero": ([np.zeros((0, 2))] * 3, (0, 2)),
}
VECTORS, MATRICES = programs(["arrays(*UNEVEN['vectors'])", "arrays(*MORE['matrices']).ragged_batch(2)"]).values()
test_shapes = same(
    "arrays(*values).ragged_batch(size, drop)",
    values=UNEVEN | MORE,
    size=[1, 2, 3, 9],
    drop=[False, True],
    step=2,
)
SPLITS = [np.int32, np.int64, "int32", np.dtype("int64")]
test_the_dtype_of_row_splits = same(
    "arrays(*values).ragged_batch(2, row_splits_dtype=splits)", values=UNEVEN, splits=SPLITS
)
CONTENT = {dtype: [[1], [], [0, 1]] for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64)}
CONTENT |= {bytes: [[b"a\0"], [b"", b"b"], []]}
test_dtypes = same("arrays(CONTENT[dtype], (None,), dtype).ragged_batch(2)", dtype=list(CONTENT))
RAGGED = programs(
    rank_1="from_tensor_slices(from_splits([[0, 2, 3, 3]], np.arange(3)))",
    rank_2="from_tensor_slices(from_splits([[0, 2, 3, 3], [0, 1, 3, 3]], np.arange(3)))",
    rank_1_int32="from_tensor_slices(from_splits([[0, 2, 3, 3]], np.arange(3), np.int32))",
    rank_2_int32="from_tensor_slices(from_splits([[0, 2, 3, 3], [0, 1, 3, 3]], np.arange(3), np.int32))",
)
test_ragged_components_keep_their_row_splits = same(
    "rows.ragged_batch(2, row_splits_dtype=splits)", rows=RAGGED, splits=[np.int32, np.int64]
)
test_batches_of_batches = same("rows.ragged_batch(2).ragged_batch(2)", rows=RAGGED)
test_rows_of_batches = same("rows.ragged_batch(2).unbatch()", rows=RAGGED, cardinality=False)
test_chains = same(
    {
        "sparse, as by batch": "from_tensor_slices(sparse([[0, 0], [1, 1]], [1.5, 2], [3, 2])).ragged_batch(2)",
        "nested": "zip({'b': VECTORS, 'a': (range(5), VECTORS)}).ragged_batch(2)",
        "beside None": "from_tensors((int64(1), None)).repeat(3).ragged_batch(2)",
        "twice": "VECTORS.ragged_batch(2).ragged_batch(2)",
        "unbatch": "VECTORS.ragged_batch(2).unbatch()",
        "unbatch matrices": "MATRICES.unbatch()",
        "unbatch twice": "MATRICES.unbatch().unbatch()",
    },
    limit=12,
)
BAD = [(0,), (1,), (2,), (1, 2), (4,)]
test_failures = same("counting(5, bad=bad).ragged_batch(2)", bad=BAD, spec="any", fails=True)
REFUSED = [*((size,) for size in (0, -1, 2.0, "2", None, [2])), (2, 1), (2, None), (2, "yes")]
REFUSED += [(2, False, splits) for splits in (np.int16, np.float32, np.uint32)]
test_what_is_refused = refused({(TypeError, ValueError): REFUSED}, "VECTORS.ragged_batch(*case)")

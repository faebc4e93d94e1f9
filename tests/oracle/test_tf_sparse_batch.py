"""Tests of sparse_batch against tf.data's."""

import numpy as np
from compare import refused, same

CASES = {  # the elements, their shape, and the shapes of their batches
    "vectors": ([np.arange(i) for i in range(5)], (None,), [[None], [4], [9], 4, (None,)]),
    "all empty": ([np.zeros(0)] * 3, (None,), [[None], [2], [0]]),
    "matrices": ([np.arange(i * (3 - i)).reshape(i, 3 - i) for i in range(4)], (None, None), [[None, None], [3, None]]),
    "cubes": ([np.arange(4 * i).reshape(i, 2, 2) for i in range(3)], (None, 2, None), [[None] * 3, [2, 3, 2]]),
    "scalars": ([0, 1, 2], (), [[], ()]),
    "fixed": ([[1, 0], [0, 2], [0, 0]], (2,), [[2], [None], [5]]),
    "unknown rank": ([np.ones((i, 2)) for i in range(3)], None, [[None, 2], [4, 4]]),
    "none": ([], (None,), [[None], [3]]),
}
TABLE = [(name, shape) for name, (_, _, shapes) in CASES.items() for shape in shapes]
test_shapes = same("arrays(*CASES[case[0]][:2]).sparse_batch(size, case[1])", case=TABLE, size=[1, 2, 9])
CONTENT = {dtype: [[1], [], [0, 1]] for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64)}
CONTENT |= {bytes: [[b"a\0"], [b"", b"b"], []]}  # zeros and empty text are cells like others
test_dtypes = same("arrays(CONTENT[dtype], (None,), dtype).sparse_batch(2, [None])", dtype=list(CONTENT))
SIZES = [[1, 9, 2, 1, 3], [9, 1, 2], [1, 2, 9], [9, 9, 9], [1, 1, 9, 9, 1], [4]]
test_an_element_that_is_too_large_ends_its_batch = same(
    "arrays(elements, (None,)).sparse_batch(size, [3])",
    elements=[list(map(np.ones, sizes)) for sizes in SIZES],
    size=[1, 2, 3],
    fails=True,
)
BAD = [(0,), (1,), (2,), (1, 2), (4,)]
test_failures = same("counting(5, bad=bad).sparse_batch(2, [None])", bad=BAD, spec="any")
RANKS = list(map(np.ones, [(1,), (1, 1), (2,), (1,), ()]))
test_chains_and_counts = same(
    {
        "text": "arrays([b'a\\0', b''], (), bytes).sparse_batch(2, [])",
        "one in a zip": "zip(counting(5)).sparse_batch(2, [9])",
        "an element of another rank": "arrays(RANKS, None).sparse_batch(2, [2])",
        "unbatch": "counting(5).sparse_batch(2, [None]).unbatch()",
        "batch": "counting(5).sparse_batch(2, [5]).batch(2)",
        "batch of unknown size": "counting(5).sparse_batch(2, [None]).batch(2)",
        "unbatch known": "range(6).batch(2, True).sparse_batch(2, [2]).unbatch()",
    },
    limit=8,
)
REFUSED = {
    "two components": "zip(range(3), range(3)).sparse_batch(2, [])",
    "a dict": "zip({'a': range(3)}).sparse_batch(2, [])",
    "one in a tuple": "zip((range(3),)).sparse_batch(2, [])",
    "beside None": "from_tensors((int64(1), None)).sparse_batch(2, [])",
    "ragged": "from_tensors(ragged([[1]])).sparse_batch(2, [None, None])",
    "sparse": "from_tensors(sparse([[0]], [1], [2])).sparse_batch(2, [None])",
    "rank too low": "range(3).sparse_batch(2, [None])",
    "rank too high": "range(3).batch(2, True).sparse_batch(2, [])",
    "too small": "range(6).batch(3, True).sparse_batch(2, [2])",
}
test_what_is_refused = refused({(TypeError, ValueError): REFUSED})
WRONG = [*((2, shape) for shape in (None, [-1], [[2]], [2.5])), *((size, [None]) for size in (0, -1, 2.0))]
test_what_is_no_size_or_shape = refused({(TypeError, ValueError): WRONG}, "counting(3).sparse_batch(*case)")

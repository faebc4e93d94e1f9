"""Tests of sparse_batch against tf.data's."""

import numpy as np
from compare import refused, same

from support.libraries import arrays, counting

CASES = {
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


test_shapes = same(
    lambda lib, case, size: arrays(lib, *CASES[case[0]][:2]).sparse_batch(size, case[1]), TABLE, [1, 2, 9]
)
CONTENT = {dtype: [[1], [], [0, 1]] for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64)}
CONTENT |= {bytes: [[b"a\0"], [b"", b"b"], []]}  # zeros and empty text are cells like others
test_dtypes = same(
    lambda lib, dtype: arrays(lib, CONTENT[dtype], (None,), dtype).sparse_batch(2, [None]), list(CONTENT)
)
test_an_element_that_is_too_large_ends_its_batch = same(
    lambda lib, sizes, size: arrays(lib, map(np.ones, sizes), (None,)).sparse_batch(size, [3]),
    [[1, 9, 2, 1, 3], [9, 1, 2], [1, 2, 9], [9, 9, 9], [1, 1, 9, 9, 1], [4]],
    [1, 2, 3],
    fails=True,
)
test_failures = same(
    lambda lib, bad: counting(lib, 5, bad=bad).sparse_batch(2, [None]), [(0,), (1,), (2,), (1, 2), (4,)], spec="any"
)
RANKS = [(1,), (1, 1), (2,), (1,), ()]
CHAINS = {
    "text": lambda lib: arrays(lib, [b"a\0", b""], (), bytes).sparse_batch(2, []),
    "one in a zip": lambda lib: lib.zip(arrays(lib, *CASES["vectors"][:2])).sparse_batch(2, [9]),
    "an element of another rank": lambda lib: arrays(lib, map(np.ones, RANKS), None).sparse_batch(2, [2]),
    "unbatch": lambda lib: counting(lib, 5).sparse_batch(2, [None]).unbatch(),
    "batch": lambda lib: counting(lib, 5).sparse_batch(2, [5]).batch(2),
    "batch of unknown size": lambda lib: counting(lib, 5).sparse_batch(2, [None]).batch(2),
    "unbatch known": lambda lib: lib.range(6).batch(2, True).sparse_batch(2, [2]).unbatch(),
}
test_chains_and_counts = same(CHAINS, limit=8)
REFUSED = {
    "two components": lambda lib: lib.zip(lib.range(3), lib.range(3)).sparse_batch(2, []),
    "a dict": lambda lib: lib.zip({"a": lib.range(3)}).sparse_batch(2, []),
    "one in a tuple": lambda lib: lib.zip((lib.range(3),)).sparse_batch(2, []),
    "beside None": lambda lib: lib.from_tensors((np.int64(1), None)).sparse_batch(2, []),
    "ragged": lambda lib: lib.from_tensors(lib.from_splits([[0, 1]], [1])).sparse_batch(2, [None, None]),
    "sparse": lambda lib: lib.from_tensors(lib.sparse([[0]], [1], [2])).sparse_batch(2, [None]),
    "rank too low": lambda lib: lib.range(3).sparse_batch(2, [None]),
    "rank too high": lambda lib: lib.range(3).batch(2, True).sparse_batch(2, []),
    "too small": lambda lib: lib.range(6).batch(3, True).sparse_batch(2, [2]),
}
test_what_is_refused = refused({(TypeError, ValueError): REFUSED})
test_what_is_no_shape = refused(
    {(TypeError, ValueError): [None, [-1], [[2]], [2.5]]},
    lambda lib, shape: arrays(lib, [[1]], (None,)).sparse_batch(2, shape),
)
test_what_is_no_size = refused(
    {(TypeError, ValueError): [0, -1, 2.0]}, lambda lib, size: lib.range(3).sparse_batch(size, [])
)

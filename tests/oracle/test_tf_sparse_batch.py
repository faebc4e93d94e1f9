"""Tests of sparse_batch against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, has_failed

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


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize(("values", "row_shape"), TABLE)
def test_shapes(values, row_shape, size):
    content, shape, _ = CASES[values]
    assert_same(lambda lib: arrays(lib, content, shape).sparse_batch(size, row_shape))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64])
def test_dtypes(dtype):
    assert_same(lambda lib: arrays(lib, [[1], [], [0, 1]], (None,), dtype).sparse_batch(2, [None]))


def test_text_and_zeros_are_cells_like_others():
    assert_same(lambda lib: arrays(lib, [[b"a\0"], [b"", b"b"], []], (None,), bytes).sparse_batch(2, [None]))
    assert_same(lambda lib: arrays(lib, [b"a\0", b""], (), bytes).sparse_batch(2, []))


@pytest.mark.parametrize("sizes", [[1, 9, 2, 1, 3], [9, 1, 2], [1, 2, 9], [9, 9, 9], [1, 1, 9, 9, 1], [4]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_element_that_is_too_large_ends_its_batch(sizes, size):
    found = assert_same(lambda lib: arrays(lib, [np.ones(n) for n in sizes], (None,)).sparse_batch(size, [3]))
    assert has_failed(found)


def test_an_element_of_another_rank_ends_its_batch():
    values = [np.ones(1), np.ones((1, 1)), np.ones(2), np.ones(1), np.ones(())]
    assert_same(lambda lib: arrays(lib, values, None).sparse_batch(2, [2]))


@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (1, 2), (4,)])
def test_failures(bad):
    assert_same(lambda lib: counting(lib, 5, bad=bad).sparse_batch(2, [None]), spec="any")


def test_structures():
    assert_same(lambda lib: lib.Dataset.zip(arrays(lib, *CASES["vectors"][:2])).sparse_batch(2, [9]))


def test_chains_and_counts():
    assert_same(lambda lib: counting(lib, 5).sparse_batch(2, [5]))
    assert_same(lambda lib: counting(lib, 5).repeat().sparse_batch(2, [5]), limit=4)
    assert_same(lambda lib: counting(lib, 5).sparse_batch(2, [None]).unbatch())
    assert_same(lambda lib: counting(lib, 5).sparse_batch(2, [5]).batch(2))
    assert_same(lambda lib: counting(lib, 5).sparse_batch(2, [None]).batch(2))
    assert_same(lambda lib: lib.Dataset.range(6).batch(2, True).sparse_batch(2, [2]).unbatch())


REFUSED = {
    "two components": lambda lib: lib.Dataset.zip(lib.Dataset.range(3), lib.Dataset.range(3)).sparse_batch(2, []),
    "a dict": lambda lib: lib.Dataset.zip({"a": lib.Dataset.range(3)}).sparse_batch(2, []),
    "one in a tuple": lambda lib: lib.Dataset.zip((lib.Dataset.range(3),)).sparse_batch(2, []),
    "beside None": lambda lib: lib.Dataset.from_tensors((np.int64(1), None)).sparse_batch(2, []),
    "ragged": lambda lib: lib.Dataset.from_tensors(lib.from_splits([[0, 1]], [1])).sparse_batch(2, [None, None]),
    "sparse": lambda lib: lib.Dataset.from_tensors(lib.sparse([[0]], [1], [2])).sparse_batch(2, [None]),
    "rank too low": lambda lib: lib.Dataset.range(3).sparse_batch(2, [None]),
    "rank too high": lambda lib: lib.Dataset.range(3).batch(2, True).sparse_batch(2, []),
    "too small": lambda lib: lib.Dataset.range(6).batch(3, True).sparse_batch(2, [2]),
    "no shape": lambda lib: arrays(lib, [[1]], (None,)).sparse_batch(2, None),
    "negative": lambda lib: arrays(lib, [[1]], (None,)).sparse_batch(2, [-1]),
    "nested shape": lambda lib: arrays(lib, [[1]], (None,)).sparse_batch(2, [[2]]),
    "fractions": lambda lib: arrays(lib, [[1]], (None,)).sparse_batch(2, [2.5]),
    "size 0": lambda lib: lib.Dataset.range(3).sparse_batch(0, []),
    "size -1": lambda lib: lib.Dataset.range(3).sparse_batch(-1, []),
    "size 2.0": lambda lib: lib.Dataset.range(3).sparse_batch(2.0, []),
}


@pytest.mark.parametrize("build", REFUSED)
def test_what_both_refuse(build):
    assert_both_refuse(REFUSED[build], (TypeError, ValueError))

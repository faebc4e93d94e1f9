"""Tests of encoding values as bytes and back, for sending them between processes."""

import collections
import functools
import pickle

import numpy as np
import pytest

from dataset import RaggedTensor, SparseTensor, WorkerDiedError
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes.transport.encoding import BESIDE_MIN, decode, encode
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.testing import assert_elements_equal
from support.pipelines import Pair

LARGE = BESIDE_MIN // 8  # of float64


def there_and_back(value):
    encoded = encode(value)
    copies = [memoryview(bytearray(buffer)) for buffer in encoded.buffers]
    return decode(encoded.pickled, copies), encoded


ROWS = {
    "numbers": {"a": np.int64(3), "b": np.float32(1), "c": None},
    "array": np.arange(LARGE, dtype=np.float64),
    "tuple": (np.arange(3), b"text", "text"),
    "named": Pair(1, np.zeros((2, LARGE))),
    "ragged": RaggedTensor([1.0, 2.0, 3.0], [0, 2, 3]),
    "sparse": SparseTensor([[0, 1]], [5], [2, 2]),
    "object": {"any": {1, 2}},
    "dates": np.array(["2020-01-01"] * LARGE, "M8[D]"),
    "texts": np.array([b"a" * BESIDE_MIN, b"", b"b\0"], object),
    "empty": np.zeros((0, 3)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_chunks_come_back_as_they_were(row, form):
    chunk = Chunk(structure_of(row), 2, rows=[row, row])
    if form == "columns":
        chunk = Chunk(chunk.structure, 2, chunk.columns())
    got, encoded = there_and_back(chunk)
    assert (got.structure, got.length) == (chunk.structure, 2)
    assert not encoded.by_value
    assert_elements_equal(got.rows(), chunk.rows())


@pytest.mark.parametrize("turn", [lambda a: a, lambda a: a.T, lambda a: a[:, ::2], lambda a: np.moveaxis(a, -1, 0)])
def test_large_arrays_are_never_among_the_pickled_bytes(turn):
    array = turn(np.random.default_rng(0).random((8, 1000, 30)))
    got, encoded = there_and_back((array, 1))
    np.testing.assert_array_equal(got[0], array)
    assert len(encoded.pickled) < 1000
    assert got[0].flags.writeable


def test_an_array_that_occurs_twice_is_one_array_and_stays_read_only():
    array = np.zeros(LARGE)
    array.flags.writeable = False
    (one, other), encoded = there_and_back((array, array))
    assert one is other
    assert len(encoded.buffers) == 1
    assert not one.flags.writeable


def test_a_default_dict_with_a_function_of_its_own_is_sent_by_value():
    row = collections.defaultdict(lambda: 7, a=1)
    got, encoded = there_and_back(Chunk(structure_of(row), 1, rows=[row]))
    assert encoded.by_value
    assert got.rows()[0]["missing"] == 7


def test_a_cached_function_that_has_no_name_elsewhere_is_sent_by_value():
    sent = decode(encode(functools.lru_cache(maxsize=7)(lambda x: 2 * x), by_value=True).pickled, [])
    assert (sent(4), sent.cache_parameters()["maxsize"]) == (8, 7)


def test_a_failure_keeps_the_exception_and_its_notes():
    error = WorkerDiedError("died", exit_code=-9)
    error.add_note("here")
    got = pickle.loads(pickle.dumps(Failure.of(error))).exception()
    assert (type(got), str(got), got.exit_code) == (WorkerDiedError, "died", -9)
    assert got.__notes__[0] == "here"

"""Tests of saved chunks: plain data, complete, and restored exactly."""

import collections
import enum

import numpy as np
import pytest

from dataset import DataLossError, RaggedTensor, SparseTensor, StateError, errors
from dataset.plan.spec import spec_of
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.state.saved_chunks import (
    load_chunk,
    load_error,
    save_chunk,
    save_error,
)
from dataset.testing import assert_elements_equal
from dataset.testing.check_operator import assert_plain_data
from support.pipelines import Point


class Level(enum.IntEnum):
    LOW = 1


ELEMENTS = [
    [1, 2, 3],
    [1.5, float("nan")],
    [b"a\0", b""],
    [np.float16(1), np.float16(2)],
    [np.datetime64(1, "s"), np.datetime64(2, "s")],
    [np.zeros(2), np.ones(3)],
    [np.array([b"a", b"b\0"], object)] * 2,
    [(1, {"b": b"x", "a": None}), (2, {"b": b"y", "a": None})],
    [Point(1, b"x")],
    [collections.OrderedDict(b=1, a=2)],
    [{1: np.zeros((2, 2), np.uint8)}],
    [RaggedTensor([1, 2], [0, 1, 2]), RaggedTensor.from_nested_row_splits([1.5], [[0, 1]])],
    [RaggedTensor.from_nested_row_splits([b"a"], [[0, 1], [0, 1]])],
    [RaggedTensor.from_nested_row_splits([1, 2], [np.array([0, 1, 1], "i4"), np.array([0, 2], "i4")])],
    [SparseTensor([[0, 1]], [5], [2, 2])],
]


@pytest.mark.parametrize("rows", ELEMENTS)
def test_elements_come_back_as_they_were(rows):
    chunk = chunk_of_rows([(row,) for row in rows])
    saved = save_chunk(chunk)
    assert_plain_data(saved)
    spec = (spec_of(rows[0]),)
    assert_elements_equal(load_chunk(saved, lambda: spec).rows(), chunk.rows())
    assert load_chunk(save_chunk(None), lambda: None) is None


def test_a_saved_chunk_shares_no_memory_with_the_elements():
    saved = save_chunk(chunk_of_rows([np.zeros(2), np.zeros(3)]))
    for row in load_chunk(saved, lambda: None).rows():
        np.add(row, 1, out=row)
    assert_elements_equal(load_chunk(saved, lambda: None).rows(), [np.zeros(2), np.zeros(3)])


def test_an_element_that_is_no_plain_data_is_named():
    with pytest.raises(StateError, match="an element holds a set, which cannot be saved as plain data"):
        save_chunk(chunk_of_rows([{1, 2}]))


SAVED = save_chunk(chunk_of_rows([1, 2, 3]))
DAMAGES = [
    ("length", [5, "x", -3]),
    ("structure", [{"tuple": ["*", "*"]}, "??"]),
    ("columns", [[], [np.zeros(2)], [np.array(3)], [None], 7]),
    ("columns", [[{"shape": None, "values": [5, 6, 7]}], [{"shape": [9], "values": [b"a"] * 3}]]),
]


@pytest.mark.parametrize(
    "data",
    [
        *[{**SAVED, key: value} for key, values in DAMAGES for value in values],
        *[{k: v for k, v in SAVED.items() if k != key} for key in SAVED],
        {**SAVED, "length": 0, "columns": [np.zeros(0, np.int64)]},
        *[5, "x", [], np.zeros(3), b""],
    ],
    ids=repr,
)
def test_damaged_elements_are_a_state_error(data):
    with pytest.raises(StateError):
        load_chunk(data, lambda: None)


class OwnError(Exception):
    pass


EXCEPTIONS = [
    ValueError("x", 1),
    KeyError("k"),
    RuntimeError(),
    FileNotFoundError(2, "No such file or directory", "a.txt"),
    OSError("plain"),
    UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "invalid start byte"),
    UnicodeEncodeError("ascii", "ä", 0, 1, "ordinal not in range"),
    ZeroDivisionError("division by zero"),
    DataLossError("checksum", path="p", offset=1, record=2),
    errors.ParseError("no message"),
    errors.SpecError("no spec"),
    ValueError(np.zeros(2)),
    ValueError(np.float64(2)),
    ValueError(Level.LOW),
    ExceptionGroup("several", [ValueError(1), KeyError("k")]),
    AttributeError("no", name="x", obj=3),
    ImportError("no module", name="x"),
    SyntaxError("bad", ("f", 1, 2, "text")),
    StopIteration(3),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=repr)
def test_an_exception_comes_back_with_its_type_text_and_notes(error):
    error.__notes__ = ["in map(f) from a.py:1, element 3"]
    saved = save_error(error)
    assert_plain_data(saved)
    loaded = load_error(saved)
    assert type(loaded) is type(error)
    assert str(loaded) == str(error)
    assert loaded.__notes__[-1] == "in map(f) from a.py:1, element 3"


def test_an_exception_of_a_users_class_comes_back_as_the_librarys_own_and_says_what_it_was():
    loaded = load_error(save_error(OwnError("went wrong", 3)))
    assert type(loaded) is errors.DatasetError
    assert str(loaded) == "OwnError: went wrong, 3"
    loss = load_error(save_error(DataLossError("checksum", path="p", offset=1, record=2)))
    assert (loss.path, loss.offset, loss.record) == ("p", 1, 2)


@pytest.mark.parametrize("name", ["exit", "open", "print", "SystemExit", "KeyboardInterrupt", "np", "__import__"])
def test_a_state_names_nothing_that_is_run(name):
    data = {"error": name, "args": ["x"], "fields": {}, "notes": []}
    assert type(load_error(data)) is errors.DatasetError

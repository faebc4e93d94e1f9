"""Tests of map against tf.data's."""

from collections import OrderedDict
from functools import partial

import numpy as np
import pytest
from cases import ELEMENTS, INT64, NUMBERS, SOURCES, Point, failing, int64
from compare import assert_both_refuse, assert_same, attempt, oracle

from dataset import Dataset, SpecError, TensorSpec
from support.libraries import fail_at


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    spec = "any" if "empty" in source else "equal"  # which is found by running the function on an element
    assert_same(lambda lib: SOURCES[source](lib).map(lambda x: x * 2 + 1), limit=12, spec=spec)
    twice = lambda lib: SOURCES[source](lib).map(lambda x: (x, x > 2)).map(lambda x, y: {"y": y, "x": x})
    assert_same(twice, limit=12, spec=spec)


@pytest.mark.parametrize("element", ELEMENTS)
def test_arguments(element):
    """Return the arguments of a function: the items of a tuple, or the element."""
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(2).map(lambda *args: args))


@pytest.mark.parametrize("element", ["tuple", "tuple of one", "nested tuples", "None in a tuple", "list in a tuple"])
def test_items_by_number(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).map(lambda first, *rest: first))


RESULTS = {
    "tuple": lambda lib, x: (x, x + 1),
    "tuple of one": lambda lib, x: (x,),
    "list": lambda lib, x: [x, x + 1],
    "list of one": lambda lib, x: [x],
    "list of lists": lambda lib, x: [[x, x], [x, x]],
    "list in a tuple": lambda lib, x: (x, [x, x]),
    "list in a dict": lambda lib, x: {"a": [x, x]},
    "tuple in a list": lambda lib, x: [(x, x), x],
    "nested tuples": lambda lib, x: ((x, (x,)), x),
    "dict out of order": lambda lib, x: {"b": x, "a": x + 1},
    "ordered dict": lambda lib, x: OrderedDict([("b", x), ("a", x + 1)]),
    "named tuple": lambda lib, x: Point(x, x + 1),
    "named tuple of lists": lambda lib, x: Point([x, x], {"z": x, "a": x}),
    "None in a tuple": lambda lib, x: (x, None),
    "None in a dict": lambda lib, x: {"b": None, "a": x},
    "empty tuple inside": lambda lib, x: (x, ()),
    "a constant": lambda lib, x: np.int64(3),
    "a bool": lambda lib, x: x > 2,
    "a Python bool": lambda lib, x: True,
    "text": lambda lib, x: "käse",
    "bytes": lambda lib, x: b"a\x00",
    "bytes in a tuple": lambda lib, x: (x, b"\xff\x00"),
    "an array": lambda lib, x: np.eye(2, dtype=np.float32),
    "an array of bytes": lambda lib, x: np.array([b"a\x00", b""], object),
    "stacked": lambda lib, x: lib.stack([x, x + 1]),
    "growing": lambda lib, x: lib.fill([x], x),
    "ragged": lambda lib, x: lib.ragged([[1, 2], [], [3]]),
    "ragged in a dict": lambda lib, x: {"r": lib.ragged([[1], []]), "x": x},
    "sparse": lambda lib, x: lib.sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2]),
    "a dataset": lambda lib, x: lib.Dataset.range(x),
    "a dataset in a dict": lambda lib, x: {"d": lib.Dataset.range(2).map(lambda y: (y, y)), "x": x},
}


@pytest.mark.parametrize("result", RESULTS)
def test_results(result):
    found = assert_same(lambda lib: lib.Dataset.range(1, 4).map(lambda x: RESULTS[result](lib, x)), spec="compatible")
    assert len(found) == 3


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype):
    assert_same(lambda lib: lib.Dataset.range(3).map(lambda x: lib.cast(x, dtype)))
    assert_same(lambda lib: lib.Dataset.range(3).map(lambda x: np.ones((2, 0), dtype)))
    assert_same(lambda lib: lib.Dataset.from_tensors(np.ones(2, dtype)).map(lambda x: (x[0], x)))


PLACES = [(0,), (3,), (6,), (0, 6), (2, 3, 4), (0, 1, 2), (4, 5, 6)]


@pytest.mark.parametrize("bad", PLACES, ids=str)
def test_failures(bad):
    assert_same(lambda lib: failing(lib, *bad))
    assert_same(lambda lib: failing(lib, *bad).map(lambda x: x * 2).take(3))
    assert_same(lambda lib: failing(lib, *bad).repeat(2))


@pytest.mark.parametrize("bad", PLACES, ids=str)
@pytest.mark.parametrize("calls", [1, 3])
def test_failures_with_parallel_calls(bad, calls):
    assert_same(lambda lib: lib.Dataset.range(7).map(lib.call(fail_at(*bad), INT64), num_parallel_calls=calls))


def test_two_functions_that_fail():
    assert_same(lambda lib: failing(lib, 1, 4).map(lib.call(fail_at(0, 4, 6), INT64)))


def test_failures_in_a_function_of_several_arguments():
    def build(lib):
        pairs = lib.Dataset.range(5).map(lambda x: (x, x * 2))
        check = fail_at(2)
        return pairs.map(lib.call(lambda x, y: (check(x), y), (INT64, INT64)))

    assert_same(build)


PARALLEL = [{"num_parallel_calls": count} for count in (None, 1, 2, 100, -1)]
PARALLEL += [{"num_parallel_calls": 3, "deterministic": True}, {"deterministic": True}]
PARALLEL += [{"synchronous": flag} for flag in (None, True, False)]
PARALLEL += [{"synchronous": False, "num_parallel_calls": 2}, {"synchronous": None, "num_parallel_calls": -1}]
PARALLEL += [{"use_unbounded_threadpool": flag} for flag in (True, False)]
PARALLEL += [{"use_unbounded_threadpool": flag, "num_parallel_calls": 3} for flag in (True, False, None)]
PARALLEL += [{"use_unbounded_threadpool": True, "synchronous": True}]


@pytest.mark.filterwarnings("ignore:The `deterministic` argument has no effect:UserWarning")
@pytest.mark.parametrize("arguments", PARALLEL, ids=str)
@pytest.mark.parametrize("source", ["known", "one", "unknown", "endless", "fails inside"])
def test_how_calls_are_made(source, arguments):
    assert_same(lambda lib: SOURCES[source](lib).map(lambda x: x + 1, **arguments), limit=12)


@pytest.mark.parametrize(
    "arguments",
    [
        {"synchronous": True, "num_parallel_calls": 1},
        {"synchronous": True, "num_parallel_calls": -1},
        {"num_parallel_calls": 0},
        {"num_parallel_calls": -2},
    ],
    ids=str,
)
def test_wrong_ways_to_make_calls(arguments):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).map(lambda x: x, **arguments), ValueError)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_parallel_calls": 2.0},
        {"num_parallel_calls": "2"},
        {"synchronous": 1},
        {"synchronous": "yes"},
        {"use_unbounded_threadpool": 1, "num_parallel_calls": 2},
        {"use_unbounded_threadpool": "yes", "num_parallel_calls": 2},
    ],
    ids=str,
)
def test_what_is_no_count_and_no_bool(arguments):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).map(lambda x: x, **arguments), TypeError)


@pytest.mark.parametrize("function", [None, 3, "abs", [len]], ids=repr)
def test_what_is_no_function(function):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).map(function), TypeError)


@pytest.mark.parametrize("result", [None, (), {}, (None, None), []], ids=repr)
def test_a_result_without_components(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(attempt(lambda lib: lib.Dataset.range(3).map(lambda x: result), oracle()), Exception)
    with pytest.raises(SpecError, match="must return an element"):
        list(Dataset.range(3).map(lambda x: result))


def test_functions_of_other_kinds():
    class Adds:
        def __init__(self, number):
            self.number = number

        def __call__(self, x):
            return x + self.number

        def method(self, x):
            return x * self.number

    assert_same(lambda lib: lib.Dataset.range(3).map(Adds(2)))
    assert_same(lambda lib: lib.Dataset.range(3).map(Adds(2).method))
    assert_same(lambda lib: lib.Dataset.range(3).map(partial(lambda y, x: x + y, np.int64(5))))
    assert_same(lambda lib: lib.Dataset.range(3).map(lambda x, y=7: x + y))
    assert_same(lambda lib: lib.Dataset.zip(lib.Dataset.range(3), lib.Dataset.range(3)).map(lambda *args: args[1]))


@pytest.mark.parametrize(
    ("function", "returns"),
    [
        (lambda x: np.zeros((int(x), 2), np.float32), TensorSpec((None, 2), np.float32)),
        (lambda x: b"\x00" * int(x), TensorSpec((), bytes)),
        (lambda x: (x, [float(x)]), (INT64, TensorSpec((None,), np.float64))),
        (lambda x: {"b": x, "a": np.ones(int(x) % 2)}, {"b": INT64, "a": TensorSpec(None, np.float64)}),
    ],
)
def test_unknown_shapes(function, returns):
    assert_same(lambda lib: lib.Dataset.range(4).map(lib.call(function, returns)), spec="compatible")

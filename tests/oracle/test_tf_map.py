"""Tests of map against tf.data's."""

from collections import OrderedDict
from functools import partial

import numpy as np
import pytest
from cases import ELEMENTS, INT64, NUMBERS, SOURCES, Point, int64
from compare import attempt, refused, same, theirs

from dataset import Dataset, SpecError, TensorSpec
from support.libraries import fail_at

test_sources = same(
    {
        "once": lambda lib, source: source(lib).map(lambda x: x * 2 + 1),
        "twice": lambda lib, source: source(lib).map(lambda x: (x, x > 2)).map(lambda x, y: {"y": y, "x": x}),
    },
    SOURCES,
    limit=12,
    spec=lambda source, _: "any" if "empty" in source else "equal",  # found by running the function on an element
)
# The arguments of a function are the items of a tuple, or the element.
test_arguments = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(2).map(lambda *args: args), ELEMENTS)
test_items_by_number = same(
    lambda lib, element: lib.from_tensors(ELEMENTS[element](lib)).map(lambda first, *rest: first),
    ["tuple", "tuple of one", "nested tuples", "None in a tuple", "list in a tuple"],
)


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
    "a dataset": lambda lib, x: lib.range(x),
    "a dataset in a dict": lambda lib, x: {"d": lib.range(2).map(lambda y: (y, y)), "x": x},
}


test_results = same(
    lambda lib, result: lib.range(1, 4).map(lambda x: result(lib, x)), RESULTS, spec="compatible", fails=False
)
test_dtypes = same(
    {
        "cast": lambda lib, dtype: lib.range(3).map(lambda x: lib.cast(x, dtype)),
        "constant": lambda lib, dtype: lib.range(3).map(lambda x: np.ones((2, 0), dtype)),
        "argument": lambda lib, dtype: lib.from_tensors(np.ones(2, dtype)).map(lambda x: (x[0], x)),
    },
    NUMBERS,
)
test_failures_in_a_function_of_several_arguments = same(
    lambda lib: lib.range(5).map(lambda x: (x, x * 2)).map(lib.call(lambda x, y: (fail_at(2)(x), y), (INT64, INT64)))
)
PARALLEL = [{"num_parallel_calls": count} for count in (None, 1, 2, 100, -1)]
PARALLEL += [{"num_parallel_calls": 3, "deterministic": True}, {"deterministic": True}]
PARALLEL += [{"synchronous": flag} for flag in (None, True, False)]
PARALLEL += [{"synchronous": False, "num_parallel_calls": 2}, {"synchronous": None, "num_parallel_calls": -1}]
PARALLEL += [{"use_unbounded_threadpool": flag} for flag in (True, False)]
PARALLEL += [{"use_unbounded_threadpool": flag, "num_parallel_calls": 3} for flag in (True, False, None)]
PARALLEL += [{"use_unbounded_threadpool": True, "synchronous": True}]


test_how_calls_are_made = pytest.mark.filterwarnings("ignore:The `deterministic` argument has no effect:UserWarning")(
    same(
        lambda lib, source, arguments: SOURCES[source](lib).map(lambda x: x + 1, **arguments),
        ["known", "one", "unknown", "endless", "fails inside"],
        PARALLEL,
        limit=12,
    )
)
WRONG_VALUES = [{"synchronous": True, "num_parallel_calls": 1}, {"synchronous": True, "num_parallel_calls": -1}]
WRONG_VALUES += [{"num_parallel_calls": 0}, {"num_parallel_calls": -2}]
WRONG_TYPES = [{"num_parallel_calls": 2.0}, {"num_parallel_calls": "2"}, {"synchronous": 1}, {"synchronous": "yes"}]
WRONG_TYPES += [{"use_unbounded_threadpool": flag, "num_parallel_calls": 2} for flag in (1, "yes")]
WRONG_TYPES += [{"map_func": function} for function in (None, 3, "abs", [len])]
test_what_is_refused = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES},
    lambda lib, arguments: lib.range(3).map(**{"map_func": lambda x: x, **arguments}),
)


@pytest.mark.parametrize("result", [None, (), {}, (None, None), []], ids=repr)
def test_a_result_without_components(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(theirs(lambda lib: attempt(lambda lib: lib.range(3).map(lambda x: result), lib)), Exception)
    with pytest.raises(SpecError, match="must return an element"):
        list(Dataset.range(3).map(lambda x: result))


class Adds:
    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return x + self.number

    def method(self, x):
        return x * self.number


test_functions_of_other_kinds = same(
    lambda lib, function: lib.range(3).map(function),
    [Adds(2), Adds(2).method, partial(lambda y, x: x + y, np.int64(5)), lambda x, y=7: x + y],
)
test_any_number_of_arguments = same(lambda lib: lib.zip(lib.range(3), lib.range(3)).map(lambda *args: args[1]))
UNKNOWN = [
    (lambda x: np.zeros((int(x), 2), np.float32), TensorSpec((None, 2), np.float32)),
    (lambda x: b"\x00" * int(x), TensorSpec((), bytes)),
    (lambda x: (x, [float(x)]), (INT64, TensorSpec((None,), np.float64))),
    (lambda x: {"b": x, "a": np.ones(int(x) % 2)}, {"b": INT64, "a": TensorSpec(None, np.float64)}),
]
test_unknown_shapes = same(lambda lib, case: lib.range(4).map(lib.call(*case)), UNKNOWN, spec="compatible")

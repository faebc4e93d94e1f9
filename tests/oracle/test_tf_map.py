"""Tests of map against tf.data's."""

from collections import OrderedDict  # noqa: F401  # programs use it
from functools import partial

import numpy as np
import pytest
from cases import ELEMENTS, NUMBERS, SOURCES, Point  # noqa: F401  # programs use Point
from compare import INT64, Ours, attempt, programs, refused, same, theirs

from dataset import SpecError, TensorSpec
from support.libraries import fail_at

test_sources = same(
    ["source.map(lambda x: x * 2 + 1)", "source.map(lambda x: (x, x > 2)).map(lambda x, y: {'y': y, 'x': x})"],
    source=SOURCES,
    limit=12,
    spec=lambda source, _: "any" if "empty" in source else "equal",  # found by running the function on an element
)
# The arguments of a function are the items of a tuple, or the element.
test_arguments = same("from_tensors(element).repeat(2).map(lambda *args: args)", element=ELEMENTS)
test_items_by_number = same(
    "from_tensors(element).map(lambda first, *rest: first)",
    element={name: ELEMENTS[name] for name in ("tuple", "tuple of one", "None in a tuple", "list in a tuple")},
)
RESULTS = programs(
    tuple="lambda x: (x, x + 1)",
    tuple_of_one="lambda x: (x,)",
    list="lambda x: [x, x + 1]",
    list_of_one="lambda x: [x]",
    list_of_lists="lambda x: [[x, x], [x, x]]",
    list_in_a_tuple="lambda x: (x, [x, x])",
    list_in_a_dict="lambda x: {'a': [x, x]}",
    tuple_in_a_list="lambda x: [(x, x), x]",
    nested_tuples="lambda x: ((x, (x,)), x)",
    dict_out_of_order="lambda x: {'b': x, 'a': x + 1}",
    ordered_dict="lambda x: OrderedDict([('b', x), ('a', x + 1)])",
    named_tuple="lambda x: Point([x, x], {'z': x, 'a': x})",
    none_in_a_tuple="lambda x: (x, None)",
    none_in_a_dict="lambda x: {'b': None, 'a': x}",
    empty_tuple_inside="lambda x: (x, ())",
    a_constant="lambda x: int64(3)",
    a_bool="lambda x: x > 2",
    a_python_bool="lambda x: True",
    text="lambda x: 'käse'",
    bytes_in_a_tuple="lambda x: (x, b'\\xff\\0')",
    an_array="lambda x: np.eye(2, dtype=np.float32)",
    an_array_of_bytes="lambda x: np.array([b'a\\0', b''], object)",
    stacked="lambda x: stack([x, x + 1])",
    growing="lambda x: fill([x], x)",
    ragged="lambda x: ragged([[1, 2], [], [3]])",
    ragged_in_a_dict="lambda x: {'r': ragged([[1], []]), 'x': x}",
    sparse="lambda x: sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2])",
    a_dataset_in_a_dict="lambda x: {'d': range(2).map(lambda y: (y, y)), 'x': x}",
)
test_results = same("range(1, 4).map(result)", result=RESULTS, spec="compatible", fails=False)
test_dtypes = same(
    [
        "range(3).map(lambda x: cast(x, dtype))",
        "range(3).map(lambda x: np.ones((2, 0), dtype))",
        "from_tensors(np.ones(2, dtype)).map(lambda x: (x[0], x))",
    ],
    dtype=NUMBERS,
)


def fails_in_a_pair(x, y):
    return fail_at(2)(x), y


test_failures_in_a_function_of_several_arguments = same(
    "range(5).map(lambda x: (x, x * 2)).map(call(fails_in_a_pair, (INT64, INT64)))"
)
PARALLEL = [{"num_parallel_calls": None}, {"num_parallel_calls": 100}, {"deterministic": True}]
PARALLEL += [{"synchronous": flag, "num_parallel_calls": calls} for flag in (False, None) for calls in (None, 2, -1)]
PARALLEL += [{"use_unbounded_threadpool": flag, "num_parallel_calls": n} for flag in (True, False) for n in (None, 3)]
PARALLEL += [{"synchronous": True}, {"use_unbounded_threadpool": True, "synchronous": True}]
PARALLEL += [{"use_unbounded_threadpool": None, "num_parallel_calls": 3}]
test_how_calls_are_made = pytest.mark.filterwarnings("ignore:The `deterministic` argument has no effect:UserWarning")(
    same(
        "source.map(lambda x: x + 1, **arguments)",
        source={name: SOURCES[name] for name in ("known", "one", "unknown", "endless", "fails_inside")},
        arguments=PARALLEL,
        limit=12,
    )
)
WRONG_VALUES = [{"synchronous": True, "num_parallel_calls": 1}, {"synchronous": True, "num_parallel_calls": -1}]
WRONG_TYPES = [{"synchronous": 1}, {"synchronous": "yes"}]
WRONG_TYPES += [{"use_unbounded_threadpool": flag, "num_parallel_calls": 2} for flag in (1, "yes")]
WRONG_TYPES += [{"map_func": function} for function in (None, 3, "abs", [len])]
test_what_is_refused = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES}, "range(3).map(**{'map_func': lambda x: x, **case})"
)


@pytest.mark.parametrize("result", [None, (), {}, (None, None), []], ids=repr)
def test_a_result_without_components(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    build = lambda lib: lib.range(3).map(lambda x: result)
    assert isinstance(theirs(lambda lib: attempt(build, lib)), Exception)
    with pytest.raises(SpecError, match="must return an element"):
        list(build(Ours()))


class Adds:
    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return x + self.number

    def method(self, x):
        return x * self.number


FUNCTIONS = [Adds(2), Adds(2).method, partial(lambda y, x: x + y, np.int64(5)), lambda x, y=7: x + y]
test_functions_of_other_kinds = same("range(3).map(function)", function=FUNCTIONS)
UNKNOWN = [
    (lambda x: np.zeros((int(x), 2), np.float32), TensorSpec((None, 2), np.float32)),
    (lambda x: b"\x00" * int(x), TensorSpec((), bytes)),
    (lambda x: (x, [float(x)]), (INT64, TensorSpec((None,), np.float64))),
    (lambda x: {"b": x, "a": np.ones(int(x) % 2)}, {"b": INT64, "a": TensorSpec(None, np.float64)}),
]
test_unknown_shapes = same("range(4).map(call(*case))", case=UNKNOWN, spec="compatible")

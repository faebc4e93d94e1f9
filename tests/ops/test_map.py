"""map: each element through a user's function."""

import sys
from collections import namedtuple
from functools import partial

import attrs
import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, TensorSpec, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.pipelines import Record, unoptimized

Point = namedtuple("Point", "x y")  # noqa: PYI024  # both kinds of named tuple must work


@attrs.define
class Sample:
    image: object
    label: object


def test_gives_what_the_function_returns():
    check_operator(lambda: Dataset.range(5).map(lambda x: x * x), [np.int64(i * i) for i in range(5)])
    check_operator(lambda: Dataset.range(0).map(lambda x: x), [])
    check_operator(lambda: Dataset.range(5).map(str), [str(i).encode() for i in range(5)])


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.map(lambda x: x + 1), lambda k: k)
    check_laziness(lambda numbers: numbers.map(str), lambda k: k)


def test_calls_the_function_once_for_each_element_and_only_for_those_asked_for():
    calls = []
    dataset = Dataset.range(10).map(lambda x: calls.append(int(x)) or x)
    iterator = iter(dataset)
    next(iterator)
    next(iterator)
    assert calls == [0, 1]
    calls.clear()
    assert len(list(dataset.batch(4))) == 3
    assert calls == list(range(10))


# What the function gets


def arguments_of(value):
    seen = []
    list(Dataset.from_tensors(value).map(lambda *args: seen.append(args) or 0))
    return seen[0]


def test_passes_the_items_of_a_tuple_as_arguments():
    assert arguments_of((1, 2.5, "a")) == (np.int64(1), np.float64(2.5), b"a")


def test_unwraps_a_tuple_of_one():
    assert arguments_of((5,)) == (5,)
    assert list(Dataset.range(2).map(lambda x: (x,)).map(lambda x: x + 1)) == [1, 2]


@pytest.mark.parametrize("value", [{"a": 1}, Point(1, 2), Record(1, 2), Sample(1, 2), 7, "text"], ids=repr)
def test_passes_anything_else_as_one_argument(value):
    (argument,) = arguments_of(value)
    assert_elements_equal([argument], list(Dataset.from_tensors(value)))


def test_passes_nested_tuples_and_none_as_they_are():
    first, second, third = arguments_of((1, (2, None), None))
    assert (first, second, third) == (1, (2, None), None)


def test_gives_numpy_scalars_bytes_and_arrays_to_the_function():
    scalar, text, array = arguments_of((1, "a", [1.0]))
    assert (type(scalar), type(text), type(array)) == (np.int64, bytes, np.ndarray)


# What the function may return


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (7, np.int64(7)),
        (2**63, np.uint64(2**63)),
        (1.5, np.float64(1.5)),
        (True, np.True_),
        (np.float16(2), np.float16(2)),
        (np.array(3, np.uint8), np.uint8(3)),
        (np.array("a"), b"a"),
        (np.datetime64("2024-01-01", "D"), np.datetime64("2024-01-01", "D")),
        ("ü", "ü".encode()),
        (b"a\x00", b"a\x00"),
        (np.str_("a"), b"a"),
        (bytearray(b"a\x00"), b"a\x00"),
        ([1, 2], (np.int64(1), np.int64(2))),
        ([[1, 2], [3]], (np.array([1, 2]), np.array([3]))),
        (([1, 2], 3), (np.array([1, 2]), np.int64(3))),
        ({"a": [b"x\x00", b"y"]}, {"a": np.array([b"x\x00", b"y"], object)}),
        ((1, None), (np.int64(1), None)),
        ((1,), (np.int64(1),)),
        (Point(1, [2]), Point(np.int64(1), np.array([2]))),
        (Record("a", (1, 2)), Record(b"a", (np.int64(1), np.int64(2)))),
        (Sample(1, {"x": 2}), Sample(np.int64(1), {"x": np.int64(2)})),
        (np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)),
        (np.array(["a", "b"]), np.array([b"a", b"b"], object)),
        (RaggedTensor([1, 2], [0, 0, 2]), RaggedTensor([1, 2], [0, 0, 2])),
        (SparseTensor([[1]], [2.0], [3]), SparseTensor([[1]], [2.0], [3])),
    ],
    ids=repr,
)
def test_turns_every_kind_of_result_into_components(returned, expected):
    check_operator(lambda: Dataset.range(3).map(lambda x: returned if x < 9 else x), [expected] * 3)


def test_passes_python_objects_through():
    assert list(Dataset.range(2).map(lambda x: {int(x)}).map(len)) == [1, 1]
    assert list(Dataset.range(2).map(lambda x: {int(x)}).batch(2).map(list)) == [({0}, {1})]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5, 3], [np.int64(1), np.float64(2.5), np.int64(3)]),
        ([1, 2**63, 3], [np.int64(1), np.uint64(2**63), np.int64(3)]),
        ([2**63, -1, 3], [np.uint64(2**63), np.int64(-1), np.int64(3)]),
        ([True, 2, 3], [np.True_, np.int64(2), np.int64(3)]),
        (["a", 1, b"b"], [b"a", np.int64(1), b"b"]),
        ([np.float32(1), 2.0, 3j], [np.float32(1), np.float64(2), np.complex128(3j)]),
    ],
    ids=repr,
)
def test_an_elements_dtype_does_not_depend_on_what_is_made_with_it(values, expected):
    dataset = Dataset.range(len(expected)).map(lambda x: values[int(x)])
    assert_elements_equal(list(dataset), expected)
    together = list(dataset.shuffle(3, seed=1))  # which asks for all at once
    places = [int(x) for x in Dataset.range(len(expected)).shuffle(3, seed=1)]
    assert_elements_equal(together, [expected[place] for place in places])


def test_an_int_too_large_for_64_bits_fails_alone():
    got = outcomes(iter(Dataset.range(3).map(lambda x: 2**64 if x == 1 else int(x))))
    assert (got[0], got[2]) == (0, 2)
    assert isinstance(got[1], ValueError)
    assert "64 bits" in str(got[1])


def test_dicts_filled_in_another_order_have_the_same_structure():
    def swap(x):
        return {"a": x, "b": -x} if x % 2 else {"b": -x, "a": x}

    check_operator(lambda: Dataset.range(4).map(swap), [{"a": np.int64(i), "b": np.int64(-i)} for i in range(4)])


@pytest.mark.parametrize("nothing", [None, (), [], {}, (None, None)], ids=repr)
def test_a_result_without_components_is_an_error(nothing):
    with pytest.raises(SpecError, match=r"map\(<lambda>\) must return an element"):
        list(Dataset.range(2).map(lambda x: nothing if x < 9 else x))


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (1, (1, 2)),
        (1, {"a": 1}),
        (1, None),
        (1, Point(1, 2)),
        (1, Record(1, 2)),
        (1, Sample(1, 2)),
        ((1, 2), 1),
        ((1, 2), (1, 2, 3)),
        ((1, None), (1, 2)),
        ((1, 2), (1, (2, 3))),
        ((1, 2), (1, Record(2, 3))),
        ({"a": 1}, {"b": 1}),
        (Point(1, 2), (1, 2)),
        ((1, 2), Point(1, 2)),
        (Record(1, 2), Sample(1, 2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("demand", [1, 3])
def test_a_result_of_another_structure_fails_alone(first, other, demand):
    def change(x):
        return other if x == 1 else first

    dataset = Dataset.range(3).map(change)
    if demand == 3:
        errors = [e for e in outcomes(iter(dataset.batch(3))) if isinstance(e, Exception)]
        assert len(errors) == 1
        assert isinstance(errors[0], SpecError)
        return
    got = outcomes(iter(dataset))
    assert_elements_equal([got[0], got[2]], list(Dataset.from_tensors(first)) * 2)
    assert isinstance(got[1], SpecError)
    assert "same structure" in str(got[1])
    assert "element 1" in got[1].__notes__[0]


# Exceptions


@pytest.mark.parametrize("bad", [0, 2, 4])
@pytest.mark.parametrize("demand", [1, 2, 3, 10])
def test_an_exception_takes_the_place_of_its_element(bad, demand):
    expected = [ValueError(f"bad {i}") if i == bad else np.int64(i) for i in range(5)]
    check_operator(lambda: Dataset.range(5).map(fail_at(bad)), expected)
    seen = outcomes(iter(Dataset.range(5).map(fail_at(bad)).map(lambda x: x).batch(demand).unbatch()))
    assert sum(isinstance(outcome, ValueError) for outcome in seen) == 1


def test_several_exceptions_in_a_row_each_have_their_place():
    expected = [np.int64(0), ValueError("bad 1"), ValueError("bad 2"), np.int64(3), ValueError("bad 4")]
    check_operator(lambda: Dataset.range(5).map(fail_at(1, 2, 4)), expected)
    check_operator(lambda: Dataset.range(3).map(fail_at(0, 1, 2)), [ValueError(f"bad {i}") for i in range(3)])


def test_no_element_is_called_for_twice_when_one_fails():
    calls = []

    def count(x):
        calls.append(int(x))
        return fail_at(2)(x)

    outcomes(iter(Dataset.range(6).map(count).batch(4)))
    assert calls == list(range(6))


def test_the_exception_has_its_own_type_and_traceback_and_a_note():
    class MyError(Exception):
        pass

    def raises(x):
        if x == 3:
            raise MyError("mine")
        return x

    line = sys._getframe().f_lineno + 1
    dataset = Dataset.range(6).map(raises, name="decoder").batch(2)
    error = next(e for e in outcomes(iter(dataset)) if isinstance(e, Exception))
    assert type(error) is MyError
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames[-1] == "raises"
    note = error.__notes__[0]
    assert "map(raises)" in note
    assert "decoder" in note
    assert f"test_map.py:{line}" in note
    assert note.endswith("element 3")


def test_the_note_counts_elements_that_failed_before():
    dataset = Dataset.range(5).map(fail_at(1, 2)).map(fail_at(4))
    errors = [e for e in outcomes(iter(dataset)) if isinstance(e, Exception)]
    assert [e.__notes__[0].rpartition(" ")[2] for e in errors] == ["1", "2", "4"]


def test_stop_iteration_from_the_function_is_an_error_of_its_element():
    def stop(x):
        if x == 1:
            raise StopIteration
        return x

    for dataset in (Dataset.range(3).map(stop), Dataset.range(4).map(stop).batch(2)):
        got = outcomes(iter(dataset))
        assert sum(isinstance(outcome, RuntimeError) for outcome in got) == 1
        assert len(got) == (3 if dataset.cardinality() == 3 else 2)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", [0, 2, 3])
def test_an_interrupt_comes_at_once_and_loses_no_element(interrupt, at):
    armed = [True]

    def interrupted(x):
        if x == at and armed:
            armed.clear()
            raise interrupt
        return x

    iterator = iter(Dataset.range(6).map(interrupted).batch(4))
    with pytest.raises(interrupt):
        next(iterator)
    assert [batch.tolist() for batch in iterator] == [[0, 1, 2, 3], [4, 5]]


def test_the_wrong_number_of_arguments_is_the_users_type_error_with_a_note():
    with pytest.raises(TypeError, match="argument") as caught:
        next(iter(Dataset.from_tensors((1, 2)).map(lambda x: x)))
    assert "map(<lambda>)" in caught.value.__notes__[0]


@pytest.mark.parametrize("function", [None, 3, "len", [len]])
def test_refuses_what_cannot_be_called(function):
    with pytest.raises(TypeError, match=r"map\(\): map_func must be a function, got"):
        Dataset.range(3).map(function)


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"num_parallel_calls": 0}, ValueError, "num_parallel_calls must be at least 1, got 0"),
        ({"num_parallel_calls": -3}, ValueError, "num_parallel_calls"),
        ({"num_parallel_calls": 2.0}, TypeError, "num_parallel_calls must be an int"),
        ({"num_parallel_calls": True}, TypeError, "num_parallel_calls must be an int"),
        ({"deterministic": 1}, TypeError, "deterministic must be True or False"),
        ({"synchronous": 1}, TypeError, "synchronous must be True or False"),
        ({"use_unbounded_threadpool": "yes"}, TypeError, "use_unbounded_threadpool must be True or False"),
        ({"synchronous": True, "num_parallel_calls": 2}, ValueError, "cannot be combined with num_parallel_calls=2"),
        ({"synchronous": True, "num_parallel_calls": -1}, ValueError, "leave out one of them"),
    ],
)
def test_refuses_wrong_arguments(keywords, error, words):
    with pytest.raises(error, match=words):
        Dataset.range(3).map(str, **keywords)


@pytest.mark.parametrize("calls", [1, 2, 16, -1])
@pytest.mark.parametrize("deterministic", [None, True])
def test_parallel_calls_give_the_same(calls, deterministic):
    check_operator(
        lambda: Dataset.range(20).map(fail_at(7), num_parallel_calls=calls, deterministic=deterministic),
        [ValueError("bad 7") if i == 7 else np.int64(i) for i in range(20)],
    )


@pytest.mark.parametrize(
    "keywords",
    [
        {"synchronous": True},
        {"synchronous": True, "use_unbounded_threadpool": True},
        {"synchronous": False, "num_parallel_calls": 2},
        {"use_unbounded_threadpool": True, "num_parallel_calls": 4},
    ],
    ids=str,
)
def test_the_threads_of_calls_make_no_difference(keywords):
    expected = [ValueError("bad 1"), np.int64(2)]
    check_operator(lambda: Dataset.range(3).map(fail_at(1), **keywords).skip(1), expected)


def test_a_synchronous_map_calls_nothing_ahead():
    check_laziness(lambda numbers: numbers.map(lambda x: x + 1, synchronous=True), lambda k: k)


# Specs


def test_the_spec_of_a_function_that_always_fails_is_its_exception():
    with pytest.raises(ValueError, match="bad") as caught:
        _ = Dataset.range(2).map(fail_at(0, 1)).element_spec
    assert "map(check)" in caught.value.__notes__[0]


def test_the_spec_is_found_by_running_one_element_once():
    calls = []
    dataset = Dataset.range(5).map(lambda x: calls.append(1) or (x, "a", [1.0]))
    assert not calls
    spec = (TensorSpec((), np.int64), TensorSpec((), bytes), TensorSpec((None,), np.float64))
    assert dataset.element_spec == dataset.element_spec == spec
    assert len(calls) == 1


def test_the_spec_of_a_map_over_nothing_is_an_error_that_says_why():
    with pytest.raises(SpecError, match=r"map\(<lambda>\).*none"):
        _ = Dataset.range(0).map(lambda x: x).element_spec


def test_keeps_the_cardinality():
    function = str
    assert Dataset.range(5).map(function).cardinality() == 5
    assert Dataset.range(5).repeat().map(function).cardinality() == -1
    assert Dataset.range(5).filter(lambda x: True).map(function).cardinality() == -2


def test_names_partials_and_callable_objects():
    class Decoder:
        def __call__(self, x):
            return x

    assert "map(fail)" in repr(Dataset.range(2).map(partial(fail, 1)))
    assert "map(Decoder)" in repr(Dataset.range(2).map(Decoder()))


def fail(_a, _b):
    raise ValueError


# Who owns an array


def results(buffer):
    yield "array", buffer
    yield "tuple", (buffer, 1)
    yield "dict", {"a": buffer}
    yield "twice", (buffer, buffer)
    yield "slice", buffer[:2]
    yield "reshape", buffer.reshape(1, 3)
    yield "view of view", buffer[None][0]
    yield "transpose", buffer.reshape(1, 3).T
    yield "record", Record(buffer, buffer[1:])
    yield "ragged", RaggedTensor(buffer, [0, 1, 3])
    yield "sparse", SparseTensor([[0], [1], [2]], buffer, [3])
    yield "memory", np.frombuffer(memoryview(buffer), buffer.dtype)


@pytest.mark.parametrize("kind", [name for name, _ in results(np.zeros(3))])
@pytest.mark.parametrize("demand", [1, 3])
def test_a_function_may_fill_its_buffer_again(kind, demand):
    def reusing(buffer):
        def fill(x):
            buffer[:] = x
            return dict(results(buffer))[kind]

        return fill

    def fresh(x):
        return dict(results(np.full(3, float(x))))[kind]

    def run(function):
        dataset = Dataset.range(3).map(function)
        return list(dataset if demand == 1 else dataset.batch(demand))

    assert_elements_equal(run(reusing(np.zeros(3))), run(fresh))


@pytest.mark.parametrize("demand", [1, 3])
def test_a_function_may_fill_an_array_of_text_again(demand):
    buffer = np.array([b"", b""], object)

    def fill(x):
        buffer[:] = str(x).encode()
        return buffer

    rows = Dataset.range(3).map(fill).batch(demand).unbatch()
    assert [row.tolist() for row in rows] == [[b"0"] * 2, [b"1"] * 2, [b"2"] * 2]


def test_what_a_consumer_writes_does_not_reach_the_function_that_keeps_the_array():
    table = {i: np.full(2, i) for i in range(3)}
    dataset = Dataset.range(3).map(lambda x: table[int(x)])
    for row in dataset:
        row[:] = -1
    assert [row.tolist() for row in dataset] == [[0, 0], [1, 1], [2, 2]]


def test_results_are_the_users_to_write_into():
    for row in Dataset.range(3).map(lambda x: np.full(2, x)):
        row[:] = 1
    for row in Dataset.range(3).map(lambda x: np.full((2, 2), x).reshape(4)):
        row[:] = 1


@pytest.mark.parametrize("function", [lambda x: (x, x), lambda x: (x, x + 0), lambda x: {"a": x, "b": x}])
def test_components_made_from_one_value_share_no_memory_in_a_batch(function):
    for number, element in enumerate(Dataset.range(12).map(function).batch(4)):
        a, b = element.values() if isinstance(element, dict) else element
        a[:] = 99
        assert b.tolist() == list(range(4 * number, 4 * number + 4))


def test_arrays_of_the_source_reach_the_function_read_only():
    source = np.zeros((3, 2))

    def write(row):
        row[0] = 1
        return row

    with pytest.raises(ValueError, match="read-only"):
        next(iter(Dataset.from_tensor_slices(source).map(write)))
    assert not source.any()


# Functions on columns


def test_a_vectorized_function_is_called_with_columns():
    lengths = []

    @vectorized
    def double(x):
        lengths.append(len(x))
        return x * 2

    assert [batch.tolist() for batch in Dataset.range(5).map(double).batch(3)] == [[0, 2, 4], [6, 8]]
    assert lengths == [3, 2]


def test_a_vectorized_function_may_take_and_return_structures():
    @vectorized
    def combine(a, b):
        return {"sum": a + b, "rows": np.stack([a, b], axis=1)}

    check_operator(
        lambda: Dataset.range(3).enumerate(start=10).map(combine),
        [{"sum": np.int64(10 + 2 * i), "rows": np.array([10 + i, i])} for i in range(3)],
    )


def test_a_vectorized_function_that_raises_fails_for_single_elements():
    @vectorized
    def fussy(x):
        if np.any(x == 2):
            raise ValueError("two")
        return x

    check_operator(lambda: Dataset.range(4).map(fussy), [np.int64(0), np.int64(1), ValueError("two"), np.int64(3)])


@pytest.mark.parametrize("result", [lambda x: 3, lambda x: x[:0], lambda x: np.concatenate([x, x])])
def test_a_vectorized_function_that_returns_another_length_is_an_error(result):
    with pytest.raises(SpecError):
        list(Dataset.range(4).map(vectorized(result)).batch(2))


def test_simple_arithmetic_gives_the_same_errors_with_and_without_the_optimizer():
    numbers = np.array([1, 2, 3, 250, 4, 5], np.uint8)

    def make():
        return Dataset.from_tensor_slices(numbers).map(lambda x: x + 10).batch(2)

    def found(dataset):
        return [type(o) if isinstance(o, Exception) else o.tolist() for o in outcomes(iter(dataset))]

    with np.errstate(all="raise"):
        assert found(make()) == found(unoptimized(make()))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / 3,
        lambda x: x // 2 - 5,
        lambda x: x % 7,
        lambda x: -x,
        lambda x: (x, x * 1.5),
        lambda x: x > 2,
        lambda x: x * 0.1 + 3,
        lambda x: 5,
        lambda x: (x, 1),
        lambda x: x,
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32, np.float64])
def test_simple_arithmetic_gives_the_same_bits_with_and_without_the_optimizer(function, dtype):
    numbers = np.arange(1, 12).astype(dtype)

    def make():
        return Dataset.from_tensor_slices(numbers).map(function).batch(4)

    assert_elements_equal(list(make()), list(unoptimized(make())))

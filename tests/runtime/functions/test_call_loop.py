"""Tests of calling user functions: one by one, on columns, and when they raise."""

import threading
import traceback

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, vectorized
from dataset.optimize.vectorization.elementwise_proof import prove_elementwise
from dataset.runtime.functions.columnwise import ElementwiseProof
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.columns_at_once import columns_at_once
from support.pipelines import unoptimized


def in_steps(dataset, size):
    """Return the outcomes if ``size`` elements at a time are requested from everything upstream."""
    return outcomes(iter(unoptimized(dataset.batch(size).unbatch())))


def shown(results):
    return [type(r).__name__ if isinstance(r, BaseException) else int(r) for r in results]


# One by one.


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_an_exception_takes_the_place_of_one_element(size):
    def fail_at_three(x):
        if x == 3:
            raise KeyError("three")
        return x

    dataset = Dataset.range(7).map(fail_at_three)
    assert shown(outcomes(iter(dataset.prefetch(size)))) == [0, 1, 2, "KeyError", 4, 5, 6]
    # The failure drops its batch.
    whole = [x for x in range(7) if x // size != 3 // size or x > 3]
    assert sorted(x for x in shown(in_steps(dataset, size)) if x != "KeyError") == [
        x for x in whole if x not in lost(size)
    ]


def lost(size):
    """Return the elements that are in the same batch as element 3."""
    return set(range(3 - 3 % size, 4))


def test_the_note_names_op_line_and_element():
    def fail(x):
        if x == 2:
            raise ValueError("two")
        return x

    iterator = iter(Dataset.range(4).map(fail).prefetch(4))
    results = outcomes(iterator)
    (note,) = results[2].__notes__
    assert note.startswith("in map(fail) from test_call_loop.py:")
    assert note.endswith(", element 2")
    assert [entry.name for entry in traceback.extract_tb(results[2].__traceback__)][-1] == "fail"


def test_every_element_is_called_for_once_and_in_order_whatever_raises():
    calls = []

    def fail_sometimes(x):
        calls.append(int(x))
        if x % 3 == 0:
            raise ValueError("thrice")
        return x

    results = outcomes(iter(Dataset.range(10).map(fail_sometimes).prefetch(10)))
    assert calls == list(range(10))
    assert shown(results) == ["ValueError" if x % 3 == 0 else x for x in range(10)]


@pytest.mark.parametrize("step", [1, 4])
def test_a_function_that_raises_stop_iteration_does_not_end_the_loop(step):
    def stop(x):
        if x == 1:
            raise StopIteration
        return x

    for dataset in (
        Dataset.range(3).map(stop),
        Dataset.range(3).map(vectorized(stop) if step == 1 else stop).prefetch(step),
        Dataset.range(3).filter(lambda x: stop(x) >= 0),
        Dataset.range(3).flat_map(lambda x: Dataset.from_tensors(stop(x))),
        Dataset.range(3).interleave(lambda x: Dataset.from_tensors(stop(x)), cycle_length=1),
    ):
        results = outcomes(iter(dataset))
        assert [r for r in results if not isinstance(r, Exception)] == [0, 2]
        assert [type(r) for r in results if isinstance(r, Exception)] == [RuntimeError]


def test_a_result_of_another_structure_fails_alone():
    dataset = Dataset.range(5).map(lambda x: (x, x) if x == 3 else x)
    for results in (outcomes(iter(dataset)), outcomes(iter(dataset.prefetch(5)))):
        assert shown(results) == [0, 1, 2, "SpecError", 4]
        assert "returned (*, *), but earlier elements had the structure *" in str(results[3])


def test_a_tuple_reaches_the_function_as_arguments_and_nothing_else_does():
    import collections

    pair = collections.namedtuple("pair", "a b")  # noqa: PYI024  # as users write them
    assert [int(x) for x in Dataset.from_tensors((1, (2, 3))).map(lambda a, b: a + b[0] + b[1])] == [6]
    assert [int(x) for x in Dataset.from_tensors(pair(1, 2)).map(lambda p: p.a + p.b)] == [3]
    assert [int(x) for x in Dataset.from_tensors({"a": 1}).map(lambda d: d["a"])] == [1]
    assert [int(x) for x in Dataset.from_tensors((5,)).map(lambda x: x)] == [5]
    assert [int(x) for x in Dataset.from_tensors((5, None)).map(lambda x, none: x if none is None else -1)] == [5]


def test_a_function_that_returns_nothing_is_an_error():
    results = outcomes(iter(Dataset.range(2).map(lambda x: None)))
    assert [type(r) for r in results] == [SpecError, SpecError]
    assert "must return an element, got None" in str(results[0])


@pytest.mark.parametrize("result", [1, None, "x", np.zeros(2, bool), [True]])
def test_a_predicate_that_returns_no_bool_fails_at_its_place(result):
    dataset = Dataset.range(4).filter(lambda x: result if x == 2 else True)
    for results in (outcomes(iter(dataset)), outcomes(iter(dataset.prefetch(4)))):
        assert shown(results) == [0, 1, "SpecError", 3]


@pytest.mark.parametrize("kind", ["one by one", "vectorized"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda numbers, f: numbers.map(f),
        lambda numbers, f: numbers.map(f).batch(2).unbatch(),
        lambda numbers, f: numbers.map(f).prefetch(3),
        lambda numbers, f: numbers.map(f).shuffle(4, seed=1),
        lambda numbers, f: numbers.map(f).map(lambda x: x).filter(lambda x: x >= 0),
        lambda numbers, f: numbers.map(f).take(7).skip(1).shard(2, 0),
        lambda numbers, f: Dataset.zip(numbers, numbers.map(f)).map(lambda a, b: b),
        lambda numbers, f: numbers.batch(4).flat_map(lambda b: Dataset.from_tensor_slices(b).map(f)),
        lambda numbers, f: (
            numbers.batch(4).interleave(lambda b: Dataset.from_tensor_slices(b).map(f)).batch(4).unbatch()
        ),
        lambda numbers, f: numbers.map(f).cache(),
        lambda numbers, f: numbers.map(f).repeat(2).enumerate().map(lambda i, x: x),
        lambda numbers, f: numbers.take(3).concatenate(numbers.map(f)),
        lambda numbers, f: numbers.map(f).padded_batch(3).unbatch(),
    ],
)
def test_after_a_keyboard_interrupt_in_a_function_nothing_is_lost(wrap, kind):
    fuse = []

    def function(x):
        if fuse and np.any(x == 5):
            fuse.clear()
            raise KeyboardInterrupt
        return x

    function = vectorized(function) if kind == "vectorized" else function

    def run(*, interrupted):
        fuse[:] = [1] if interrupted else []
        iterator, found, interrupts = iter(wrap(Dataset.range(8), function)), [], 0
        while True:
            try:
                found.append(int(next(iterator)))
            except KeyboardInterrupt:
                interrupts += 1
            except StopIteration:
                return found, interrupts

    plain, _ = run(interrupted=False)
    assert run(interrupted=True) == (plain, 1)


# Functions that take columns.


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_vectorized_function_gets_as_many_as_are_asked_for(size):
    lengths = []

    @vectorized
    def note(x):
        lengths.append(len(x))
        return x * 2

    assert [b.tolist() for b in Dataset.range(5).map(note).batch(size)] == [
        [2 * x for x in range(5)][i : i + size] for i in range(0, 5, size)
    ]
    assert lengths == [min(size, 5 - i) for i in range(0, 5, size)]


def test_a_vectorized_function_that_raises_on_one_element_fails_for_that_one():
    @vectorized
    def no_threes(x):
        if (x == 3).any():
            raise ValueError("three")
        return x

    results = outcomes(iter(Dataset.range(6).map(no_threes).prefetch(6)))
    assert shown(results) == [0, 1, 2, "ValueError", 4, 5]
    assert results[3].__notes__[0].endswith("element 3")


def test_a_vectorized_function_is_not_called_again_for_a_single_element_that_failed():
    calls = []

    @vectorized
    def fail(x):
        calls.append(x.tolist())
        raise ValueError("no")

    outcomes(iter(Dataset.range(2).map(fail)))
    assert calls == [[0], [1]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:1], "columns of 3 values, one for each input element; the element has 1 values"),
        (lambda x: np.concatenate([x, x]), "the element has 6 values"),
        (lambda x: (x, x[:2]), "component 1 has 2 values"),
        (lambda x: {"a": x, "n": x.sum()}, "component 'n' has a scalar"),
        (lambda x: 5, "the element has a scalar"),
        (lambda x: np.array(5), "the element has a scalar"),
        (lambda x: None, "must return an element, got None"),
        (lambda x: b"abc", "a scalar"),
        (lambda x: [1, 2], "has 2 values"),
    ],
)
def test_a_vectorized_function_that_returns_no_columns_is_told_so(function, message):
    from dataset.plan.structure import LEAF
    from dataset.runtime.chunks.chunk import Chunk
    from dataset.runtime.functions.vectorized import chunk_of_columns

    dataset = Dataset.range(3).map(vectorized(function)).batch(3)
    operator_error = None
    try:
        if "must return an element" in message:
            next(iter(dataset))
        else:
            chunk_of_columns(function(Chunk(LEAF, 3, [np.arange(3)]).columns()[0]), 3)
    except SpecError as error:
        operator_error = error
    assert operator_error is not None
    assert message in str(operator_error)


def test_a_vectorized_function_may_return_lists_as_columns():
    @vectorized
    def grow(x):
        return x, [np.full(i, i) for i in x], [b"a" * int(i) for i in x], [str(i) for i in x]

    expected = [(np.int64(i), np.full(i, i), b"a" * i, str(i).encode()) for i in range(4)]
    check_operator(lambda: Dataset.range(4).map(grow), expected)


def test_a_vectorized_function_gets_objects_where_shapes_differ():
    seen = []

    @vectorized
    def look(rows, names):
        seen.append((rows.dtype, rows.shape, names.dtype, [type(name) for name in names]))
        return np.array([len(row) for row in rows])

    dataset = Dataset.range(3).map(lambda x: (np.zeros(x), b"n")).map(look)
    assert next(iter(dataset.batch(3))).tolist() == [0, 1, 2]
    assert seen == [(np.dtype(object), (3,), np.dtype(object), [bytes] * 3)]


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        b"x\0",
        np.zeros(2),
        np.array([b"a", b"b\0"], object),
        np.datetime64(3, "s"),
        RaggedTensor([1, 2], [0, 1, 2]),
        SparseTensor([[1]], [5], [3]),
        (1, {"a": b"x", "b": np.ones((2, 2), np.uint8)}),
        {"a": 1, "b": None},
    ],
)
def test_the_identity_on_columns_is_the_identity_for_every_kind_of_component(value):
    @vectorized
    def same(*columns):
        return columns if isinstance(value, tuple) else columns[0]

    plain = list(Dataset.from_tensors(value).repeat(4))
    for dataset in (
        Dataset.from_tensors(value).repeat(4).map(same),
        Dataset.from_tensors(value).repeat(4).map(same).prefetch(4),
    ):
        assert_elements_equal(outcomes(iter(dataset)), plain)


def test_columns_that_a_vectorized_function_keeps_and_fills_again_are_copied():
    kept = np.zeros((1, 2))

    @vectorized
    def fill(x):
        kept[:] = x[:, None]
        return kept

    assert [row.tolist() for row in list(Dataset.range(4).map(fill))] == [[i, i] for i in range(4)]


def test_the_same_column_twice_is_two_memories():
    @vectorized
    def twice(x):
        column = x[:, None]
        return column, column

    first, second = next(iter(Dataset.range(3).map(twice).batch(3)))
    first += 1
    assert second.tolist() == [[0], [1], [2]]


def test_a_vectorized_predicate_chooses_among_the_elements():
    even = vectorized(lambda x: x % 2 == 0)
    check_operator(lambda: Dataset.range(6).filter(even), [np.int64(0), np.int64(2), np.int64(4)])
    results = outcomes(iter(Dataset.range(2).filter(vectorized(lambda x: x))))
    assert [type(r) for r in results] == [SpecError] * 2
    assert "must return 1 bools" in str(results[0])


def test_a_vectorized_function_can_be_called_directly():
    @vectorized
    def double(x):
        return x * 2

    assert double(3) == 6
    assert double.__name__ == "double"


# Arithmetic that the optimizer runs on columns, with the same results.


def is_elementwise(function):
    return isinstance(prove_elementwise(function), ElementwiseProof)


FUNCTIONS = {
    "x + 1": lambda x, y: x + 1,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x * 200": lambda x, y: x * 200,
    "x / y": lambda x, y: x / y,
    "x // y": lambda x, y: x // y,
    "x % y": lambda x, y: x % y,
    "x // 0": lambda x, y: x // 0,
    "-x": lambda x, y: -x,
    "~x": lambda x, y: ~x,
    "x & y": lambda x, y: x & y,
    "x | 1": lambda x, y: x | 1,
    "x ^ y": lambda x, y: x ^ y,
    "x << y": lambda x, y: x << y,
    "x >> 1": lambda x, y: x >> 1,
    "x < y": lambda x, y: x < y,
    "x == 300": lambda x, y: x == 300,
    "(x, y)": lambda x, y: (y, x),
    "(x, x)": lambda x, y: (x, x),
    "nested": lambda x, y: ((x + y, y), x * 0.5),
    "constant": lambda x, y: 5,
    "with constant": lambda x, y: (x, 5),
    "True": lambda x, y: x + True,
    "big": lambda x, y: x + 2**40,
    "x": lambda x, y: x,
}
DTYPES = [np.int64, np.uint8, np.int8, np.float16, np.float32, np.float64, np.bool_, np.uint64, np.int32]
SPECIAL = [
    0,
    1,
    -1,
    2,
    3,
    127,
    128,
    255,
    -128,
    2**31,
    2**62,
    -(2**63),
    2**64 - 1,
    np.nan,
    np.inf,
    -np.inf,
    -0.0,
    0.1,
    65504.0,
]


@st.composite
def columns(draw):
    length = draw(st.integers(2, 6))
    found = []
    for _ in range(2):
        values = draw(st.lists(st.sampled_from(SPECIAL), min_size=length, max_size=length))
        with np.errstate(all="ignore"):
            found.append(np.array(values, np.float64).astype(draw(st.sampled_from(DTYPES))))
    return tuple(found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflows are the point
@given(columns(), st.sampled_from(sorted(FUNCTIONS)), st.integers(1, 6))
@example((np.array([-(2**63)] * 4), np.array([-1] * 4)), "x // y", 2)
@settings(deadline=None, max_examples=300)
def test_arithmetic_on_columns_gives_what_single_elements_give(arrays, name, size):
    slices = Dataset.from_tensor_slices(arrays)
    function = FUNCTIONS[name]
    assert is_elementwise(function) or "constant" in name
    mapped = slices.map(function)
    plain = outcomes(iter(unoptimized(mapped)))
    batched = mapped.batch(size)
    with columns_at_once():
        assert_elements_equal(outcomes(iter(mapped)), plain)
        assert_elements_equal(outcomes(iter(mapped.prefetch(size))), plain)
        assert_elements_equal(outcomes(iter(batched)), outcomes(iter(unoptimized(batched))))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(columns(), st.sampled_from(["x < y", "x == 300", "True", "x"]), st.integers(1, 6))
@settings(deadline=None, max_examples=60)
def test_filters_on_columns_choose_what_single_elements_choose(arrays, name, size):
    dataset = Dataset.from_tensor_slices(arrays).filter(FUNCTIONS[name]).batch(size)
    with columns_at_once():
        assert_elements_equal(outcomes(iter(dataset)), outcomes(iter(unoptimized(dataset))))


@pytest.mark.parametrize(
    ("values", "function"),
    [
        ([1, 2, 3, 4, 5, 2**62], lambda x: x * 4),
        ([1, 2, 3, 4, 5, 0], lambda x: 1 // x),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 1e308], lambda x: x * 10.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 0.0], lambda x: 1 / x),
    ],
)
def test_a_user_who_lets_numpy_raise_gets_the_error_at_its_place(values, function):
    dataset = Dataset.from_tensor_slices(np.array(values)).map(function).batch(2)
    with np.errstate(all="raise"), columns_at_once():
        plain = outcomes(iter(unoptimized(dataset)))
        assert [type(r) for r in plain] == [np.ndarray, np.ndarray, FloatingPointError]
        assert_elements_equal(outcomes(iter(dataset)), plain)


def with_effect(x):
    SEEN.append(np.ndim(x))
    return x


SEEN = []


class Callable:
    def __call__(self, x):
        return with_effect(x)

    def method(self, x):
        return with_effect(x)


def _names():
    import functools

    closure = []
    return {
        "effect": with_effect,
        "object": Callable(),
        "method": Callable().method,
        "partial": functools.partial(with_effect),
        "builtin": abs,
        "conditional": lambda x: x if x > 1 else -x,
        "and": lambda x: x > 0 and x,
        "chained": lambda x: 0 < x < 3,
        "not": lambda x: not x,
        "attribute": lambda x: x.real,
        "index": lambda x: x[()],
        "power": lambda x: x**2,
        "matmul": lambda x: x @ x,
        "default": lambda x, y=[]: x + 1,  # it must be refused
        "closure": lambda x: closure and x,
        "global": lambda x: SEEN,
        "call": lambda x: int(x),  # noqa: PLW0108  # a lambda is the point
        "variadic": lambda *x: x,
        "keyword": lambda x, **_: x,
        "is": lambda x: x is x,  # noqa: PLR0124
        "in": lambda x: x in (1, 2),
        "text": lambda x: "a",
        "none": lambda x: None,
        "list": lambda x: [x],
        "walrus": lambda x: (y := x) + y,
    }


REFUSED = _names()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_function_that_is_more_than_arithmetic_is_never_run_on_columns(name):
    assert not is_elementwise(REFUSED[name])
    SEEN.clear()
    for dataset in (Dataset.range(4).map(REFUSED[name]), Dataset.range(4).filter(REFUSED[name])):
        outcomes(iter(dataset.batch(4)))
        assert "columns" not in dataset.batch(4).explain()
    assert set(SEEN) <= {0}


def test_generators_and_coroutines_are_never_run_on_columns():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    assert not is_elementwise(generator)
    assert not is_elementwise(coroutine)


def test_arrays_of_different_ranks_are_never_columns_of_arithmetic():
    rows = np.arange(6).reshape(3, 2)
    dataset = Dataset.from_tensor_slices((rows, np.arange(3))).map(lambda a, b: a * b)
    with columns_at_once():
        assert_elements_equal(list(dataset.batch(3)), list(unoptimized(dataset.batch(3))))


def test_a_function_may_be_called_from_several_iterators_at_once():
    barrier = threading.Barrier(2)

    def meet(x):
        barrier.wait(timeout=60)
        return x

    dataset = Dataset.range(3).map(meet)
    found = [[], []]
    threads = [threading.Thread(target=lambda k=k: found[k].extend(map(int, dataset))) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 1, 2], [0, 1, 2]]

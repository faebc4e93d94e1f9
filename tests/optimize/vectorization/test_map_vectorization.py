"""map_vectorization: functions that prove to compute each element for itself are run on whole columns."""

import contextlib
import operator
import pickle
import types
import warnings
from functools import partial, wraps

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, vectorized
from dataset.optimize.driver import optimize
from dataset.optimize.vectorization.elementwise_proof import prove_elementwise
from dataset.plan.structure import structure_of
from dataset.runtime.functions import columnwise
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.columns_at_once import columns_at_once
from support.pipelines import unoptimized

# Where warnings are errors, integers are not run on columns; that has tests of its own below.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TWO = 2
HALF = np.float32(0.5)
MEAN = np.array([1.0, 2.0, 3.0])
WIDE = 2**64
LIMITS = [0, 1]


@pytest.fixture(autouse=True, scope="module")
def _at_once():
    with columns_at_once():
        yield


@contextlib.contextmanager
def columns_recorded():
    """The lengths of the chunks that went through a function as columns."""
    lengths = []
    call = columnwise.Columns.call

    def recording(self, function, inputs):
        result = call(self, function, inputs)
        lengths.append(inputs.length)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnwise.Columns, "call", recording)
        yield lengths


def assert_same(got, expected):
    """Equal to the last bit, the sign of zero and the notes of exceptions."""
    assert_elements_equal(got, expected)
    for mine, theirs in zip(got, expected, strict=True):
        if isinstance(mine, Exception):
            assert getattr(mine, "__notes__", []) == getattr(theirs, "__notes__", [])
            continue
        flat = structure_of(mine).flatten
        for a, b in zip(flat(mine), flat(theirs), strict=True):
            if isinstance(a, np.ndarray | np.generic) and a.dtype.kind == "f":
                assert np.array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))


def check_same(make):
    """The same with and without columns; gives the lengths of the chunks that were run on columns."""
    plain = outcomes(iter(unoptimized(make())))
    with columns_recorded() as lengths:
        assert_same(outcomes(iter(make())), plain)
    return lengths


def fires(dataset):
    return [fired.rule for fired in optimize(dataset.plan).fired] == ["map_vectorization"]


def missed(dataset):
    return [miss.reason for miss in optimize(dataset.plan).missed]


def named(x):
    return x + 1


def with_locals(x):
    doubled = x * 2
    shifted, halved = doubled - 1, doubled / 2
    return shifted, halved


class Adder:
    def __call__(self, x):
        return x + 1

    def add(self, x):
        return x + 1


def closure(value):
    return lambda x: x + value


def generator(x):
    yield x


async def coroutine(x):
    return x


def decorated(function):
    @wraps(function)
    def call(*args):
        return function(*args)

    return call


def guarded(x):
    try:
        return 1 // x
    except ZeroDivisionError:
        return x


FIRES = [
    lambda x: x + 1,
    lambda x: 2 * x - 3,
    lambda x: x / 4,
    lambda x: x // 4 % 3,
    lambda x: (x & 3) | (x ^ 5),
    lambda x: x << 2 >> 1,
    lambda x: -x,
    lambda x: ~x,
    lambda x: x > 3,
    lambda x: (x, x * 0.5),
    lambda x: (x,),
    lambda x: x + TWO,
    lambda x: x * HALF,
    lambda x: x * np.pi,
    lambda x, y=1: x + y,
    lambda x: {"a": x},
    lambda x: {"a": x, "b": (x, x + 1)},
    lambda x: np.sqrt(x),  # noqa: PLW0108  # a call inside a lambda
    lambda x: np.add(x, 1),
    lambda x: np.maximum(x, 3),
    lambda x: np.minimum(x, 0),
    lambda x: np.clip(x, 2, 5),
    lambda x: x.clip(2, 5),
    lambda x: np.where(x > 3, x, 0),
    lambda x: np.where(x > 3, 1.5, -0.0).astype(np.float16),
    lambda x: abs(x),  # noqa: PLW0108
    lambda x: np.float32(x) / 255,
    lambda x: x.astype(np.float32),
    lambda x: x.astype("int8"),
    lambda x: x.astype(float),
    lambda x: (x // 2).astype(np.int16),
    lambda x: (x > 2).astype(np.int16),
    lambda x: np.logical_not(x > 3),
    lambda x: np.rint(x / 3),
    closure(1),
    closure(np.float64(2.5)),
    closure(np.array(3)),
]

NEVER = [
    int,
    lambda x: x.sum(),
    lambda x: [x, x],
    lambda x: f"{x}",
    lambda x: (x, None),
    lambda x: x + 1j,
    lambda x: x + 2**64,
    lambda x: (y := x) + y,
    lambda *x: x,
    lambda x, *, y=1: x + y,
    lambda x: len(x),  # noqa: PLW0108
    lambda x: str(x),  # noqa: PLW0108
    lambda x: np.mean(x),  # noqa: PLW0108
    lambda x: np.add(x, 1, x),
    lambda x: np.add(x, 1, out=x),
    lambda x: np.float32(),
    lambda x: np.random.rand(),
    lambda x: x.astype("S4"),
    lambda x: x.astype(">i4"),
    lambda x: x.astype(np.complex64),
    lambda x: x.T,
    lambda x: {1: x},
    lambda x: {},
    lambda x: lambda: x,
    lambda x: x is x,  # noqa: PLR0124
    lambda x: x in (1, 2),
    lambda x: x == "a",
    lambda x: x.clip(min=1, max=2),
    lambda x: UNDEFINED + x,  # noqa: F821
    decorated(named),
    guarded,
    generator,
    coroutine,
    Adder(),
    Adder().add,
    partial(operator.add, 1),
    np.negative,
    np.frompyfunc(int, 1, 1),
    closure(print),
    vectorized(lambda x: x + 1),
    str,
    abs,
]

MISSED = [
    (lambda x: x**2, "it uses **"),
    (lambda x: np.exp(x), "it calls np.exp, whose results"),  # noqa: PLW0108
    (lambda x: x if x > 2 else 0, "it branches; use np.where()"),
    (lambda x: x > 1 and x < 3, "it branches; use np.where()"),
    (lambda x: 1 < x < 3, "it branches; use np.where()"),
    (lambda x: not x, "it uses not; use np.logical_not()"),
    (lambda x: int(x), "it calls int(), which takes single numbers"),  # noqa: PLW0108
    (lambda x: x + LIMITS[0], "it reads the global LIMITS, of type list"),
    (lambda x: x + WIDE, "it reads the global WIDE, of type int"),
    (closure("text"), "it reads the variable value, of type str"),
    (lambda x, y=LIMITS: x + 1, "it reads the default of y, of type list"),
    (lambda x: (x, 5), "it returns a constant"),
    (lambda x: 5, "it returns a constant"),
    (lambda x: MEAN, "it returns a constant"),
    (lambda x: (x * 2)[0], "it indexes an array"),
    (lambda x: np.maximum(x / 2, 0.0), "it calls np.maximum, which may choose a different sign of zero"),
    (
        lambda x: np.fmax(1e-9, x / 2),
        "it calls np.fmax, which may choose a different sign of zero",
    ),  # float16 makes 0 of it
    (lambda x: (x / 2).clip(x, 1), "it clips to bounds that are not Python numbers"),
    (lambda x: (x / 2).astype(int), "it casts floats to integers"),
    (lambda x: np.int8(x * 0.5), "it casts floats to integers"),
    (lambda x: x["a"], "the elements, TensorSpec(shape=(), dtype=int64), are not arguments with which it"),
    (lambda x: x + MEAN, "it combines arrays of different ranks"),
]


@pytest.mark.parametrize("function", FIRES)
def test_fires(function):
    assert fires(Dataset.range(9).map(function))
    check_rule("map_vectorization", lambda: Dataset.range(9).map(function), "map(<lambda>) <- range(9)")
    make = lambda: Dataset.range(9).map(function).batch(4)
    check_rule("map_vectorization", make, "batch(4) <- map(<lambda>) <- range(9)")
    assert check_same(make)


def test_fires_for_named_functions_and_several_arguments_and_filters():
    assert fires(Dataset.range(9).map(named))
    assert fires(Dataset.range(9).map(with_locals))
    assert fires(Dataset.range(9).filter(lambda x: x % 3 != 1).batch(4))
    check_rule("map_vectorization", lambda: Dataset.range(9).map(named), "map(named) <- range(9)")
    check_rule(
        "map_vectorization",
        lambda: Dataset.range(9).enumerate(3).map(lambda i, x: (i * x, i > x)).batch(4),
        "batch(4) <- map(<lambda>) <- enumerate <- range(9)",
    )
    check_rule(
        "map_vectorization",
        lambda: Dataset.range(9).filter(lambda x: x % 3 != 1).batch(4),
        "batch(4) <- filter(<lambda>) <- range(9)",
    )


@pytest.mark.parametrize("function", NEVER)
def test_does_not_fire(function):
    for dataset in (Dataset.range(9).map(function), Dataset.range(9).filter(function)):
        assert not fires(dataset)
    assert not isinstance(prove_elementwise(function), columnwise.ElementwiseProof) or function.__dict__


@pytest.mark.parametrize(("function", "reason"), MISSED)
def test_says_what_kept_it_from_firing(function, reason):
    for dataset in (Dataset.range(9).map(function), Dataset.range(9).filter(function)):
        assert not fires(dataset)
        assert [miss.startswith(reason) for miss in missed(dataset)] == [True]
    assert f"map_vectorization: map(<lambda>) from test_map_vectorization.py:{reason}" not in dataset.explain()
    assert reason in dataset.explain()


def test_names_the_line_in_a_long_function():
    def normalized(x):
        shifted = x - 1
        return np.log1p(shifted)

    (reason,) = missed(Dataset.range(3).map(normalized))
    assert reason.endswith(f"(line {normalized.__code__.co_firstlineno + 2})")


def test_explain_calls_nothing():
    calls_seen = []

    def function(x):
        calls_seen.append(x)
        return x

    Dataset.range(3).map(function).map(lambda x: x + 1).explain()
    assert not calls_seen


def test_does_not_fire_for_functions_with_effects():
    seen = []
    dataset = Dataset.range(6).map(lambda x: seen.append(int(x)) or x).batch(3)
    assert len(list(dataset)) == 2
    assert seen == list(range(6))
    check_rule("map_vectorization", lambda: Dataset.range(6).map(str).batch(2), "batch(2) <- map(str) <- range(6)")


# What elements it is run on

IMAGES = np.arange(9 * 12, dtype=np.uint8).reshape(9, 2, 2, 3)
LABELS = np.arange(9)
NAMES = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"]

FITS = [
    (IMAGES, lambda x: x / 255),
    (IMAGES, lambda x: (x - MEAN) / MEAN),
    (IMAGES, lambda x: np.float32(x) * HALF - 1),
    (IMAGES, lambda x: (x, x)),
    (IMAGES, lambda x: (x, np.uint8(x))),
    (IMAGES, lambda x: np.where(x > 50, x, 0)),
    ((IMAGES, LABELS), lambda image, label: (image / 255, label)),
    ((IMAGES, LABELS), lambda image, label: (label, image)),
    ((IMAGES, IMAGES), lambda x, y: x.astype(np.int16) - y * MEAN),
    ((IMAGES, NAMES), lambda image, name: (image + 1, name)),
    ((IMAGES, NAMES), lambda image, name: image + 1),
    ((NAMES, LABELS), lambda name, label: (name, label * 2, name)),
    ({"image": IMAGES, "label": LABELS}, lambda e: {"image": e["image"] / 255, "label": e["label"]}),
    ({"image": IMAGES, "label": LABELS}, lambda e: (e["image"], e["label"] + 1)),
    ({"image": IMAGES, "label": LABELS}, lambda e: {**e, "image": e["image"] * 2}),
    ({"image": IMAGES, "label": LABELS}, lambda e: e),
    (((LABELS, IMAGES), LABELS), lambda pair, y: (pair[0] + y, pair[1], pair)),
    (({"a": (LABELS, IMAGES)}, LABELS), lambda e, y: {"a": e["a"][0] * y, "e": e}),
    (LABELS, lambda x: x * HALF),
]

NO_FIT = [
    (IMAGES, lambda x: x[0]),
    (IMAGES, lambda x: x + BLOCK),
    ((IMAGES, LABELS), lambda image, label: image + label),
    ((IMAGES, LABELS), lambda image, label: np.where(label > 3, image, 0)),
    ((LABELS, IMAGES), lambda label, image: (label * 2 + label, image - (label + 1))),
    (LABELS, lambda x: x + MEAN),
    (NAMES, lambda x: x + x),
    ((NAMES, LABELS), lambda name, label: (name * 2, label)),
    (LABELS / 2, lambda x: x.astype(np.int8)),
    (LABELS / 2, lambda x: np.minimum(x, 0)),
    ((LABELS.astype(np.uint64), LABELS), lambda x, y: (x + y).astype(np.int8)),
    (LABELS * 1j, lambda x: x + 1),
    (LABELS.astype("M8[D]"), lambda x: x - x),
    (LABELS.astype(np.longdouble), lambda x: x / 3),
    (np.zeros((5, 8193), np.uint8), lambda x: x + 1),
    (IMAGES.transpose(0, 3, 2, 1), lambda x: x + 1),
    ({"a": LABELS}, lambda e: e["b"]),
    ({"a": LABELS}, lambda e: e + 1),
    ((LABELS, LABELS), lambda x: x),
    (((LABELS, LABELS), LABELS), lambda pair, y: pair[2] + y),
]
BLOCK = np.ones((3, 2, 2, 3, 3))


def sides(pair, y):
    left, right = pair
    return left + y, right


@pytest.mark.parametrize(("rows", "function"), [*FITS, (((LABELS, IMAGES), LABELS), sides)])
@pytest.mark.parametrize("hidden", [False, True], ids=["known spec", "unknown spec"])
def test_runs_on_columns_of(rows, function, hidden):
    def make():
        slices = Dataset.from_tensor_slices(rows)
        return (slices.filter(named_always) if hidden else slices).map(function).batch(4)

    assert check_same(make)


def named_always(*_):
    return True


@pytest.mark.parametrize(("rows", "function"), NO_FIT)
@pytest.mark.parametrize("hidden", [False, True], ids=["known spec", "unknown spec"])
def test_does_not_run_on_columns_of(rows, function, hidden):
    def make():
        slices = Dataset.from_tensor_slices(rows)
        return (slices.filter(named_always) if hidden else slices).map(function).batch(4)

    assert check_same(make) == []


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x + 1, lambda x: (x, x)])
def test_numbers_of_another_byte_order_are_passed_one_by_one(function):
    for rows in (LABELS.astype(">i4"), LABELS.astype(">f8")):
        assert check_same(lambda: Dataset.from_tensor_slices(rows).map(function).batch(4)) == []


def test_rows_that_a_function_made_are_passed_one_by_one_and_their_numbers_on_columns():
    arrays = lambda: Dataset.range(9).map(lambda x: np.full(3, int(x))).map(lambda x: x + 1).batch(4)
    assert check_same(arrays) == []
    numbers = lambda: Dataset.range(9).map(lambda x: int(x) * 2).map(lambda x: x + 1).batch(4)
    assert check_same(numbers)


def test_elements_of_a_class_of_the_user_are_passed_one_by_one():
    made = []

    class Pair(dict):
        def __getitem__(self, key):
            made.append(key)
            return super().__getitem__(key)

    def make():
        return Dataset.range(6).map(lambda x: Pair(a=int(x), b=1)).map(lambda e: e["a"] + e["b"]).batch(3)

    assert check_same(make) == []
    assert made.count("a") >= 12


def test_objects_with_operators_of_their_own_are_called_one_by_one():
    class Counting:
        calls = 0

        def __add__(self, other):
            Counting.calls += 1
            return other

    dataset = Dataset.range(6).map(lambda x: Counting()).map(lambda x: x + 1).batch(3)
    assert len(list(dataset)) == 2
    assert Counting.calls == 6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x * x,
        lambda x: x // 3,
        lambda x: x % 3,
        lambda x: x / 7,
        lambda x: -x,
        lambda x: (x, x > 2),
        lambda x: x + 0.5,
        lambda x: x & 3,
        lambda x: x << 1,
        lambda x: 5,
        lambda x: (x, 5),
        lambda x: x,
        lambda x: np.sqrt(x),  # noqa: PLW0108
        lambda x: np.clip(x, 2, 7),
        lambda x: np.where(x > 3, x, 0),
        lambda x: np.sign(x),  # noqa: PLW0108
        lambda x: x.astype(np.int8),
        lambda x: np.bool_(x),  # noqa: PLW0108
        lambda x: abs(x),  # noqa: PLW0108
        lambda x: np.maximum(x, 300),
        lambda x, y: x + y,
    ],
)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", "c8", "M8[D]", "m8[s]", "O"])
def test_gives_the_same_for_every_dtype(function, dtype):
    """Also where the function fails for this dtype."""
    numbers = np.arange(1, 11).astype(dtype)
    check_same(lambda: Dataset.from_tensor_slices(numbers).map(function).batch(4))


@pytest.mark.parametrize(
    "rows", [np.ones((6, 2)), ["a", "b", "c"], {"a": [1, 2, 3]}, ([1, 2, 3], np.ones((3, 2)))], ids=repr
)
def test_elements_of_every_kind_are_passed_on(rows):
    check_rule(
        "map_vectorization",
        lambda: Dataset.from_tensor_slices(rows).map(lambda *x: x).batch(2),
        "batch(2) <- map(<lambda>) <- from_tensor_slices",
    )


# Ownership


@pytest.mark.parametrize(
    "function",
    [lambda x: x, lambda x: (x, x), lambda x: np.float64(x) * 1, lambda x: (x, np.float64(x)), lambda x: x * 2],
)
@pytest.mark.parametrize("batched", [False, True])
def test_results_are_as_writable_and_as_much_their_own_as_those_of_single_elements(function, batched):
    rows = np.ones((9, 2))

    def make():
        dataset = Dataset.from_tensor_slices(rows).map(function)
        return dataset.batch(3) if batched else dataset.prefetch(4)

    def seen(dataset):
        found = []
        for element in dataset:
            parts = structure_of(element).flatten(element)
            found.append(
                (
                    [part.flags.writeable for part in parts],
                    [np.shares_memory(part, rows) for part in parts],
                    batched and any(np.shares_memory(a, b) for a in parts for b in parts if a is not b),
                )
            )
        return found

    assert seen(make()) == seen(unoptimized(make()))


# Failures, warnings and interruptions


def test_an_element_that_fails_later_fails_alone():
    def make():
        return Dataset.range(8).map(lambda x: 2**62 if x == 5 else int(x)).map(lambda x: x * 4).batch(2)

    with np.errstate(over="raise"):
        check_rule("map_vectorization", make, "batch(2) <- map(<lambda>) <- map(<lambda>) <- range(8)")


def test_a_division_by_zero_is_the_same_value_or_error():
    def make():
        return Dataset.range(-3, 3).map(lambda x: 6 // x).batch(2)

    for setting in ("ignore", "raise"):
        with np.errstate(all=setting):
            check_rule("map_vectorization", make, "batch(2) <- map(<lambda>) <- range(-3, 3)")


WARNING_FUNCTIONS = [
    lambda x: 6 // (x - 5),
    lambda x: 1 / (x - 5),
    lambda x: x * 2**61,
    lambda x: np.sqrt(5.0 - x),
    lambda x: np.float16(x * 20000),
    lambda x: np.float32(x) * 1e38,
]


@pytest.mark.parametrize("function", WARNING_FUNCTIONS)
@pytest.mark.parametrize("size", [2, 5, 20])
def test_warnings_that_are_errors_are_raised_at_their_place(function, size):
    def run(dataset):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return outcomes(iter(dataset))

    make = lambda: Dataset.range(12).map(function).batch(size)
    plain = run(unoptimized(make()))
    assert any(isinstance(outcome, RuntimeWarning) for outcome in plain)
    assert_same(run(make()), plain)


@pytest.mark.parametrize("function", [f for i, f in enumerate(WARNING_FUNCTIONS) if i != 2])
def test_numpy_warns_as_often_and_in_the_same_words(function):
    """But for overflows of integers, which NumPy does not look for in arrays."""

    def run(dataset):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(dataset)
        return [str(warning.message) for warning in caught]

    make = lambda: Dataset.range(12).map(function).batch(4)
    plain = run(unoptimized(make()))
    assert plain
    assert run(make()) == plain


def test_filters_in_front_of_an_error_filter_count():
    def raises():
        return columnwise._warning_raises()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert raises()
        warnings.simplefilter("default", RuntimeWarning)
        assert not raises()
        warnings.filterwarnings("error", message=".*overflow.*")
        assert raises()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("error", DeprecationWarning)
        assert not raises()


def test_chunks_that_fail_as_columns_are_tried_ever_more_seldom():
    dataset = Dataset.range(4000).map(int).map(lambda x: 1 // (x % 2)).batch(4)  # nothing is made ahead of int
    with columns_recorded() as lengths:
        tries = []
        fit = columnwise.Columns.fit
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columnwise.Columns, "fit", lambda *given: tries.append(fit(*given)) or tries[-1])
            list(dataset)
    assert lengths == []
    assert len(tries) >= 1000
    assert 3 < sum(tries) < 12


def test_an_interruption_loses_nothing():
    call = columnwise.Columns.call
    left = [1, 2, 3]

    def interrupted(self, function, inputs):
        if left:
            left.pop()
            raise KeyboardInterrupt
        return call(self, function, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnwise.Columns, "call", interrupted)
        iterator = iter(Dataset.range(12).map(lambda x: x + 1).batch(6))
        got = []
        while len(got) < 2:
            with contextlib.suppress(KeyboardInterrupt):
                got.append(next(iterator).tolist())
    assert got == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]
    assert not left


def test_results_that_differ_in_the_trial_end_it():
    """Nothing that is proved differs; should it nevertheless, single elements are right."""
    call = columnwise.Columns.call

    def wrong(self, function, inputs):
        return call(self, function, inputs) + 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnwise.Columns, "call", wrong)
        assert [batch.tolist() for batch in Dataset.range(6).map(lambda x: x * 2).batch(3)] == [[0, 2, 4], [6, 8, 10]]


def test_states_resume_within_a_trial():
    expected = [np.array([0, 2, 4, 6]), np.array([8, 10, 12, 14]), np.array([16])]
    check_operator(lambda: Dataset.range(9).map(lambda x: x * 2).batch(4), expected)
    check_operator(lambda: Dataset.range(6).map(lambda x: x * 2).prefetch(3), [np.int64(2 * i) for i in range(6)])


# What a function reads may change at any time


def check_rebinding(make, change, undo):
    """The same where something changes after some elements."""

    def run(dataset):
        found = []
        try:
            for index, element in enumerate(dataset):
                found.append(element)
                if index == 1:
                    change()
        finally:
            undo()
        return found

    plain = run(unoptimized(make()))
    with columns_recorded() as lengths:
        assert_same(run(make()), plain)
    return lengths


@pytest.mark.parametrize(
    "value",
    [3, 2.5, True, np.int8(3), np.array(4), np.array([1.0, 2.0]), [1, 2], "3", None, 2**64, 1j, Adder()],
    ids=lambda value: type(value).__name__,
)
def test_a_global_that_is_bound_anew_is_read_anew(value):
    scope = {"SCALE": 2}
    exec("def scaled(x): return x * SCALE", scope)
    before = Dataset.range(12).map(scope["scaled"])
    assert fires(before)

    def run(dataset):
        scope["SCALE"] = 2
        found, iterator = [], iter(dataset)
        for index in range(6):
            try:
                found.append(next(iterator))
            except Exception as error:
                found.append(error)
            if index == 2:
                scope["SCALE"] = value
        return found

    assert_same(run(before.batch(2)), run(unoptimized(before.batch(2))))


def test_a_variable_that_another_function_changes_is_read_anew():
    def make():
        scale = 1

        def count(x):
            nonlocal scale
            scale += int(x)
            return x

        return Dataset.range(12).map(count).map(lambda x: x * scale).batch(3)

    assert check_same(make)


def test_a_name_that_is_deleted_fails_at_its_place():
    def run(optimized):
        scope = {"SCALE": 2}
        exec("def scaled(x): return x * SCALE", scope)
        dataset = Dataset.range(4).map(scope["scaled"]).batch(2)
        iterator = iter(dataset if optimized else unoptimized(dataset))
        found = [next(iterator)]
        del scope["SCALE"]
        return [*found, *outcomes(iterator)]

    assert_same(run(True), run(False))


def test_a_function_of_numpy_that_is_replaced_is_called(monkeypatch):
    seen = []
    sqrt = np.sqrt
    make = lambda: Dataset.range(8).map(lambda x: np.sqrt(x)).batch(2)  # noqa: PLW0108
    lengths = check_rebinding(
        make,
        lambda: monkeypatch.setattr(np, "sqrt", lambda x: seen.append(np.ndim(x)) or sqrt(x)),
        monkeypatch.undo,
    )
    assert len(lengths) == 2
    assert seen == [0] * len(seen)  # what nobody can notice was made ahead, before it was replaced
    assert seen


def test_numpy_that_is_shadowed_is_not_numpy():
    fake = types.SimpleNamespace(sqrt=lambda x: x)
    scope = {"np": fake}
    exec("def root(x): return np.sqrt(x)", scope)
    assert not fires(Dataset.range(3).map(scope["root"]))
    scope = {"abs": lambda x: x}
    exec("def size(x): return abs(x)", scope)
    assert not fires(Dataset.range(3).map(scope["size"]))
    scope = {"np": np, "float": int}
    exec("def size(x): return (x / 2).astype(float)", scope)
    assert not fires(Dataset.range(3).map(scope["size"]))


def test_a_builtin_that_is_shadowed_later_is_called():
    scope = {}
    exec("def size(x): return abs(x)", scope)
    dataset = Dataset.range(-4, 4).map(scope["size"]).batch(2)
    iterator = iter(dataset)
    assert next(iterator).tolist() == [4, 3]
    scope["abs"] = lambda x: x * 10
    assert next(iterator).tolist() == [-20, -10]


def test_code_and_defaults_that_are_replaced_are_called():
    def run(optimized):
        def function(x, y=1):
            return x + y

        found = []
        dataset = Dataset.range(9).map(function).batch(3)
        iterator = iter(dataset if optimized else unoptimized(dataset))
        found.append(next(iterator))
        function.__defaults__ = (0.5,)
        found.append(next(iterator))
        function.__code__ = (lambda x, y=1: str(x)).__code__
        found.append(next(iterator))
        return found

    assert_same(run(True), run(False))


def test_arrays_of_derived_classes_are_no_constants():
    class Mine(np.ndarray):
        def __array_ufunc__(self, *given, **named_ones):
            return 5

    mine = np.ones(()).view(Mine)
    assert not fires(Dataset.range(3).map(closure(mine)))
    assert not fires(Dataset.range(3).map(closure(np.ma.masked_array([1]))))
    assert not fires(Dataset.range(3).map(closure(np.array(["a"]))))

    class Number(float):
        def __radd__(self, other):
            return 5

    assert not fires(Dataset.range(3).map(closure(Number(1))))


def test_arguments_that_have_defaults_and_are_given_are_passed_one_by_one():
    make = lambda: Dataset.range(6).enumerate().map(lambda i, x=3: i * x).batch(3)
    assert check_same(make) == []


def test_says_whether_a_function_reads_what_may_change():
    assert prove_elementwise(lambda x: np.sqrt(x) + 1).reads_nothing
    assert prove_elementwise(named).reads_nothing
    assert not prove_elementwise(lambda x: x + TWO).reads_nothing
    assert not prove_elementwise(closure(1)).reads_nothing
    assert not prove_elementwise(lambda x, y=1: x + y).reads_nothing


# Other threads and processes


def rooted(x):
    return np.sqrt(x * TWO)


def test_a_proof_goes_to_another_process():
    proof = pickle.loads(pickle.dumps(prove_elementwise(rooted)))
    assert proof.holds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "TWO", "2")
        assert not proof.holds()


@pytest.mark.parametrize("calls_at_once", [{"num_parallel_calls": 3}, {"executor": "process", "num_parallel_calls": 1}])
def test_the_same_in_parallel(calls_at_once):
    dataset = Dataset.range(40).map(rooted, **calls_at_once).batch(8)
    assert_same(list(dataset), list(unoptimized(Dataset.range(40).map(rooted).batch(8))))


# Everything that the grammar allows

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
VALUES = [0, 1, -1, 2, 3, 7, 100, 127, 255, -128, 2**31, 2**62, -(2**63), 2**64 - 1]
VALUES += [np.nan, np.inf, -np.inf, -0.0, 0.1, -2.5, 0.5, 65504.0, 1e-310, 1e300]
CONSTANTS = ["0", "1", "-1", "2", "255", "0.5", "-0.0", "2.0", "1e30", "True", "np.float32(0.5)", "K", "W"]
BINARY = [*"+-*/+-*/", "//", "%", "&", "^", "<<", "<", "==", ">="]
UNARY_UFUNCS = ["sqrt", "square", "sign", "abs", "floor", "ceil", "rint", "trunc", "negative", "reciprocal", "isnan"]
UNARY_UFUNCS += ["signbit", "logical_not", "fabs", "isfinite"]
BINARY_UFUNCS = ["add", "subtract", "multiply", "divide", "fmod", "remainder", "maximum", "minimum", "fmax", "fmin"]
BINARY_UFUNCS += ["copysign", "logical_and", "less", "bitwise_or", "floor_divide"]
CASTS = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool_"]

atoms = st.sampled_from([*["x", "y"] * 6, *CONSTANTS])


def grown(inner):
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(BINARY), inner),
        st.builds("(-{})".format, inner),
        st.builds("(~{})".format, inner),
        st.builds("abs({})".format, inner),
        st.builds("np.{}({})".format, st.sampled_from(UNARY_UFUNCS), inner),
        st.builds("np.{}({}, {})".format, st.sampled_from(BINARY_UFUNCS), inner, inner),
        st.builds("np.{}({})".format, st.sampled_from(CASTS), inner),
        st.builds("({}).astype(np.{})".format, inner, st.sampled_from(CASTS)),
        st.builds("np.clip({}, {}, {})".format, inner, inner, inner),
        st.builds(
            "({}).clip({}, {})".format, inner, st.sampled_from(["0", "-1", "-0.0"]), st.sampled_from(["1", "0.0"])
        ),
        st.builds("np.where({}, {}, {})".format, inner, inner, inner),
    )


expressions = st.recursive(atoms, grown, max_leaves=5)
results = st.one_of(
    expressions,
    st.builds("({}, {})".format, expressions, expressions),
    st.builds("{{'a': {}, 'b': ({}, y)}}".format, expressions, expressions),
)


@st.composite
def components(draw):
    length = draw(st.integers(2, 9))
    found = []
    shape = draw(st.sampled_from([(), (), (3,), (2, 3)]))
    for _ in range(2):
        own = draw(st.sampled_from([*[shape] * 9, (), (3,), (1,)]))
        count = length * int(np.prod(own))
        values = draw(st.lists(st.sampled_from(VALUES), min_size=count, max_size=count))
        with np.errstate(all="ignore"):
            array = np.array(values, np.float64).astype(draw(st.sampled_from(DTYPES)))
        found.append(array.reshape(length, *own))
    return tuple(found)


def test_whatever_is_proved_gives_the_same():
    ran = []

    @given(components(), results, st.integers(1, 9), st.sampled_from([2, 0.5, HALF, np.uint64(3)]), st.booleans())
    @settings(deadline=None, max_examples=250)
    def check(arrays, source, size, constant, ignoring):
        scope = {"np": np, "K": constant, "W": MEAN}
        function = eval(f"lambda x, y: {source}", scope)  # noqa: S307  # generated above
        slices = Dataset.from_tensor_slices(arrays)
        with np.errstate(all="ignore" if ignoring else "warn"):
            ran.append(bool(check_same(lambda: slices.map(function).batch(size))))
            check_same(lambda: slices.map(function).prefetch(size))
            check_same(lambda: slices.filter(function).batch(size))

    check()
    assert sum(ran) > len(ran) / 20  # or it would hold although nothing ever ran on columns

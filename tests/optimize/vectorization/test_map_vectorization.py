"""map_vectorization: functions that prove to compute each element for itself are run on whole columns."""

import operator
import pickle
import types
import warnings
from functools import partial, wraps

import numpy as np
import pytest

from dataset import Dataset, vectorized
from dataset.optimize.driver import optimize
from dataset.plan.structure import structure_of
from dataset.runtime.functions import bytecode, evaluate
from dataset.runtime.functions.kernels import columns
from dataset.runtime.functions.kernels.columns import elementwise_function
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.columns_at_once import columns_at_once, columns_recorded
from support.pipelines import fired, unoptimized

# Where warnings are errors, integers are not run on columns; that has tests of its own below.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RULE = ["map_vectorization"]
TWO = 2
HALF = np.float32(0.5)
MEAN = np.array([1.0, 2.0, 3.0])
WIDE = 2**64
LIMITS = [0, 1]
WORDS = ["a", 1]


@pytest.fixture(autouse=True, scope="module")
def _at_once():
    with columns_at_once():
        yield


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


def with_globals(function, **scope):
    """The function with global variables of its own."""
    return types.FunctionType(function.__code__, scope, "scoped", function.__defaults__)


def generator(x):
    yield x


async def coroutine(x):
    return x


@wraps(named)
def decorated(*args):
    return named(*args)


# A tuple is proved if each of its parts is.
FIRES = [
    *(named, with_locals, closure(1), closure(np.float64(2.5)), closure(np.array(3)), lambda x: (x,)),
    *(lambda x: [x, x], lambda x: (y := x) + y, lambda x, *, y=1: x + y),
    *(lambda x: np.mean(x), lambda x: x in (1, 2), lambda x: x in LIMITS, lambda x: x**2),  # noqa: PLW0108
    *(lambda x: x if x > 2 else 0, lambda x: x > 1 and x < 3, lambda x: 1 < x < 3, lambda x: not x, lambda x: int(x)),  # noqa: PLW0108
    *(lambda x: x + LIMITS[0], lambda x, y=LIMITS: x + 1, lambda x: (x, 5), lambda x: 5, lambda x: MEAN),
    *(lambda x: np.maximum(x / 2, 0.0), lambda x: np.fmax(1e-9, x / 2), lambda x: (x / 2).clip(x, 1)),
    *(lambda x: (x / 2).astype(int), lambda x: np.int8(x * 0.5), lambda x: x + MEAN, lambda x: abs(float(x))),
    lambda x: (x + 1, 2 * x - 3, x / 4, x // 4 % 3, (x & 3) | (x ^ 5), x << 2 >> 1, -x, ~x, x > 3, abs(x)),
    lambda x, y=1: {"a": x, "b": (x, x + y)},
    lambda x: (np.sqrt(x), np.add(x, 1), np.maximum(x, 3), np.minimum(x, 0), np.rint(x / 3), np.logical_not(x > 3)),
    lambda x: (np.clip(x, 2, 5), x.clip(2, 5), np.where(x > 3, x, 0), np.where(x > 3, 1.5, -0.0).astype(np.float16)),
    lambda x: (np.float32(x) / 255, x.astype(np.float32), x.astype("int8"), x.astype(float)),
    lambda x: ((x // 2).astype(np.int16), (x > 2).astype(np.int16)),
]

NEVER = [int, str, abs, np.negative, np.frompyfunc(int, 1, 1), partial(operator.add, 1)]
NEVER += [decorated, generator, coroutine, closure(print), vectorized(lambda x: x + 1)]
NEVER += [lambda x: f"{x}", lambda x: (x, None), lambda x: {1: x}, lambda x: {}, lambda x: lambda: x]
NEVER += [lambda x: x + 1j, lambda x: x + 2**64, lambda *x: x]
NEVER += [lambda x: str(x)]  # noqa: PLW0108
NEVER += [lambda x: np.add(x, 1, x), lambda x: np.add(x, 1, out=x), lambda x: np.random.rand()]
NEVER += [lambda x: x.astype("S4"), lambda x: x.astype(np.complex64)]
NEVER += [lambda x: UNDEFINED + x, lambda x: LIMITS.append(x)]  # noqa: F821, PLW0108

MISSED = [
    (lambda x: x + WIDE, "it reads the global WIDE, of type int"),
    (lambda x: x + WORDS, "it reads the global WORDS, of type list"),
    (lambda x, y=WORDS: x + y, "it reads the default of y, of type list"),
    (lambda x: np.exp(x), "it calls exp() with single numbers, which is faster one by one"),  # noqa: PLW0108
    (lambda x, y: x + y, "the elements, TensorSpec(shape=(), dtype=int64), are not arguments with which it"),
    (lambda x: (x, x is x), "the elements, TensorSpec(shape=(), dtype=int64), are not arguments with which it"),  # noqa: PLR0124
    (lambda x: print(x), "it calls print()"),  # noqa: PLW0108, T201
]


@pytest.mark.parametrize("function", FIRES)
def test_fires(function):
    assert fired(Dataset.range(9).map(function)) == RULE
    make = lambda: Dataset.range(9).map(function).batch(4)
    check_rule("map_vectorization", make, f"batch(4) <- map({function.__name__}) <- range(9)")
    assert check_same(make)


def test_fires_for_several_arguments_and_filters():
    pairs = lambda: Dataset.range(9).enumerate(3).map(lambda i, x: (i * x, i > x)).batch(4)
    check_rule("map_vectorization", pairs, "batch(4) <- map(<lambda>) <- enumerate <- range(9)")
    filtered = lambda: Dataset.range(9).filter(lambda x: x % 3 != 1).batch(4)
    check_rule("map_vectorization", filtered, "batch(4) <- filter(<lambda>) <- range(9)")
    assert fired(filtered()) == RULE


@pytest.mark.parametrize("function", NEVER)
def test_does_not_fire(function):
    assert fired(Dataset.range(9).map(function)) != RULE
    assert fired(Dataset.range(9).filter(function)) != RULE


@pytest.mark.parametrize(("function", "reason"), MISSED)
def test_says_what_kept_it_from_firing(function, reason):
    for dataset in (Dataset.range(9).map(function), Dataset.range(9).filter(function)):
        assert fired(dataset) != RULE
        assert [miss.startswith(reason) for miss in missed(dataset)] == [True]
        assert reason in dataset.explain()


def test_says_that_the_version_of_python_is_not_known(monkeypatch):
    monkeypatch.setattr(bytecode, "_PYTHON", ("cpython", 3, 99))
    reason = "its bytecode is that of cpython 3.99, which this version of the library cannot read; it reads that of "
    dataset = Dataset.range(9).map(lambda x: x * 99)
    assert fired(dataset) != RULE
    assert [miss.startswith(reason) for miss in missed(dataset)] == [True]
    assert reason in dataset.explain()


# What elements it is run on

IMAGES = np.arange(9 * 12, dtype=np.uint8).reshape(9, 2, 2, 3)
LABELS = np.arange(9)
NAMES = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"]
BLOCK = np.ones((3, 2, 2, 3, 3))


def sides(pair, y):
    left, right = pair
    return left + y, right


FITS = [
    (IMAGES, lambda x: x / 255),
    (IMAGES, lambda x: ((x - MEAN) / MEAN, np.float32(x) * HALF - 1, np.where(x > 50, x, 0))),
    ((IMAGES, LABELS), lambda image, label: (label, image / 255, image)),
    ((IMAGES, NAMES), lambda image, name: image + 1),
    ((NAMES, LABELS), lambda name, label: (name, label * 2, name)),
    ({"image": IMAGES, "label": LABELS}, lambda e: (e["image"], {"label": e["label"] + 1})),
    ({"image": IMAGES, "label": LABELS}, lambda e: {**e, "image": e["image"] * 2}),
    ({"image": IMAGES, "label": LABELS}, lambda e: e),
    (((LABELS, IMAGES), LABELS), lambda pair, y: (pair[0] + y, pair[1], pair)),
    (({"a": (LABELS, IMAGES)}, LABELS), lambda e, y: {"a": e["a"][0] * y, "e": e}),
    (((LABELS, IMAGES), LABELS), sides),
    (LABELS / 2, with_locals),
]

FITS += [
    (LABELS.astype(">f8"), lambda x: (x + 1, x)),
    (IMAGES, lambda x: x[0]),
    ((LABELS, IMAGES), lambda label, image: (label * 2 + label, image - (label + 1))),
    ((LABELS.astype(np.uint64), LABELS), lambda x, y: (x + y).astype(np.int8)),
]
NO_FIT = [
    (IMAGES, lambda x: x + BLOCK),
    (NAMES, lambda x: x + x),
    ((NAMES, LABELS), lambda name, label: (name * 2, label)),
    (LABELS * 1j, lambda x: x + 1),
    (LABELS.astype("M8[D]"), lambda x: x - x),
    (LABELS.astype(np.longdouble), lambda x: x / 3),
    (np.zeros((5, 8193), np.uint8), lambda x: x + 1),
    (IMAGES.transpose(0, 3, 2, 1), lambda x: x + 1),
    ({"a": LABELS}, lambda e: e["b"]),
    ({"a": LABELS}, lambda e: e + 1),
    ((LABELS, LABELS), lambda x: x),
    ((LABELS, LABELS), lambda x, y=3: x * y),
    (((LABELS, LABELS), LABELS), lambda pair, y: pair[2] + y),
]


def named_always(*_):
    return True


@pytest.mark.parametrize(("rows", "function", "fits"), [(*c, True) for c in FITS] + [(*c, False) for c in NO_FIT])
@pytest.mark.parametrize("hidden", [False, True], ids=["known spec", "unknown spec"])
def test_elements_decide_whether_it_runs_on_columns(rows, function, fits, hidden):
    def make():
        slices = Dataset.from_tensor_slices(rows)
        return (slices.filter(named_always) if hidden else slices).map(function).batch(4)

    lengths = check_same(make)
    assert sum(lengths) > columns.TRIAL if fits else lengths == []  # a trial with other results would be the end


@pytest.mark.parametrize(
    "make",
    [
        lambda i: np.ones(1 + i % 4),
        lambda i: np.ones((1,) * (1 + i % 4)),
        lambda i: np.ones(2, "if"[i % 2]),
        lambda i: np.ones((2, 3), order="CF"[i % 2]),
        lambda i: np.array([2, 3.5], object),
        lambda i: np.zeros(evaluate.LARGE_ELEMENT_BYTES // 8 + 1),
    ],
    ids=["lengths", "ranks", "dtypes", "memory order", "objects", "large"],
)
def test_rows_that_differ_or_would_differ_in_an_array_are_passed_one_by_one(make):
    made = lambda x: (str(x), make(int(x)))[1]  # it is not proved
    dataset = lambda: Dataset.range(8).map(made).map(lambda x: x + 1)
    assert check_same(lambda: dataset().batch(4)) == []
    assert [x.strides for x in dataset()] == [(make(i) + 1).strides for i in range(8)]


def test_objects_of_a_class_of_the_user_are_passed_one_by_one():
    calls = []

    class Pair(dict):
        def __getitem__(self, key):
            calls.append(key)
            return super().__getitem__(key)

    def pairs():
        return Dataset.range(6).map(lambda x: Pair(a=int(x), b=1)).map(lambda e: e["a"] + e["b"]).batch(3)

    assert check_same(pairs) == []
    assert calls.count("a") >= 12


# Ownership

RESULTS = [lambda x: x, lambda x: (x, x), lambda x: np.float64(x) * 1, lambda x: (x, np.float64(x)), lambda x: x * 2]
RESULTS += [lambda x: (x.reshape(2, 1), x)]


@pytest.mark.parametrize("function", RESULTS)
@pytest.mark.parametrize("batched", [False, True])
def test_results_are_as_writable_and_as_much_their_own_as_those_of_single_elements(function, batched):
    rows = np.ones((9, 2))
    mapped = Dataset.from_tensor_slices(rows).map(function)
    dataset = mapped.batch(3) if batched else mapped.prefetch(4)

    def seen(dataset):
        for element in dataset:
            parts = structure_of(element).flatten(element)
            yield [part.flags.writeable for part in parts]
            yield [np.shares_memory(part, rows) for part in parts]
            yield batched and any(np.shares_memory(a, b) for a in parts for b in parts if a is not b)

    assert list(seen(dataset)) == list(seen(unoptimized(dataset)))


# Failures, warnings and interruptions


@pytest.mark.parametrize("setting", ["ignore", "raise"])
def test_errors_of_numpy_fail_the_same_elements(setting):
    with np.errstate(all=setting):
        check_same(lambda: Dataset.range(-3, 3).map(lambda x: 6 // x).batch(2))
        check_same(lambda: Dataset.range(8).map(lambda x: 2**62 if x == 5 else int(x)).map(lambda x: x * 4).batch(2))


WARNING_FUNCTIONS = [lambda x: 6 // (x - 5), lambda x: 1 / (x - 5), lambda x: np.sqrt(5.0 - x)]
WARNING_FUNCTIONS += [lambda x: np.float16(x * 20000), lambda x: np.float32(x) * 1e38]


@pytest.mark.parametrize("function", [*WARNING_FUNCTIONS, lambda x: x * 2**61])
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


@pytest.mark.parametrize("function", WARNING_FUNCTIONS)
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


def test_results_that_differ_in_the_trial_end_it(monkeypatch):
    """Nothing that is proved differs; should it nevertheless, single elements are right."""
    call = columns.Columns.call
    monkeypatch.setattr(columns.Columns, "call", lambda *given: call(*given) + 1)
    assert [batch.tolist() for batch in Dataset.range(6).map(lambda x: x * 2).batch(3)] == [[0, 2, 4], [6, 8, 10]]


def test_states_resume_within_a_trial():
    expected = [np.array([0, 2, 4, 6]), np.array([8, 10, 12, 14]), np.array([16])]
    check_operator(lambda: Dataset.range(9).map(lambda x: x * 2).batch(4), expected)
    check_operator(lambda: Dataset.range(6).map(lambda x: x * 2).prefetch(3), [np.int64(2 * i) for i in range(6)])


# What a function reads may change at any time

BOUND = [3, 2.5, True, np.int8(3), np.array(4), np.array([1.0, 2.0]), [1, 2], "3", None, 2**64, 1j, Adder()]
CHANGES = {type(value).__name__: lambda f, value=value: f.__globals__.update(SCALE=value) for value in BOUND} | {
    "nothing": lambda f: f.__globals__.pop("SCALE"),
    "a builtin": lambda f: f.__globals__.update(abs=lambda x: x * 10),
    "defaults": lambda f: setattr(f, "__defaults__", (0.5,)),
    "code": lambda f: setattr(f, "__code__", (lambda x, y=1: str(x)).__code__),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_function_reads_is_read_anew(change):
    def run(prepare):
        function = with_globals(lambda x, y=1: abs(x) * SCALE + y, SCALE=2)  # noqa: F821
        dataset = Dataset.range(-6, 6).map(function)
        assert fired(dataset) == RULE
        iterator = iter(prepare(dataset.batch(2)))
        first = [next(iterator) for _ in range(3)]
        change(function)
        return first + outcomes(iterator)

    assert_same(run(lambda dataset: dataset), run(unoptimized))


def test_a_function_of_numpy_that_is_replaced_is_called(monkeypatch):
    seen = []
    sqrt = np.sqrt
    with columns_recorded() as lengths:
        iterator = iter(Dataset.range(8).map(lambda x: np.sqrt(x)).batch(2))  # noqa: PLW0108
        found = [next(iterator), next(iterator)]
        monkeypatch.setattr(np, "sqrt", lambda x: seen.append(np.ndim(x)) or sqrt(x))
        found += iterator
    assert_same(found, list(sqrt(np.arange(8)).reshape(4, 2)))
    assert len(lengths) == 2
    assert seen == [0] * len(seen)  # what nobody can notice was made ahead, before it was replaced
    assert seen


def test_numpy_and_builtins_that_are_shadowed_are_not_themselves():
    for function in (
        with_globals(lambda x: np.sqrt(x), np=types.SimpleNamespace(sqrt=lambda x: x)),  # noqa: PLW0108
        with_globals(lambda x: abs(x), abs=lambda x: x),  # noqa: PLW0108
        with_globals(lambda x: (x / 2).astype(float), np=np, float=int),
    ):
        check_same(lambda: Dataset.range(9).map(function).batch(3))  # it is called at once


def test_arrays_and_numbers_of_derived_classes_are_no_constants():
    class Mine(np.ndarray):
        def __array_ufunc__(self, *given, **named_ones):
            return 5

    class Number(float):
        def __radd__(self, other):
            return 5

    for value in (np.ones(()).view(Mine), np.ma.masked_array([1]), np.array(["a"]), Number(1)):
        assert fired(Dataset.range(3).map(closure(value))) != RULE


# Other threads and processes


def rooted(x):
    return np.sqrt(x * TWO)


def test_a_proof_goes_to_another_process(monkeypatch):
    received = pickle.loads(pickle.dumps(elementwise_function(rooted)))
    assert received.graph.current(received.function) is not None
    monkeypatch.setitem(globals(), "TWO", "2")
    assert received.graph.current(received.function) is None


@pytest.mark.parametrize("calls_at_once", [{"num_parallel_calls": 3}, {"executor": "process", "num_parallel_calls": 1}])
def test_the_same_in_parallel(calls_at_once):
    dataset = Dataset.range(40).map(rooted, **calls_at_once).batch(8)
    assert_same(list(dataset), list(unoptimized(Dataset.range(40).map(rooted).batch(8))))

"""Divided functions: a known beginning runs on columns, the rest is called once for each element."""

import traceback
import weakref
from functools import partial

import numpy as np
import pytest

from dataset import Dataset, io
from dataset.optimize.driver import optimize
from dataset.runtime.chunks import ownership
from dataset.runtime.functions.kernels.divided import divided_function
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.columns_at_once import columns_at_once, divisions_recorded
from support.pipelines import unoptimized

FEATURES = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}
TABLE = np.arange(40.0).reshape(10, 4)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # where warnings are errors, columns are not used


@pytest.fixture(autouse=True, scope="module")
def _at_once():
    with columns_at_once():
        yield


def images(count=24):
    return (np.arange(count * 12) * 37 % 256).reshape(count, 4, 3).astype(np.float32)


def records(count=24):
    return [
        io.encode_example({"image": image.astype(np.uint8).tobytes(), "label": i})
        for i, image in enumerate(images(count))
    ]


def check(function, data, *, is_divided=True):
    """The outcomes with and without division are the same, in batches and one by one. Returns those of the batches."""
    single = Dataset.from_tensor_slices(data).map(function)
    assert_elements_equal(outcomes(iter(single)), outcomes(iter(unoptimized(single))))
    batches = single.batch(5)
    plain = outcomes(iter(unoptimized(batches)))
    with divisions_recorded() as lengths:
        assert_elements_equal(outcomes(iter(batches)), plain)
    assert bool(lengths) == is_divided
    return plain


def opaque(value):
    """Nothing that a graph knows."""
    return np.array2string(value) != "" and value


def ends_in_a_call(x):
    scaled = x / 255
    return opaque(scaled)


def ends_in_a_loop(x):
    flat = x.reshape(-1) * 2
    total = 0.0
    for value in flat:
        total += float(value)
    return flat, np.float64(total)


def changes_in_place(x):
    y = x + 1
    z = y[1:]
    y[0] = len(np.array2string(y))
    z[0] = 5
    return y, z


def changes_its_argument(x):
    y = x[::2] * 2
    x = x.copy()
    x[0] = len(np.array2string(y))
    return x, y


def makes_an_array(x):
    out = np.zeros(3)
    mean = x.mean()
    out[len(np.array2string(mean)) % 3] = mean
    return out


def two_names(x):
    y = z = x * 3
    z += len(np.array2string(x))
    return y, z, np.bool_(y is z)


def python_numbers(x):
    y = x * 2
    n, size, half, largest = len(y), x.size, y.shape[0] / 2, y.max()
    kinds = [type(value).__name__ for value in (n, size, half, largest)]
    return y * n, " ".join(kinds)


def with_a_while(x):
    y = x * 2
    n = 0
    while n < len(np.array2string(y)) % 3:
        n += 1
    return y, np.int64(n)


def with_try(x):
    y = x - 1
    try:
        z = int(np.array2string(y[0, 0] * 0)[:1])
    except ValueError:
        z = 7
    return y, np.int64(z)


def fails_sometimes(x):
    y = x.astype(np.int64) + 1
    if int(np.array2string(y[0, 0])) % 5 == 0:
        raise ValueError(f"bad {y[0, 0]}")
    return y


SEEN = {"count": 0}


def counts(x):
    y = x / 2
    SEEN["count"] += 1
    return y


def table_row(x):
    row = TABLE[x.astype(np.int64)[0, 0] % 10]
    return opaque(row) * 2


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def apply(self, x):
        y = x / self.scale
        return opaque(y)


def closure():
    mean = np.float32(3.5)

    def call(x):
        y = x - mean
        return opaque(y) + mean

    return call


def with_more(offset, x, *, factor):
    y = x * factor + offset
    return opaque(y)


FUNCTIONS = [
    ends_in_a_call,
    ends_in_a_loop,
    changes_in_place,
    makes_an_array,
    two_names,
    with_a_while,
    with_try,
    python_numbers,
    changes_its_argument,
    fails_sometimes,
    counts,
    Scaled(np.float32(3)).apply,
    closure(),
    partial(with_more, np.float32(1), factor=np.float32(2)),
]


@pytest.mark.parametrize(
    "function", FUNCTIONS, ids=lambda function: getattr(function, "__name__", type(function).__name__)
)
def test_gives_the_same_as_single_calls(function):
    check(function, images())


def parses(record):
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8).reshape(4, 3).astype(np.float32) / 255
    return opaque(image), example["label"]


def parses_from_buffer(record):
    example = io.parse_single_example(record, FEATURES)
    image = np.frombuffer(example["image"], np.uint8)
    return {**example, "image": image, "is_writeable": np.bool_(image.flags.writeable)}


def test_a_row_of_the_users_array_is_not_replaced_by_a_copy():
    check(table_row, images(), is_divided=False)


@pytest.mark.parametrize("function", [parses, parses_from_buffer])
def test_parses_and_decodes_in_the_beginning(function):
    check(function, records())


def test_a_bad_record_fails_in_its_place_as_without_division():
    data = records()
    data[9] = b"not a record"
    plain = check(parses, data)
    assert [index for index, outcome in enumerate(plain) if isinstance(outcome, Exception)] == [1]


def test_is_called_once_for_each_element():
    calls = []

    def counted(x):
        y = x * 2
        calls.append(len(y))
        return y

    with divisions_recorded() as lengths:
        list(Dataset.from_tensor_slices(images()).map(counted).batch(6))
    assert len(calls) == 24
    assert sum(lengths) == 24


def test_a_traceback_points_into_the_function():
    dataset = Dataset.from_tensor_slices(images()).map(fails_sometimes).batch(6)
    with divisions_recorded() as lengths, pytest.raises(ValueError, match="bad") as caught:
        list(dataset)
    assert lengths
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.name == "fails_sometimes"
    assert frame.line.startswith("raise ValueError")
    assert "map(fails_sometimes)" in str(caught.value.__notes__)


def with_a_cell(x):
    y = x * 2
    return sum(float(y[0, 0]) * n for n in range(len(np.array2string(y))))


def yields(x):
    y = x * 2
    yield opaque(y)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(with_a_cell, id="variable of a generator expression"),
        pytest.param(lambda x: eval("x * 2"), id="eval"),  # noqa: S307  # it reads its local variables
        pytest.param(opaque, id="no beginning"),
        pytest.param(yields, id="generator"),
    ],
)
def test_some_functions_are_not_divided(function):
    assert divided_function(function) is None


def test_a_variable_without_a_value_stays_without_one():
    def reads_too_early(x, late=None):
        y = x * 2
        if np.array2string(y) == "":
            late = y
        del late
        z = y
        return late, z  # noqa: F821  # so it raises

    check(reads_too_early, images(), is_divided=divided_function(reads_too_early) is not None)


class Counter:
    """Its function changes what its beginning reads for the next element."""

    def __init__(self):
        self.seen, self.mean = 0, np.zeros(3)

    def counted(self, x):
        y = x + self.seen
        self.seen += int(len(np.array2string(y)) > 0)
        return y

    def averaged(self, x):
        y = x - self.mean
        self.mean += float(str(x.max())) / 10
        return y

    def sometimes(self, x):
        y = x * (self.seen + 1)
        if np.array2string(y[0, 0]) == "888.0":
            self.seen += 1
        return y


@pytest.mark.parametrize("name", ["counted", "averaged", "sometimes"])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("in_c", [False, True])
def test_what_the_rest_changes_is_read_again_for_the_next_element(name, filtered, in_c, monkeypatch):
    if not in_c:
        monkeypatch.setattr(ownership, "row_loop", lambda: None)

    def make():
        dataset = Dataset.from_tensor_slices(images()).map(getattr(Counter(), name))
        return dataset.filter(lambda x: str(x[0, 0]) != "").batch(6) if filtered else dataset.batch(6)

    assert_elements_equal(list(make()), list(unoptimized(make())))


@pytest.mark.parametrize("settings", [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": 2, "executor": "process"}])
def test_gives_the_same_with_a_filter_in_threads_and_in_processes(settings):
    dataset = Dataset.from_tensor_slices(images()).map(ends_in_a_call, **settings)
    dataset = dataset.filter(lambda x: str(x[0, 0]) != "").batch(6).unbatch()
    assert_elements_equal(outcomes(iter(dataset)), outcomes(iter(unoptimized(dataset))))


def test_keeps_the_contract_of_an_operator():
    check_operator(lambda: Dataset.from_tensor_slices(images()).map(fails_sometimes))


def test_explain_says_up_to_where_and_why():
    dataset = Dataset.from_tensor_slices(images()).map(ends_in_a_loop)
    line = ends_in_a_loop.__code__.co_firstlineno + 3
    assert f"on columns up to line {line}" in dataset.explain()
    (missed,) = [miss.reason for miss in optimize(dataset.plan).missed if "loop" in miss.reason]
    because = f"it contains a loop whose number of steps is not known (line {line})"
    assert missed == f"only its beginning, up to line {line}: {because}"


def test_single_calls_after_a_trial_of_columns_fill_their_own_rows_of_the_batch():
    def partly_known(x):
        if x[0, 0] > 40:
            return opaque(x)
        return x * 2

    data = np.sort(images(), axis=0)
    dataset = Dataset.from_tensor_slices(data).map(partly_known).batch(12)
    assert_elements_equal(list(dataset), list(unoptimized(dataset)))


@pytest.mark.parametrize("part", ["beginning", "rest"])
def test_a_tracer_finds_a_location_for_each_instruction_and_no_more(part):
    """With more of them, CPython writes out of bounds while a debugger or a coverage tool runs."""
    code = getattr(divided_function(parses), part)
    assert len(list(code.co_positions())) == len(code.co_code) // 2


@pytest.mark.usefixtures("no_collector")
def test_what_a_function_refers_to_is_freed_with_it():
    class Held:
        scale = np.float32(2)

    def make():
        held = Held()

        def scaled(x):
            y = x * held.scale
            return opaque(y)

        return scaled, weakref.ref(held)

    function, gone = make()
    dataset = Dataset.from_tensor_slices(images()).map(function).batch(6)
    list(dataset)
    dataset.explain()
    del function, dataset
    assert gone() is None

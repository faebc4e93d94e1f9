"""flat_map over windows: a function that only batches them is called once, and its batches are slices."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import dataset
from dataset import Dataset
from dataset.ops.interleave.window_batches import WindowFunction
from dataset.runtime.context import open_plan
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at

N = 4
UPSTREAM = {
    "source": lambda: Dataset.range(80),
    "arrays": lambda: Dataset.from_tensor_slices(np.ones((80, 3))),
    "list": lambda: Dataset.from_list([np.arange(3.0)] * 80),
    "rows": lambda: Dataset.range(80).batch(5).unbatch(),
    "computed": lambda: Dataset.range(80).map(lambda x: x * 2),
    "joined": lambda: Dataset.from_tensor_slices(np.ones((80, 3))).take(7).repeat(9),
    "windows": lambda: Dataset.range(80).window(2, 1, drop_remainder=True).flat_map(lambda window: window.batch(2)),
}
CONFIG = SimpleNamespace(size=4, nested=SimpleNamespace(drop=True))


class Settings:
    def __init__(self, size):
        self.size = size

    def stack(self, window):
        return window.batch(self.size)

    @property
    def computed(self):
        return self.size


SETTINGS = Settings(4)


def with_default(window, size=4, drop_remainder=True):
    return window.batch(size, drop_remainder)


def helper(window):
    return with_default(window, N)


def sizes_in_a_loop(window):
    size = 0
    for step in range(N):
        size += 1 if step < 3 else N - 3
    if size == N and isinstance(window, Dataset | tuple) is False:
        return window.batch(size)
    return window.batch(N)


def looped(*windows):
    batches = {}
    for n, window in enumerate(windows):
        batches["ab"[n]] = window.batch(N)
    return Dataset.zip(batches)


local = 4
BATCHING = {
    "constant": lambda window: window.batch(4),
    "global": lambda window: window.batch(N, drop_remainder=True),
    "attribute": lambda window: window.batch(CONFIG.size, CONFIG.nested.drop),
    "default": with_default,
    "helper": helper,
    "partial": functools.partial(with_default, drop_remainder=False),
    "partial method": functools.partial(Dataset.batch, batch_size=4),
    "method": SETTINGS.stack,
    "small batches": lambda window: window.batch(3),
    "zip of one": lambda window: Dataset.zip((window, window)).batch(4),
    "loop": sizes_in_a_loop,
    "of the package": lambda window: dataset.Dataset.zip((window.batch(4), window.batch(4))),
}
PAIRS = {
    "tuple": lambda x, y: Dataset.zip((x.batch(4), y.batch(4))),
    "in another order": lambda x, y: Dataset.zip({"b": y.batch(4), "a": x.batch(4)}),
    "zip, then batch": lambda x, y: Dataset.zip((x, y)).batch(4, drop_remainder=True),
    "generator": lambda *windows: Dataset.zip(tuple(window.batch(N) for window in windows)),
    "map": lambda *windows: Dataset.zip(tuple(map(with_default, windows))),
    "loop": looped,
}
DICTS = {
    "comprehension": lambda row: Dataset.zip({key: value.batch(N) for key, value in row.items()}),
    "list": lambda row: Dataset.zip(tuple([row[key].batch(CONFIG.size) for key in ("x", "y")])),
}
SHAPES = [
    {"size": 4},
    {"size": 4, "shift": 1, "drop_remainder": True},
    {"size": 4, "shift": 6},
    {"size": 5, "shift": 2, "stride": 2},
]
RESUMED = [BATCHING["constant"], BATCHING["small batches"], PAIRS["in another order"], DICTS["comprehension"]]
calls = []


def counted(function):
    """Return the function and one that is not proved, because it counts its calls."""

    @functools.wraps(function)
    def counts(*args):
        calls.append(1)
        return function(*args)

    return counts


def source(kind):
    numbers = Dataset.range(23)
    if kind == "pairs":
        return Dataset.zip((numbers, Dataset.from_tensor_slices(np.arange(46.0).reshape(23, 2))))
    if kind == "dicts":
        return numbers.map(lambda x: {"y": x, "x": np.full(2, x)})
    return numbers


CASES = [
    *((name, function, "numbers") for name, function in BATCHING.items()),
    *((f"pairs: {name}", function, "pairs") for name, function in PAIRS.items()),
    *((f"dicts: {name}", function, "dicts") for name, function in DICTS.items()),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("function", "kind"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_batches_are_those_of_the_function(function, kind, shape):
    windows = source(kind).window(**shape)
    assert WindowFunction.of(function, 4) is not None
    expected = outcomes(iter(windows.flat_map(counted(function))))
    assert_elements_equal(outcomes(iter(windows.flat_map(function))), expected)
    if shape is SHAPES[-1] and function in RESUMED:
        check_operator(lambda: windows.flat_map(function))


def test_functions_are_called_for_the_first_window_only(monkeypatch):
    made = []
    call = WindowFunction.__call__
    monkeypatch.setattr(WindowFunction, "__call__", lambda self, *args: made.append(1) or call(self, *args))
    windows = Dataset.range(100).window(4, shift=1, drop_remainder=True)
    assert len(list(windows.flat_map(lambda window: window.batch(4)).prefetch(2))) == 97
    assert len(made) == 1


def from_the_second_step_on(*windows):
    is_first = True
    for _ in windows:
        if not is_first:
            calls.append(1)
        is_first = False
    return windows[0].batch(4)


def for_each_name(row):
    names = [name for name in row]  # noqa: C416
    for name in names:
        calls.extend([name, 1])
    return row["x"].batch(4)


@pytest.mark.parametrize(
    "function",
    [
        from_the_second_step_on,
        for_each_name,
        lambda window: calls.append(1) or window.batch(4),
        lambda window: window.batch(SETTINGS.computed),
        lambda window: window.map(lambda x: x).batch(4),
        lambda window, sizes=[4]: window.batch(sizes.pop()),
        counted(lambda window: window.batch(4)),
        Settings,
        SETTINGS,
    ],
)
def test_other_functions_are_not_proved(function):
    assert WindowFunction.of(function, 4) is None


def looks_at_length(window):
    return window.batch(len(window))


def looks_for_an_element(window):
    return window.batch(2 if 5 in window else 4)


def looks_at_the_first(window):
    return window.batch(1 + window[0])


@pytest.mark.parametrize("function", [looks_at_length, looks_for_an_element, looks_at_the_first])
def test_functions_that_look_into_a_window_are_called_for_each(function):
    windows = Dataset.range(11).window(4, shift=3)
    expected = outcomes(iter(windows.flat_map(counted(function))))
    assert_elements_equal(outcomes(iter(windows.flat_map(function))), expected)


def test_what_a_function_reads_may_change_at_any_time():
    settings = Settings(4)
    size = 4

    def rebound(window):
        return window.batch(size)

    for function in (settings.stack, lambda window: window.batch(settings.size), rebound):
        settings.size = size = 4
        numbers = Dataset.range(40).map(lambda x: calls.append(1) or x)  # so that no window is taken ahead
        iterator = iter(numbers.window(4).flat_map(function))
        assert [len(next(iterator)) for _ in range(3)] == [4, 4, 4]
        settings.size = size = 2
        assert [len(batch) for batch in iterator] == [2] * 14
        iterator.close()


@pytest.mark.parametrize("bad", [(0,), (5, 6), (3, 11)], ids=str)
def test_failures_stay_in_their_places(bad):
    windows = Dataset.range(12).map(fail_at(*bad)).window(3, shift=2)
    expected = outcomes(iter(windows.flat_map(counted(lambda window: window.batch(3)))))
    assert list(map(str, outcomes(iter(windows.flat_map(lambda window: window.batch(3)))))) == list(map(str, expected))
    check_operator(lambda: windows.flat_map(lambda window: window.batch(3)))


def test_windows_that_cannot_be_stacked_fail_in_their_places():
    rows = Dataset.range(12).map(lambda x: np.zeros(2 if x == 5 else 1)).window(3)
    expected = outcomes(iter(rows.flat_map(counted(lambda window: window.batch(3)))))
    found = check_operator(lambda: rows.flat_map(lambda window: window.batch(3)))
    assert [type(one) for one in found] == [type(one) for one in expected]
    assert_elements_equal([*found[:1], *found[2:]], [*expected[:1], *expected[2:]])


def test_requests_no_more_than_is_needed():
    def batches(numbers):
        return numbers.window(3, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(3))

    check_laziness(batches, lambda k: k and 2 * k + 1)
    check_laziness(lambda numbers: numbers.window(4).flat_map(lambda window: window.batch(2)), lambda k: 4 * -(-k // 2))


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_large_pulls_and_pulls_of_parts_of_windows_give_the_same(size):
    windows = Dataset.range(50).window(6, shift=3)
    same = windows.flat_map(counted(lambda window: window.batch(4))).padded_batch(size)
    check_operator(lambda: windows.flat_map(lambda window: window.batch(4)).padded_batch(size), list(same))


def test_no_window_is_taken_ahead_of_user_code_or_of_a_function_that_is_not_known():
    calls = []
    numbers = Dataset.range(40).map(lambda x: calls.append(int(x)) or x)
    windows = iter(numbers.window(4, drop_remainder=True).flat_map(lambda window: window.batch(4)))
    for count in range(1, 8):
        next(windows)
        assert len(calls) <= 4 * count
    opened = []
    windows = iter(Dataset.range(40).window(4).flat_map(lambda window: opened.append(1) or window.batch(4)))
    for count in range(1, 8):
        next(windows)
        assert len(opened) == count


@pytest.mark.parametrize("upstream", UPSTREAM)
@pytest.mark.parametrize(
    "function", [lambda w: w.batch(4), lambda w: w.batch(3), lambda w: Dataset.zip((w, w)).batch(4)]
)
def test_batches_are_writable_or_not_however_many_are_requested(upstream, function):
    found = []
    for requested in (1, 2, 7, 100):
        coordinator, root = open_plan(UPSTREAM[upstream]().window(4, 3).flat_map(function).plan)
        flags = []
        while (chunk := root.pull(requested)) is not None:
            flags += [array.flags.writeable for column in chunk.columns() for array in column]
        coordinator.shut_down(root.close, wait=True)
        found.append(sorted(flags))
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("upstream", ["source", "arrays", "joined"])
def test_a_state_between_windows_that_were_taken_together_continues_there(upstream):
    check_operator(lambda: UPSTREAM[upstream]().take(40).window(4, 3).flat_map(lambda window: window.batch(4)))

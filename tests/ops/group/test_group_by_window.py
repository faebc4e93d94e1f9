"""group_by_window: what a function makes of elements with one key."""

import dataclasses
import enum
import gc
import weakref

import numpy as np
import pytest

import dataset as library
from dataset import Dataset, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.combinations import diagonals
from support.op_cases import fail_at, ints


def grouped(dataset, *, keys=3, size=2, **options):
    return dataset.group_by_window(lambda x: x % keys, lambda key, window: window.batch(100), size, **options)


def model(values, keys, size):
    """The windows that must come out, as lists."""
    groups, found = {}, []
    for value in values:
        group = groups.setdefault(value % keys, [])
        group.append(value)
        if len(group) == size:
            found.append(groups.pop(value % keys))
    return found + [groups[key] for key in sorted(groups)]


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
@pytest.mark.parametrize("keys", [1, 2, 3, 50])
def test_gives_windows_as_they_get_full_and_the_rest_by_key(keys, size):
    for count in (0, 1, 40):
        found = list(grouped(Dataset.range(count), keys=keys, size=size))
        assert [window.tolist() for window in found] == model(range(count), keys, size)
    if size == 5:
        check_operator(lambda: grouped(Dataset.range(40), keys=keys, size=size))


def test_takes_no_more_than_fills_a_window():
    def groups(keys, size):
        return lambda numbers: numbers.group_by_window(lambda x: x % keys, lambda key, w: w.batch(size), size)

    check_laziness(groups(1, 4), lambda k: 4 * k)
    check_laziness(groups(2, 4), lambda k: [0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48][k] if k < 13 else 51)
    called = []

    def key(x):
        called.append(int(x))
        return x % 2

    iterator = iter(Dataset.range(100).group_by_window(key, lambda key, w: w, 3))
    assert called == []
    assert_elements_equal([next(iterator) for _ in range(3)], ints(0, 2, 4))
    assert called == [0, 1, 2, 3, 4]
    next(iterator)
    assert called == [0, 1, 2, 3, 4, 5]


def test_several_elements_of_a_window_and_none():
    check_operator(
        lambda: Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.skip(key).repeat(2), 3),
        ints(0, 2, 4, 0, 2, 4, 3, 5, 3, 5, 6, 6),
    )
    check_operator(lambda: Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.skip(9), 3), [])
    check_operator(lambda: Dataset.range(9).group_by_window(lambda x: x, lambda key, w: Dataset.range(2), 1).take(3))


def test_endless_data_and_endless_windows():
    endless = grouped(Dataset.range(4).repeat())
    assert endless.cardinality() == -1
    check_operator(lambda: grouped(Dataset.range(4).repeat()).take(5))
    check_operator(lambda: Dataset.range(9).group_by_window(lambda x: x, lambda key, w: w.repeat(), 1).take(4))


def test_a_window_is_resumed_through_random_orders_inside():
    def reduce(key, window):
        return window.shuffle(4, seed=int(key)).batch(2)

    check_operator(lambda: Dataset.range(30).group_by_window(lambda x: x % 3, reduce, 5))


def test_window_size_func_is_asked_once_for_each_key():
    asked = []

    def size(key):
        asked.append(int(key))
        return int(key) + 1

    dataset = Dataset.range(12).group_by_window(lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=size)
    assert [window.tolist() for window in dataset] == [[0], [3], [1, 4], [6], [2, 5, 8], [9], [7, 10], [11]]
    assert asked == [0, 1, 2]
    check_operator(
        lambda: Dataset.range(12).group_by_window(lambda x: x % 3, lambda key, w: w.batch(9), None, lambda key: key + 1)
    )


def test_takes_keys_of_every_integer_type():
    for kind in (int, np.int8, np.uint16, np.int64, np.uint64, np.array):
        windows = Dataset.range(4).group_by_window(lambda x, kind=kind: kind(x % 2), lambda key, w: w.batch(9), 2)
        assert_elements_equal(list(windows), [np.array([0, 2]), np.array([1, 3])])
    seen = []
    list(Dataset.range(2).group_by_window(int, lambda key, w: seen.append(key) or w, 1))
    assert_elements_equal(seen, ints(0, 1))


@library.vectorized
def vectorized_key(x):
    return x % 3


def test_takes_a_vectorized_key_function():
    expected = [np.array(window) for window in model(range(20), 3, 4)]
    check_operator(lambda: Dataset.range(20).group_by_window(vectorized_key, lambda key, w: w.batch(9), 4), expected)

    @library.vectorized
    def bad(x):
        return x / 2

    found = outcomes(iter(Dataset.range(2).group_by_window(bad, lambda key, w: w, 2)))
    assert [type(one) for one in found] == [SpecError] * 2
    assert "a vectorized key_func must return 1 ints" in str(found[0])


@pytest.mark.parametrize("value", [2.5, True, np.bool_(True), "1", None, np.zeros(1, np.int64), (1, 2), [1]], ids=repr)
def test_a_key_that_is_no_int_fails_in_the_place_of_its_element(value):
    def key(x):
        return value if x == 1 else int(x % 2)

    found = check_operator(lambda: Dataset.range(5).group_by_window(key, lambda key, w: w.batch(9), 2))
    assert [one.tolist() for one in (found[0:1] + found[2:]) if not isinstance(one, Exception)]
    (error,) = [one for one in found if isinstance(one, Exception)]
    assert isinstance(error, SpecError)
    assert "group_by_window(" in str(error)
    assert "key_func must return an int, got" in str(error)
    assert error.__notes__[0].endswith("element 1")


def test_a_window_size_that_is_no_size_fails_in_the_place_of_its_element():
    for size, kind, text in ((2.0, SpecError, "must return an int, got 2.0"), (0, ValueError, "at least 1, got 0")):
        found = check_operator(
            lambda size=size: Dataset.range(4).group_by_window(
                lambda x: x % 2, lambda key, w: w.batch(9), window_size_func=lambda key: 2 if key else size
            )
        )
        assert [type(one) for one in found] == [kind, kind, np.ndarray]
        assert text in str(found[0])
        assert found[1].__notes__[0].endswith("element 2")


@pytest.mark.parametrize(
    ("bad", "size"), diagonals(3, [(0,), (4,), (11,), (3, 4, 5), tuple(range(12))], [1, 3, 50]), ids=str
)
def test_failures_of_the_input_and_of_the_key_function_cost_one_element(size, bad):
    good = [x for x in range(12) if x not in bad]
    expected = model(good, 3, size)

    def key(x):
        return fail_at(*bad)(x) % 3

    def in_the_input():
        return grouped(Dataset.range(12).map(fail_at(*bad)), size=size)

    def in_the_function():
        return Dataset.range(12).group_by_window(key, lambda key, w: w.batch(99), size)

    for make in (in_the_input, in_the_function):
        found = check_operator(make)
        assert [window.tolist() for window in found if not isinstance(window, Exception)] == expected
        assert [str(error) for error in found if isinstance(error, Exception)] == [f"bad {x}" for x in bad]


def test_no_function_can_end_the_iteration():
    def stop(*_):
        raise StopIteration

    whole = (lambda x: x % 2, lambda key, w: w.batch(9), None, lambda key: 2)
    for index in (0, 1, 3):
        arguments = tuple(stop if i == index else argument for i, argument in enumerate(whole))
        found = outcomes(iter(Dataset.range(4).group_by_window(*arguments)))
        assert {type(one) for one in found} == {RuntimeError}
        assert "raised StopIteration" in str(found[0])


@pytest.mark.parametrize("index", [0, 1, 3])
def test_an_exception_that_came_out_does_not_hold_the_iterator(index):
    functions = (lambda x: x % 2, lambda key, w: w.batch(9), None, lambda key: 2)
    failing = tuple(fail_at(*range(9)) if i == index else function for i, function in enumerate(functions))
    if index == 1:
        failing = (failing[0], lambda key, w: fail_at(0, 1)(key), None, failing[3])
    gc.disable()
    try:
        iterator = iter(Dataset.range(9).group_by_window(*failing))
        with pytest.raises(ValueError, match="bad 0"):
            next(iterator)
        gone = weakref.ref(iterator)
        del iterator
        assert gone() is None
    finally:
        gc.enable()


def test_an_element_that_fails_inside_a_window_costs_that_element():
    found = check_operator(
        lambda: Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.map(fail_at(2, 3, 6)), 2),
    )
    expected = [*ints(0), ValueError("bad 2"), *ints(1), ValueError("bad 3"), *ints(4), ValueError("bad 6"), *ints(5)]
    assert_elements_equal(found, expected)


def test_a_reduce_function_that_fails_costs_the_window():
    def reduce(key, window):
        if key == 1:
            raise ValueError(f"bad {len(window)}")
        return window.batch(9)

    found = check_operator(lambda: Dataset.range(8).group_by_window(lambda x: x % 3, reduce, 2))
    expected = [np.array([0, 3]), ValueError("bad 2"), np.array([2, 5]), np.array([6]), ValueError("bad 1")]
    assert_elements_equal(found, expected)
    assert found[1].__notes__[0].endswith(", window 1")

    found = check_operator(lambda: Dataset.range(2).group_by_window(lambda x: x, lambda key, w: (w, w), 1))
    assert [type(one) for one in found] == [TypeError] * 2
    assert "group_by_window(): the function must return a Dataset, got (" in str(found[0])


@dataclasses.dataclass
class Sample:
    key: object
    row: object


def test_takes_every_structure():
    for build in (
        lambda x: (x % 3, np.full(2, x), None),
        lambda x: {"key": x % 3, "text": b"\0" * int(x)},
        lambda x: Sample(x % 3, np.full(int(x), x)),
    ):

        def key(*element):
            first = element[0]
            return first["key"] if isinstance(first, dict) else getattr(first, "key", first)

        def make(build=build, key=key):
            return Dataset.range(11).map(build).group_by_window(key, lambda key, window: window, 3)

        found = check_operator(make)
        assert len(found) == 11


def test_arrays_in_a_window_are_read_only():
    rows = Dataset.range(6).map(lambda x: np.full(3, x))
    found = list(rows.group_by_window(lambda row: row[0] % 2, lambda key, w: w.concatenate(w), 2))
    assert len(found) == 12
    assert not any(row.flags.writeable for row in found)


@pytest.mark.parametrize("size", [1023, 1024, 1025, 2500, 10**15])
def test_large_windows(size):
    for dataset in (Dataset.range(5000), Dataset.range(5000).map(fail_at())):
        found = [
            window.tolist() for window in grouped(dataset, keys=2, size=size).map(lambda w: w).unbatch().batch(10**4)
        ]
        windows = model(range(5000), 2, size)
        assert found == [[x for window in windows for x in window]]
    check_laziness(
        lambda numbers: numbers.group_by_window(lambda x: x % 2, lambda _, w: w.batch(10**4), size),
        lambda k: size * (k + k % 2) - k % 2,
        size=3000,
    )


def test_many_keys():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10_000, 3000)
    dataset = grouped(Dataset.from_tensor_slices(values), keys=700, size=4)
    assert [window.tolist() for window in dataset] == model(values.tolist(), 700, 4)
    assert [w.tolist() for w in dataset.prefetch(9)] == model(values.tolist(), 700, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, lambda key, w: w, 2), r"key_func must be a function, got 1"),
        ((lambda x: x, 1, 2), r"reduce_func must be a function"),
        ((lambda x: x, lambda key, w: w), r"pass either window_size or window_size_func, not both"),
        ((lambda x: x, lambda key, w: w, 2, lambda key: 2), r"pass either window_size or window_size_func, not both"),
        ((lambda x: x, lambda key, w: w, 0), r"window_size must be at least 1, got 0"),
        ((lambda x: x, lambda key, w: w, 2.0), r"window_size must be an int, got 2.0 of type float"),
        ((lambda x: x, lambda key, w: w, None, 2), r"window_size_func must be a function"),
    ],
)
def test_refuses_arguments_at_once(arguments, message):
    with pytest.raises((TypeError, ValueError), match=rf"group_by_window\(\): {message}"):
        Dataset.range(3).group_by_window(*arguments)


def test_knows_its_spec_by_running_and_its_cardinality_hardly_ever():
    dataset = Dataset.range(5).group_by_window(lambda x: x % 2, lambda key, w: w.map(lambda x: (key, x)), 2)
    assert dataset.element_spec == (library.TensorSpec((), np.int64),) * 2
    assert dataset.cardinality() == -2
    assert "group_by_window(<lambda>, <lambda>)" in repr(dataset)


def test_an_element_that_waits_does_not_hold_those_that_came_with_it():
    alive = []

    def make(x):
        array = np.repeat(np.arange(100), 10).reshape(100, 10).copy()
        alive.append(weakref.ref(array))
        return array

    # One row in a hundred has a key of its own, whose window does not get full.
    rows = Dataset.range(20).map(make).unbatch()
    iterator = iter(rows.group_by_window(lambda row: int(row[0] == 50), lambda _, window: window.batch(99), 99))
    for _ in range(15):
        next(iterator)
    assert len(alive) >= 15
    assert sum(ref() is not None for ref in alive) <= 3


def test_a_key_that_a_function_keeps_and_changes_is_taken_at_once():
    buffer = np.zeros((), np.int64)

    def key(x):
        buffer[...] = x % 2
        return buffer

    check_operator(
        lambda: Dataset.range(6).group_by_window(key, lambda _, window: window.batch(9), 3),
        [
            np.array([0, 2, 4]),
            np.array([1, 3, 5]),
        ],
    )


class Kind(enum.IntEnum):
    EVEN, ODD = 0, 1


def test_keys_of_unusual_types():
    for kind in (np.uint64, Kind, np.longlong):
        found = list(Dataset.range(6).group_by_window(lambda x, kind=kind: kind(x % 2), lambda _, w: w.batch(9), 3))
        assert_elements_equal(found, [np.array([0, 2, 4]), np.array([1, 3, 5])])


@pytest.mark.parametrize("bad", [2**63, np.uint64(2**63), 2**80, np.timedelta64(1, "s")], ids=repr)
def test_a_key_beyond_64_bits_or_of_time_fails_in_its_place(bad):
    for source in (Dataset.range(9), Dataset.range(9).map(fail_at(), num_parallel_calls=None)):
        dataset = source.group_by_window(lambda x: bad if x == 4 else int(x % 2), lambda _, w: w.batch(9), 4)
        found = outcomes(iter(dataset))
        (error,) = [one for one in found if isinstance(one, Exception)]
        assert error.__notes__[0].endswith("element 4")
        assert sorted(x for one in found if one is not error for x in one.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize("sizes", [(1, 7), (2, 3), (40, 50)])
def test_window_size_func_with_inputs_read_ahead(sizes):
    values = np.random.default_rng(3).integers(0, 9, 200)
    asked, keyed = [], []

    def size_of(key):
        asked.append(int(key))
        return sizes[int(key) % 2]

    def key_of(x):
        keyed.append(int(x))
        return x % 4

    dataset = Dataset.from_tensor_slices(values).group_by_window(key_of, lambda _, w: w.batch(99), None, size_of)
    groups, expected, counts = {}, [], []
    for count, value in enumerate(values.tolist(), 1):
        group = groups.setdefault(value % 4, [])
        group.append(value)
        if len(group) == sizes[value % 2]:
            expected.append(groups.pop(value % 4))
            counts.append(count)
    iterator = iter(dataset)
    for window, count in zip(expected, counts, strict=True):
        assert next(iterator).tolist() == window
        assert keyed == values[:count].tolist()
        assert sorted(asked) == sorted(set((values[:count] % 4).tolist()))
    assert [window.tolist() for window in iterator] == [groups[key] for key in sorted(groups)]
    check_operator(
        lambda: Dataset.from_tensor_slices(values[:60]).group_by_window(
            lambda x: x % 4, lambda _, w: w.batch(99), None, lambda key: sizes[int(key) % 2]
        ),
        positions=8,
    )


def test_a_window_size_that_fails_loses_only_its_element():
    def size(key):
        if key == 1:
            raise ValueError("no size")
        return 2

    dataset = Dataset.range(9).group_by_window(lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=size)
    found = [x for x in outcomes(iter(dataset)) if not isinstance(x, Exception)]
    assert sorted(x.tolist() for x in found) == [[0, 3], [2, 5], [6], [8]]
    assert len(found) == len(outcomes(iter(dataset))) - 3

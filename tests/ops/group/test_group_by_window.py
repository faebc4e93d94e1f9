"""group_by_window: what a function returns for the elements with one key. tests/oracle compares groups and failures."""

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


def batched(_, window):
    return window.batch(10**4)


def itself(_, window):
    return window


def grouped(dataset, *, keys=3, size=2):
    return dataset.group_by_window(lambda x: x % keys, batched, size)


def as_lists(found):
    return [window.tolist() for window in found if not isinstance(window, Exception)]


def model(values, keys, size_of):
    """The windows that must be returned, as lists, and how many elements each needs."""
    groups, found, counts = {}, [], []
    for count, value in enumerate(values, 1):
        group = groups.setdefault(value % keys, [])
        group.append(value)
        if len(group) == size_of(value % keys):
            found.append(groups.pop(value % keys))
            counts.append(count)
    return found + [groups[key] for key in sorted(groups)], counts


def windows(values, keys, size):
    return model(values, keys, lambda key: size)[0]


def test_takes_no_more_than_fills_a_window():
    def groups(keys, size):
        return lambda numbers: numbers.group_by_window(lambda x: x % keys, lambda key, w: w.batch(size), size)

    check_laziness(groups(1, 4), lambda k: 4 * k)
    check_laziness(groups(2, 4), lambda k: [0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48][k] if k < 13 else 51)


@library.vectorized
def vectorized_key(x):
    return x % 3


def test_takes_a_vectorized_key_function():
    expected = [np.array(window) for window in windows(range(20), 3, 4)]
    check_operator(lambda: Dataset.range(20).group_by_window(vectorized_key, batched, 4), expected)

    @library.vectorized
    def bad(x):
        return x / 2

    found = outcomes(iter(Dataset.range(2).group_by_window(bad, itself, 2)))
    assert [type(one) for one in found] == [SpecError] * 2
    assert "a vectorized key_func must return 1 ints" in str(found[0])


class Kind(enum.IntEnum):
    EVEN, ODD = 0, 1


@pytest.mark.parametrize("kind", [int, np.int8, np.uint64, np.longlong, np.array, Kind])
def test_takes_keys_of_every_integer_type_and_passes_int64(kind):
    seen = []
    dataset = Dataset.range(6).group_by_window(lambda x: kind(x % 2), lambda key, w: seen.append(key) or w.batch(9), 3)
    assert_elements_equal(list(dataset), [np.array([0, 2, 4]), np.array([1, 3, 5])])
    assert_elements_equal(seen, ints(0, 1))


def test_a_key_that_the_function_keeps_and_changes_is_copied():
    buffer = np.zeros((), np.int64)

    def key(x):
        buffer[...] = x % 2
        return buffer

    expected = [np.array([0, 2, 4]), np.array([1, 3, 5])]
    check_operator(lambda: Dataset.range(6).group_by_window(key, batched, 3), expected)


NO_KEYS = [2.5, True, None, np.zeros(1, np.int64), (1, 2), np.timedelta64(1, "s")]
NO_KEY = "key_func must return an int, got"


@pytest.mark.parametrize(("value", "words"), [*((value, NO_KEY) for value in NO_KEYS), (2**63, "too large")], ids=repr)
def test_a_key_that_is_not_an_int_of_64_bits_fails_in_the_place_of_its_element(value, words):
    found = check_operator(
        lambda: Dataset.range(5).group_by_window(lambda x: value if x == 1 else int(x % 2), batched, 2)
    )
    assert as_lists(found) == [[0, 2], [4], [3]]
    assert words in str(found[0])
    assert found[0].__notes__[0].endswith("element 1")


@pytest.mark.parametrize(
    ("bad", "size"), diagonals(3, [(0,), (4,), (11,), (3, 4, 5), tuple(range(12))], [1, 3, 50]), ids=str
)
def test_failures_of_the_input_and_of_the_key_function_drop_one_element(size, bad):
    for dataset in (
        grouped(Dataset.range(12).map(fail_at(*bad)), size=size),
        Dataset.range(12).group_by_window(lambda x: fail_at(*bad)(x) % 3, batched, size),
    ):
        found = check_operator(lambda dataset=dataset: dataset, positions=12)
        assert as_lists(found) == windows([x for x in range(12) if x not in bad], 3, size)
        assert [str(error) for error in found if isinstance(error, Exception)] == [f"bad {x}" for x in bad]


@pytest.mark.parametrize(
    ("size", "kind", "text"), [(2.0, SpecError, "must return an int, got 2.0"), (0, ValueError, "at least 1, got 0")]
)
def test_a_wrong_window_size_fails_in_the_place_of_its_element(size, kind, text):
    found = outcomes(
        iter(Dataset.range(4).group_by_window(lambda x: x % 2, batched, None, lambda key: 2 if key else size))
    )
    assert [type(one) for one in found] == [kind, kind, np.ndarray]
    assert text in str(found[0])
    assert found[1].__notes__[0].endswith("element 2")


@pytest.mark.parametrize("index", [0, 1, 3])
def test_no_function_can_end_the_iteration_or_keep_the_iterator_alive(index):
    def failing(fail):
        return [fail if i == index else f for i, f in enumerate((lambda x: x % 2, batched, None, lambda key: 2))]

    def stop(*_):
        raise StopIteration

    found = outcomes(iter(Dataset.range(4).group_by_window(*failing(stop))))
    assert {type(one) for one in found} == {RuntimeError}
    assert "raised StopIteration" in str(found[0])
    gc.disable()
    try:
        iterator = iter(Dataset.range(9).group_by_window(*failing(lambda x, _=None: fail_at(*range(9))(x))))
        with pytest.raises(ValueError, match="bad 0"):
            next(iterator)
        gone = weakref.ref(iterator)
        del iterator
        assert gone() is None
    finally:
        gc.enable()


def test_what_the_function_returns_must_be_a_dataset():
    found = outcomes(iter(Dataset.range(2).group_by_window(lambda x: x, lambda key, w: (w, w), 1)))
    assert [type(one) for one in found] == [TypeError] * 2
    assert "group_by_window(): the function must return a Dataset, got (" in str(found[0])
    assert found[0].__notes__[0].endswith(", window 0")


def test_arrays_in_a_window_are_read_only():
    rows = Dataset.range(6).map(lambda x: np.full(3, x))
    found = list(rows.group_by_window(lambda row: row[0] % 2, lambda key, w: w.concatenate(w), 2))
    assert len(found) == 12
    assert not any(row.flags.writeable for row in found)


@pytest.mark.parametrize("size", [1, 5, 1023, 1024, 2500, 10**15])
def test_small_and_large_windows(size):
    for dataset in (Dataset.range(5000), Dataset.range(5000).map(fail_at())):
        assert as_lists(grouped(dataset, keys=2, size=size)) == windows(range(5000), 2, size)
    many = min(3000, 9 * size)
    check_laziness(lambda numbers: grouped(numbers, keys=2, size=size), lambda k: size * (k + k % 2) - k % 2, size=many)


@pytest.mark.parametrize("sizes", [(1, 7), (2, 3), (40, 50)])
def test_window_size_func_is_called_once_for_each_key_although_inputs_are_read_ahead(sizes):
    values = np.random.default_rng(3).integers(0, 9, 200)
    asked, keyed = [], []

    def size_of(key):
        asked.append(int(key))
        return sizes[int(key) % 2]

    def key_of(x):
        keyed.append(int(x))
        return x % 4

    expected, counts = model(values.tolist(), 4, lambda key: sizes[key % 2])
    iterator = iter(Dataset.from_tensor_slices(values).group_by_window(key_of, batched, None, size_of))
    for window, count in zip(expected, counts, strict=False):
        assert next(iterator).tolist() == window
        assert keyed == values[:count].tolist()
        assert sorted(asked) == sorted(set((values[:count] % 4).tolist()))
    assert as_lists(iterator) == expected[len(counts) :]


def test_an_element_that_waits_does_not_keep_those_returned_with_it_alive():
    alive = []

    def make(x):
        array = np.repeat(np.arange(100), 10).reshape(100, 10).copy()
        alive.append(weakref.ref(array))
        return array

    # One row in a hundred has a key of its own, whose window does not become full.
    rows = Dataset.range(20).map(make).unbatch()
    iterator = iter(rows.group_by_window(lambda row: int(row[0] == 50), lambda _, window: window.batch(99), 99))
    for _ in range(15):
        next(iterator)
    assert len(alive) >= 15
    assert sum(ref() is not None for ref in alive) <= 3

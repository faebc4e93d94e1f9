"""Tests of group_by_window against tf.data's."""

from cases import check
from compare import refused, same


def groups(lib, modulus=2, reduce=lambda key, window: window.batch(2), size=2, *, data=None, **options):
    """Return the numbers below 7, or ``data``, in groups by their remainder."""
    data = lib.range(7) if data is None else data
    return data.group_by_window(lambda x: x % modulus, reduce, size, **options)


def sized(lib, data, size_of):
    return data.group_by_window(lambda x: x % 3, lambda key, w: w.batch(9), window_size_func=size_of)


def nine(key, window):
    return window.batch(9)


CASES = {
    "batches": lambda lib: groups(lib, 3, data=lib.range(10)),
    "smaller batches": lambda lib: groups(lib, 3, size=5, data=lib.range(20)),
    "windows of one": lambda lib: groups(lib, 2, lambda key, w: w.batch(3), 1, data=lib.range(5)),
    "larger than the data": lambda lib: groups(lib, 2, nine, 100, data=lib.range(5)),
    "one key": lambda lib: lib.range(7).group_by_window(lambda x: x * 0 + 7, nine, 3),
    "left in the order of keys": lambda lib: lib.range(6).group_by_window(lambda x: 2 - x, nine, 2),
    "large keys": lambda lib: lib.range(3).group_by_window(lambda x: (x % 2 * 2 - 1) * (2**62), nine, 2),
    "keys that come again": lambda lib: lib.range(6).repeat(2).group_by_window(lambda x: x // 2, nine, 2),
    "the key": lambda lib: groups(lib, 2, lambda key, w: w.map(lambda x: (key, x))),
    "nothing": lambda lib: groups(lib, 2, lambda key, w: w.skip(9)),
    "more than there was": lambda lib: groups(lib, 2, lambda key, w: w.repeat(3)),
    "twice the window": lambda lib: groups(lib, 2, lambda key, w: w.concatenate(w.skip(1)), 3),
    "neighbours": lambda lib: groups(lib, 2, lambda key, w: lib.zip(w, w.skip(1)), 3),
    "endless inside": lambda lib: groups(lib, 2, lambda key, w: w.repeat(), 3),
    "endless": lambda lib: groups(lib, data=lib.range(3).repeat()),
    "empty": lambda lib: groups(lib, data=lib.range(0)),
    "tuples": lambda lib: lib.zip(lib.range(5), {"a": lib.range(5, 10)}).group_by_window(
        lambda x, rest: (x + rest["a"]) % 3, lambda key, w: w.batch(2), 2
    ),
    "arrays": lambda lib: (
        lib.range(9).batch(2).group_by_window(lambda row: row[0] % 3, lambda key, w: w.padded_batch(2), 2)
    ),
    "windows": lambda lib: (
        lib.range(9)
        .window(2)
        .group_by_window(lambda window: window.cardinality(), lambda key, w: w.flat_map(lambda one: one).batch(4), 2)
    ),
    "a size for each key": lambda lib: sized(lib, lib.range(20), lambda key: key + 1),
    "a size that is too small": lambda lib: sized(lib, lib.range(12), lambda key: key),
    "a number for a size function": lambda lib: sized(lib, lib.range(12), lambda key: 2),
    "a size that fails, and is asked for again": lambda lib: sized(
        lib, lib.range(9), lambda key: check(lib, 1)(key) * 0 + 2
    ),
}
test_groups = same(CASES, limit=20, spec=lambda name: "any" if name in {"empty", "nothing"} else "compatible")
FAILING = {
    "in the input": lambda lib, size, bad: groups(lib, 2, nine, size, data=lib.range(9).map(check(lib, *bad))),
    "in key_func": lambda lib, size, bad: lib.range(9).group_by_window(lambda x: check(lib, *bad)(x) % 2, nine, size),
    "in what comes out": lambda lib, size, bad: groups(
        lib, 4, lambda key, w: w.map(check(lib, *bad)), size, data=lib.range(9)
    ),
    "in window_size_func": lambda lib, size, bad: lib.range(9).group_by_window(
        lambda x: x, nine, window_size_func=lambda key: check(lib, *bad)(key) * 0 + size
    ),
}
test_failures = same(FAILING, [1, 2, 3, 20], [(0,), (3,), (8,), (3, 4, 5), (0, 8)], spec="compatible")
WRONG_VALUES = [{}, {"window_size": 2, "window_size_func": abs}, {"window_size": 0}, {"window_size": -1}]
test_what_is_no_window_size = refused(
    {ValueError: WRONG_VALUES, TypeError: [{"window_size": 2.0}, {"window_size": "2"}, {"window_size_func": 2}]},
    lambda lib, arguments: lib.range(5).group_by_window(lambda x: x % 2, nine, **arguments),
)

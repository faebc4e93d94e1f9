"""Tests of group_by_window against tf.data's."""

from compare import refused, same


def groups(lib, modulus=2, reduce=lambda key, window: window.batch(2), size=2, *, data=None, **options):
    """Return the numbers below 7, or ``data``, in groups by their remainder."""
    data = lib.range(7) if data is None else data
    return data.group_by_window(lambda x: x % modulus, reduce, size, **options)


def sized(lib, size, size_of):
    return lib.range(size).group_by_window(lambda x: x % 3, nine, window_size_func=size_of)


def nine(key, window):
    return window.batch(9)


CASES = {
    "batches": "groups(3, data=range(10))",
    "smaller batches": "groups(3, size=5, data=range(20))",
    "windows of one": "groups(2, nine, 1)",
    "larger than the data": "groups(2, nine, 100)",
    "one key": "range(7).group_by_window(lambda x: x * 0 + 7, nine, 3)",
    "left in the order of keys": "range(6).group_by_window(lambda x: 2 - x, nine, 2)",
    "large keys": "range(3).group_by_window(lambda x: (x % 2 * 2 - 1) * (2**62), nine, 2)",
    "keys that come again": "range(6).repeat(2).group_by_window(lambda x: x // 2, nine, 2)",
    "the key": "groups(2, lambda key, w: w.map(lambda x: (key, x)))",
    "nothing": "groups(2, lambda key, w: w.skip(9))",
    "more than there was": "groups(2, lambda key, w: w.repeat(3))",
    "twice the window": "groups(2, lambda key, w: w.concatenate(w.skip(1)), 3)",
    "neighbours": "groups(2, lambda key, w: zip(w, w.skip(1)), 3)",
    "endless inside": "groups(2, lambda key, w: w.repeat(), 3)",
    "endless": "groups(data=range(3).repeat())",
    "empty": "groups(data=range(0))",
    "tuples": "zip(range(5), {'a': range(5, 10)}).group_by_window(lambda x, rest: (x + rest['a']) % 3, nine, 2)",
    "arrays": "range(9).batch(2).group_by_window(lambda row: row[0] % 3, lambda key, w: w.padded_batch(2), 2)",
    "windows": "range(9).window(2).group_by_window(lambda w: w.cardinality(), lambda n, w: w.flat_map(lambda x: x), 2)",
    "a size for each key": "sized(20, lambda key: key + 1)",
    "a size that is too small": "sized(12, lambda key: key)",
    "a number for a size function": "sized(12, lambda key: 2)",
    "a size that fails, and is asked for again": "sized(9, lambda key: check(1)(key) * 0 + 2)",
}
test_groups = same(CASES, limit=20, spec=lambda name: "any" if name in {"empty", "nothing"} else "compatible")
test_failures = same(
    {
        "in the input": "groups(2, nine, size, data=range(9).map(check(*bad)))",
        "in key_func": "range(9).group_by_window(lambda x: check(*bad)(x) % 2, nine, size)",
        "in what comes out": "groups(4, lambda key, w: w.map(check(*bad)), size, data=range(9))",
        "in window_size_func": "sized(9, lambda key: check(*bad)(key) * 0 + size)",
    },
    size=[1, 2, 3, 20],
    bad=[(0,), (3,), (8,), (3, 4, 5), (0, 8)],
    spec="compatible",
)
WRONG_VALUES = [{}, {"window_size": 2, "window_size_func": abs}, {"window_size": 0}, {"window_size": -1}]
WRONG_TYPES = [{"window_size": 2.0}, {"window_size": "2"}, {"window_size_func": 2}]
test_what_is_no_window_size = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES}, "range(5).group_by_window(lambda x: x % 2, nine, **case)"
)

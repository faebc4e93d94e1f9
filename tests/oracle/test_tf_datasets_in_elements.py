"""Tests of datasets as components, with every method that supports them, against tf.data's."""

from compare import programs, refused, same

WINDOWS = programs(windows="range(7).window(3)")["windows"]
PAIRS = programs(pairs="zip(range(5), (range(5, 10), range(5))).window(2, shift=1)")["pairs"]


def total(lib, window):
    return window.reduce(lib.const(0, "int64"), lambda a, b: a + b)


MADE_BY_MAP = {
    "one": "range(4).map(range)",
    "beside others": "range(3).map(lambda x: (x, range(x)))",
    "in a list": "range(3).map(lambda x: [x, range(x)])",
    "in a dict": "range(3).map(lambda x: {'b': x, 'a': range(x)})",
    "that fails inside": "range(1, 4).map(lambda x: range(x).map(check(1)))",
    "the very windows": "WINDOWS.map(lambda window: window)",
    "two of a window": "WINDOWS.map(lambda window: (window, window.skip(1)))",
    "in parallel": "WINDOWS.map(lambda window: window.batch(2), num_parallel_calls=2)",
    "of datasets": "WINDOWS.map(lambda window: window.window(2))",
}
TAKEN_APART = {
    "flat_map": "WINDOWS.flat_map(lambda window: window)",
    "with a number": "zip(WINDOWS, range(3)).flat_map(lambda window, x: window.map(lambda y: (x, y)))",
    "zip of a tuple": "PAIRS.flat_map(lambda a, b: zip((a, b)))",
    "zip of batches": "PAIRS.flat_map(lambda a, b: zip(a.batch(2), b[0].batch(2), b[1].batch(2)))",
    "interleave": "WINDOWS.interleave(lambda window: window, cycle_length=2)",
    "interleave blocks": "WINDOWS.interleave(lambda w: w.repeat(2), cycle_length=2, block_length=2)",
    "twice": "WINDOWS.window(2).flat_map(lambda outer: outer.flat_map(lambda inner: inner))",
    "of a cache": "WINDOWS.cache().repeat(2).flat_map(lambda window: window.batch(2))",
    "dicts": "zip({'a': range(5)}).window(2).flat_map(Dataset.zip)",
    "reduced": "WINDOWS.map(total)",
    "chosen by what is in them": "WINDOWS.filter(lambda window: total(window) > 5)",
    "summed": "from_tensors(WINDOWS.reduce(const(0, 'int64'), lambda sum_, window: sum_ + total(window)))",
}
# A spec that is inferred from one element has the shape of that element.
test_made_by_map_and_taken_apart = same(MADE_BY_MAP | TAKEN_APART, spec="compatible")
CALLS = ["enumerate()", "shuffle(1)", "prefetch(2)", "cache()", "repeat(2)", "cache().repeat(2)", "take(2)", "skip(1)"]
CALLS += ["shard(2, 1)", "concatenate(range(2).window(2))", "concatenate(range(2).batch(2).window(2))", "window(2)"]
CALLS += ["filter(lambda window: window.cardinality() > 2)", "batch(2).unbatch()"]
OTHERS = {
    "from_tensors": "from_tensors((const(1, 'int64'), WINDOWS))",
    "zip": "zip(WINDOWS, range(2))",
    "concatenate other shapes": "range(4).batch(2, True).window(2).concatenate(range(3).batch(3, True).window(2))",
    "nested structure": "PAIRS",
}
test_passed_on = same({call: f"WINDOWS.{call}" for call in CALLS} | OTHERS)
test_refused = refused(
    {
        (TypeError, ValueError): ["from_tensor_slices(range(3))"],
        ValueError: ["WINDOWS.unbatch()"],
        TypeError: [
            "WINDOWS.padded_batch(2)",
            "WINDOWS.bucket_by_sequence_length(lambda window: const(1, np.int32), [2], [1, 1])",
        ],
    }
)

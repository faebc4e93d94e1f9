"""Tests of datasets as components, with every method that supports them, against tf.data's."""

import numpy as np
from cases import check
from compare import assert_same, refused, same


def windows(lib):
    return lib.range(7).window(3)


def pairs(lib):
    return lib.zip(lib.range(5), (lib.range(5, 10), lib.range(5))).window(2, shift=1)


def total(lib):
    return lambda window: window.reduce(lib.const(0, np.int64), lambda a, b: a + b)


MADE_BY_MAP = {
    "one": lambda lib: lib.range(4).map(lib.Dataset.range),
    "beside others": lambda lib: lib.range(3).map(lambda x: (x, lib.range(x))),
    "in a list": lambda lib: lib.range(3).map(lambda x: [x, lib.range(x)]),
    "in a dict": lambda lib: lib.range(3).map(lambda x: {"b": x, "a": lib.range(x)}),
    "that fails inside": lambda lib: lib.range(1, 4).map(lambda x: lib.range(x).map(check(lib, 1))),
    "of windows": lambda lib: windows(lib).map(lambda window: window.batch(2)),
    "the very windows": lambda lib: windows(lib).map(lambda window: window),
    "two of a window": lambda lib: windows(lib).map(lambda window: (window, window.skip(1))),
    "in parallel": lambda lib: windows(lib).map(lambda window: window.batch(2), num_parallel_calls=2),
    "of datasets": lambda lib: windows(lib).map(lambda window: window.window(2)),
}
# A spec that is inferred from one element has the shape of that element.
test_made_by_map = same(MADE_BY_MAP, spec="compatible")

THROUGH = {
    "from_tensors": lambda lib: lib.from_tensors(lib.range(3)),
    "from_tensors, in a tuple": lambda lib: lib.from_tensors((lib.const(1, np.int64), windows(lib))),
    "zip": lambda lib: lib.zip(windows(lib), lib.range(2)),
    "enumerate": lambda lib: windows(lib).enumerate(),
    "shuffle": lambda lib: windows(lib).shuffle(1),
    "prefetch": lambda lib: windows(lib).prefetch(2),
    "cache": lambda lib: windows(lib).cache(),
    "repeat": lambda lib: windows(lib).repeat(2),
    "repeated cache": lambda lib: windows(lib).cache().repeat(2),
    "take": lambda lib: windows(lib).take(2),
    "skip": lambda lib: windows(lib).skip(1),
    "shard": lambda lib: windows(lib).shard(2, 1),
    "concatenate": lambda lib: windows(lib).concatenate(lib.range(2).window(2)),
    "concatenate other ranks": lambda lib: windows(lib).concatenate(lib.range(2).batch(2).window(2)),
    "concatenate other shapes": lambda lib: (
        lib.range(4).batch(2, True).window(2).concatenate(lib.range(3).batch(3, True).window(2))
    ),
    "filter": lambda lib: windows(lib).filter(lambda window: window.cardinality() > 2),
    "window": lambda lib: windows(lib).window(2),
    "batch and unbatch": lambda lib: windows(lib).batch(2).unbatch(),
    "nested structure": pairs,
}
test_passed_on = same(THROUGH)

TAKEN_APART = {
    "flat_map": lambda lib: windows(lib).flat_map(lambda window: window),
    "batches": lambda lib: windows(lib).flat_map(lambda window: window.batch(3)),
    "with a number": lambda lib: lib.zip(windows(lib), lib.range(3)).flat_map(
        lambda window, x: window.map(lambda y: (x, y))
    ),
    "zip of a tuple": lambda lib: pairs(lib).flat_map(lambda a, b: lib.zip((a, b))),
    "zip of batches": lambda lib: pairs(lib).flat_map(lambda a, b: lib.zip(a.batch(2), b[0].batch(2), b[1].batch(2))),
    "interleave": lambda lib: windows(lib).interleave(lambda window: window, cycle_length=2),
    "interleave blocks": lambda lib: windows(lib).interleave(lambda w: w.repeat(2), cycle_length=2, block_length=2),
    "twice": lambda lib: windows(lib).window(2).flat_map(lambda outer: outer.flat_map(lambda inner: inner)),
    "of a cache": lambda lib: windows(lib).cache().repeat(2).flat_map(lambda window: window.batch(2)),
    "dicts": lambda lib: lib.zip({"a": lib.range(5)}).window(2).flat_map(lib.Dataset.zip),
    "reduced": lambda lib: windows(lib).map(total(lib)),
    "chosen by what is in them": lambda lib: windows(lib).filter(lambda window: total(lib)(window) > 5),
}
test_taken_apart = same(TAKEN_APART, spec="compatible")


def test_reduce_over_windows():
    def build(lib):
        found = windows(lib).reduce(lib.const(0, np.int64), lambda sum_, window: sum_ + total(lib)(window))
        return lib.from_tensors(lib.const(int(found), np.int64))

    assert assert_same(build) == [np.int64(21)]


test_refused = refused(
    {
        (TypeError, ValueError): {"from_tensor_slices": lambda lib: lib.from_tensor_slices(lib.range(3))},
        ValueError: {"unbatch": lambda lib: windows(lib).unbatch()},
        TypeError: {
            "padded_batch": lambda lib: windows(lib).padded_batch(2),
            "bucket": lambda lib: windows(lib).bucket_by_sequence_length(
                lambda window: lib.const(1, np.int32), [2], [1, 1]
            ),
        },
    }
)

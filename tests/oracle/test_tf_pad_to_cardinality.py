"""Tests of pad_to_cardinality against tf.data.experimental.pad_to_cardinality."""

import numpy as np
from compare import refused, same


def padded(lib, source, *arguments):
    if lib.name == "dataset":
        return source.pad_to_cardinality(*arguments)
    return source.apply(lib.tf.data.experimental.pad_to_cardinality(*arguments))


SOURCES = {
    "scalars": {"a": np.arange(3)},
    "text": {"a": np.array([b"x", b"y", b"z"], object), "b": np.ones((3, 2), np.float32)},
    "nested": {"a": {"b": np.arange(3)}, "c": (np.arange(3), np.ones((3, 0)))},
    "bools": {"a": np.ones(3, bool), "z": np.ones(3, np.uint8)},
    "a key that is replaced": {"valid": np.arange(3)},
}
test_elements = same(lambda lib, tensors, size: padded(lib, lib.from_tensor_slices(tensors), size), SOURCES, [3, 4, 7])
test_other_key = same(lambda lib, key: padded(lib, lib.from_tensor_slices(SOURCES["scalars"]), 5, key), ["m", "a", ""])
test_batches = same(
    lambda lib, size: padded(lib, lib.from_tensor_slices(SOURCES["scalars"]), size).batch(2, drop_remainder=True),
    [4, 6],
)
test_without_elements = same(
    lambda lib, size: padded(lib, lib.from_tensor_slices(SOURCES["text"]).take(0), size), [0, 2]
)

test_refused = refused(
    {
        ValueError: {
            "too many": lambda lib: padded(lib, lib.from_tensor_slices({"a": [1, 2]}), 1),
            "negative": lambda lib: padded(lib, lib.from_tensor_slices({"a": [1, 2]}), -1),
            "infinite": lambda lib: padded(lib, lib.from_tensor_slices({"a": [1, 2]}).repeat(), 3),
            "unknown": lambda lib: padded(lib, lib.from_tensor_slices({"a": [1, 2]}).filter(lambda e: e["a"] > 0), 3),
            "not dicts": lambda lib: padded(lib, lib.range(2), 3),
        },
        TypeError: {"text": lambda lib: padded(lib, lib.from_tensor_slices({"a": [1, 2]}), "x")},
    }
)

"""Tests of pad_to_cardinality against tf.data.experimental.pad_to_cardinality."""

import numpy as np
from compare import refused, same


def padded(lib, source, *arguments):
    source = lib.from_tensor_slices(source) if isinstance(source, dict) else source
    if lib.name == "dataset":
        return source.pad_to_cardinality(*arguments)
    return source.apply(lib.tf.data.experimental.pad_to_cardinality(*arguments))


NUMBERS = {"a": np.arange(3)}
TEXT = {"a": np.array([b"x", b"y", b"z"], object), "b": np.ones((3, 2), np.float32)}
SOURCES = {
    "scalars": NUMBERS,
    "text": TEXT,
    "nested": {"a": {"b": np.arange(3)}, "c": (np.arange(3), np.ones((3, 0)))},
    "bools": {"a": np.ones(3, bool), "z": np.ones(3, np.uint8)},
    "a key that is replaced": {"valid": np.arange(3)},
}
test_elements = same("padded(source, size)", source=SOURCES, size=[3, 4, 7])
test_other_key = same("padded(NUMBERS, 5, key)", key=["m", "a", ""])
test_batches = same("padded(NUMBERS, size).batch(2, drop_remainder=True)", size=[4, 6])
test_without_elements = same("padded(from_tensor_slices(TEXT).take(0), size)", size=[0, 2])
REFUSED = ["padded(NUMBERS, 1)", "padded(NUMBERS, -1)", "padded(from_tensor_slices(NUMBERS).repeat(), 3)"]
REFUSED += ["padded(from_tensor_slices(NUMBERS).filter(lambda e: e['a'] > 0), 3)", "padded(range(2), 3)"]
test_refused = refused({ValueError: REFUSED, TypeError: ["padded(NUMBERS, 'x')"]})

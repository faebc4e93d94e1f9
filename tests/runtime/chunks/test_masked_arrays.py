"""Tests that masked arrays are rejected, because NumPy's functions for plain arrays drop the mask."""

import numpy as np
import pytest

import dataset
from dataset import Dataset, io

MASKED = np.ma.array([1, 2, 3], mask=[False, True, False])

PLACES = {
    "from_tensor_slices": lambda: Dataset.from_tensor_slices(MASKED),
    "from_tensor_slices, a component": lambda: Dataset.from_tensor_slices({"a": np.arange(3), "b": MASKED}),
    "from_tensors": lambda: Dataset.from_tensors((MASKED, 1)),
    "map": lambda: list(Dataset.range(2).map(lambda n: MASKED)),
    "map, a component": lambda: list(Dataset.range(2).map(lambda n: {"a": MASKED, "b": n}).batch(2)),
    "map, a list": lambda: list(Dataset.range(2).map(lambda n: {"a": [MASKED, MASKED]})),
    "map, a scalar": lambda: list(Dataset.range(2).map(lambda n: np.ma.masked)),
    "a vectorized function": lambda: list(
        Dataset.range(2).map(dataset.vectorized(lambda n: np.ma.array(n, mask=n > 0)))
    ),
    "from_generator": lambda: list(Dataset.from_generator(lambda: iter([MASKED]))),
    "serialize_tensor": lambda: io.serialize_tensor(MASKED),
    "serialize_tensor, a list": lambda: io.serialize_tensor([MASKED, MASKED]),
    "encode_example": lambda: io.encode_example({"a": MASKED}),
    "encode_wav": lambda: io.encode_wav(MASKED.reshape(3, 1), 8000),
    "encode_png": lambda: io.encode_png(MASKED.astype(np.uint8).reshape(1, 1, 3)),
}


@pytest.mark.parametrize("make", PLACES.values(), ids=list(PLACES))
def test_a_masked_array_is_refused_with_what_to_do(make):
    with pytest.raises(TypeError, match=r"a masked array.* would be lost; use \.filled\(value\), or two"):
        make()


def test_what_is_filled_is_taken():
    assert [int(n) for n in Dataset.from_tensor_slices(MASKED.filled(0))] == [1, 0, 3]

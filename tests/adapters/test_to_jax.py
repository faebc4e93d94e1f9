"""Tests of to_jax: values, structures, dtypes, what is rejected, prefetching, and that memory is never shared."""

import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from adapters.aligned_arrays import aligned
from dataset import (
    Dataset,
    DatasetSpec,
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    SpecError,
    TensorSpec,
)
from dataset.testing import assert_elements_equal, outcomes
from support.states import rest_of, state_after

PREFETCH = [0, 1, 2, 5]


SMALL = [bool, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.float16, np.complex64, ml_dtypes.bfloat16]
WIDE = [np.int64, np.uint64, np.float64, np.complex128]


@pytest.mark.parametrize("dtype", [*SMALL, *WIDE, ">f4"])
def test_arrays_have_the_dtype_that_jax_gives_them(dtype):
    array = np.array([[0, 1], [2, 3]]).astype(dtype)
    for row, expected in zip(Dataset.from_tensor_slices(array).to_jax(), array, strict=True):
        native = expected.astype(expected.dtype.newbyteorder("="))
        assert row.dtype == jnp.asarray(native).dtype
        assert (row.dtype == native.dtype) is (dtype not in WIDE)
        assert np.array_equal(row, native)


def test_a_device_is_where_the_arrays_are():
    device = jax.devices()[0]
    (converted,) = Dataset.range(4).batch(4).to_jax(device)
    assert converted.devices() == {device}
    assert converted.committed
    (free,) = Dataset.range(4).batch(4).to_jax()
    assert not free.committed


REFUSED = {
    "text": (TensorSpec((), bytes), b"a", "encode it as numbers"),
    "texts": (TensorSpec((None,), bytes), [b"a", b"b"], "encode it as numbers"),
    "times": (TensorSpec((), "datetime64[s]"), np.datetime64("2020", "s"), "encode it as numbers"),
    "ragged": (RaggedTensorSpec((None, None), np.int64), RaggedTensor.from_rows([[1], [2, 3]]), "padded_batch"),
    "sparse": (SparseTensorSpec((3,), np.int64), SparseTensor([[1]], [5], [3]), "to_dense"),
    "dataset": (DatasetSpec(TensorSpec((), np.int64)), Dataset.range(3), "flat_map"),
    "object": (TensorSpec((), object), object(), "leave it out"),
}


@pytest.mark.parametrize(("spec", "value", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_other_components_are_refused_at_once_or_in_the_place_of_their_element(spec, value, words):
    signature = {"x": TensorSpec((), np.int64), "name": spec}  # known without running user code
    dataset = Dataset.from_generator(lambda: iter([{"x": 1, "name": value}]), output_signature=signature)
    with pytest.raises(SpecError, match=rf"to_jax\(\): component 'name' is .*{words}"):
        dataset.to_jax()
    elements = [1, value, 3]
    first, error, last = outcomes(iter(Dataset.range(3).map(lambda i: {"name": elements[i]}).to_jax()))
    assert (first["name"], last["name"]) == (1, 3)
    assert isinstance(error, SpecError)
    assert re.search(rf"to_jax\(\): component 'name' is .*{words}", str(error))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"prefetch": -1}, ValueError, "prefetch must be at least 0, got -1"),
        ({"prefetch": 2.0}, TypeError, "prefetch must be an int"),
        ({"sharding": "cpu"}, TypeError, r"sharding must be a jax.sharding.Sharding .*'cpu' of type str"),
        ({"sharding": jax.sharding.PartitionSpec("x")}, TypeError, "sharding must be a jax.sharding.Sharding"),
        ({"sharding": [None]}, TypeError, "of type list"),
        ({"sharding": (None, None)}, TypeError, r"structure of the elements, \{'x': \*\}, .*got \(None, None\)"),
        ({"sharding": {"y": None}}, TypeError, "structure of the elements"),
        ({"sharding": {"x": {"z": None}}}, TypeError, "structure of the elements"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments, error, words):
    with pytest.raises(error, match=words):
        Dataset.from_tensor_slices({"x": [1, 2, 3]}).to_jax(**arguments)


# Memory. Every source here is aligned, so that JAX would share it.


def test_donated_arrays_change_neither_a_cache_nor_the_users_array():
    source = aligned((64, 64))
    cached = Dataset.from_tensors(source).map(lambda x: x + 0).cache()
    double = jax.jit(lambda x: x * 2, donate_argnums=0)
    for dataset in (cached, cached, Dataset.from_tensor_slices(source).batch(64)):
        for converted in dataset.to_jax():
            assert float(double(converted)[0, 0]) == 2
    assert all((array == 1).all() for array in cached)
    assert (source == 1).all()


# States


@pytest.mark.parametrize("prefetch", PREFETCH)
@pytest.mark.parametrize("position", [0, 1, 7])
def test_batches_are_jax_arrays_of_the_same_values_from_any_state_on(prefetch, position):
    source = {"x": np.arange(40, dtype=ml_dtypes.bfloat16).reshape(20, 2), "y": np.arange(20, dtype=np.int32)}
    dataset = Dataset.from_tensor_slices(source).shuffle(7, 1, reshuffle_each_iteration=False).batch(3).prefetch(2)
    state = state_after(dataset.to_jax(prefetch=prefetch), position)
    expected = rest_of(dataset, state_after(dataset, position))
    for other in PREFETCH:
        found = rest_of(dataset.to_jax(prefetch=other), state)
        assert all(isinstance(array, jax.Array) for batch in found for array in batch.values())
        assert_elements_equal([{key: np.asarray(batch[key]) for key in batch} for batch in found], expected)

"""Specs: what a component is, and which of two specs says more."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, DatasetSpec, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, TensorSpec
from dataset.plan.spec import BYTES, as_dtype, flatten_spec, map_spec, spec_of
from support.pipelines import Pair

DIMS = st.one_of(st.none(), st.integers(0, 3))
SHAPES = st.one_of(st.none(), st.lists(DIMS, max_size=3).map(tuple))
SPECS = st.builds(TensorSpec, SHAPES, st.sampled_from([np.float32, np.int64, bytes]))


@given(SPECS, SPECS)
def test_the_most_general_spec_allows_both_and_what_is_allowed_is_compatible(a, b):
    assert a.allows(a)
    assert a.is_compatible_with(a)
    assert a == TensorSpec(a.shape, a.dtype)
    assert hash(a) == hash(TensorSpec(a.shape, a.dtype))
    general = a.most_general_with(b)
    assert general == b.most_general_with(a)
    if a.dtype == b.dtype:
        assert general.allows(a)
        assert general.allows(b)
    else:
        assert general is None
    assert a.is_compatible_with(b) == b.is_compatible_with(a)
    if a.allows(b):
        assert a.is_compatible_with(b)


@given(SPECS, SPECS, SPECS)
def test_allowing_is_transitive(a, b, c):
    if a.allows(b) and b.allows(c):
        assert a.allows(c)


@given(SPECS, DIMS)
def test_unbatching_takes_away_what_batching_added(spec, size):
    assert spec.batched(size).unbatched() == spec
    assert spec.batched(size).shape == (None if spec.shape is None else (size, *spec.shape))


@given(st.integers(1, 3), DIMS, st.sampled_from([np.float32, bytes]))
def test_unbatching_a_ragged_spec_takes_away_what_batching_added(rank, size, dtype):
    spec = RaggedTensorSpec((4, *[None] * rank), dtype, rank)
    assert spec.batched(size).unbatched() == spec
    assert spec.batched(size).ragged_rank == rank + 1


def test_the_rows_of_a_ragged_tensor_are_arrays_that_are_ragged_again_once_batched():
    row = RaggedTensorSpec((3, None, 5), np.int64, 1, np.int32).unbatched()
    assert row == RaggedTensorSpec((None, 5), np.int64, 0, np.int32)
    assert row.batched(3) == RaggedTensorSpec((3, None, 5), np.int64, 1, np.int32)
    assert row.unbatched() == TensorSpec((5,), np.int64)
    assert row.is_compatible_with(np.zeros((2, 5), np.int64))
    assert row.allows(TensorSpec((2, 5), np.int64))
    assert not row.allows(TensorSpec((2, 5), np.int32))
    assert not row.is_compatible_with(np.zeros((2, 4), np.int64))
    assert not row.is_compatible_with(RaggedTensor([1], [0, 1]))
    for scalar, words in ((RaggedTensorSpec((), np.int64, 0), "no rows"), (TensorSpec(()), "a scalar has no rows")):
        with pytest.raises(ValueError, match=words):
            scalar.unbatched()


def test_ragged_specs_differ_by_the_dtype_of_their_row_splits():
    narrow, wide = RaggedTensorSpec((2, None), np.int64, 1, np.int32), RaggedTensorSpec((2, None), np.int64)
    assert not wide.allows(narrow)
    assert wide.most_general_with(narrow) is None
    general = narrow.most_general_with(RaggedTensorSpec((3, None), np.int64, 1, np.int32))
    assert general == RaggedTensorSpec((None, None), np.int64, 1, np.int32)
    assert narrow.is_compatible_with(RaggedTensor([1], np.array([0, 0, 1], np.int32)))
    assert not narrow.is_compatible_with(RaggedTensor([1], [0, 0, 1]))
    assert repr(narrow) == "RaggedTensorSpec(shape=(2, None), dtype=int64, ragged_rank=1, row_splits_dtype=int32)"
    with pytest.raises(ValueError, match="row_splits_dtype must be int32 or int64"):
        RaggedTensorSpec((2, None), np.int64, 1, np.int16)


def test_ragged_specs_differ_by_their_ragged_rank():
    one, two = RaggedTensorSpec((2, None, 3), np.int64, 1), RaggedTensorSpec((2, None, None), np.int64, 2)
    assert not two.allows(one)
    assert not two.is_compatible_with(one)
    assert not one.is_compatible_with(two)
    assert one.most_general_with(two) is None
    with pytest.raises(ValueError, match="too short for ragged_rank 2"):
        RaggedTensorSpec((2, None), np.int64, 2)
    with pytest.raises(ValueError, match="give ragged_rank"):
        RaggedTensorSpec(None, np.int64)


@pytest.mark.parametrize("shape", [(-1,), -2, (2.5,), "12", ("2",), 2.5])
def test_a_shape_is_made_of_ints_and_none(shape):
    with pytest.raises(ValueError if shape in ((-1,), -2) else TypeError):
        TensorSpec(shape)


@pytest.mark.parametrize("shape", [[2, 3], np.array([2, 3]), (np.int8(2), 3)])
def test_a_shape_may_be_given_in_any_sequence_of_ints(shape):
    assert TensorSpec(shape).shape == (2, 3)
    assert all(type(dim) is int for dim in TensorSpec(shape).shape)
    assert TensorSpec(4).shape == (4,)


def test_text_of_any_width_has_the_dtype_bytes_the_default_is_float32_and_names_are_not_compared():
    for dtype in (bytes, str, "S5", "U3", np.bytes_, np.str_):
        assert as_dtype(dtype) == BYTES
        assert TensorSpec((), dtype) == TensorSpec((), bytes)
    assert TensorSpec(()).dtype == RaggedTensorSpec((2, None)).dtype == SparseTensorSpec((2,)).dtype == np.float32
    assert TensorSpec((), np.int64, "x") == TensorSpec((), np.int64)
    assert repr(TensorSpec((2, None), np.int64, "x")) == "TensorSpec(shape=(2, None), dtype=int64, name='x')"


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        (1, TensorSpec((), np.int64)),
        ("x", TensorSpec((), bytes)),
        (np.zeros((2, 0), np.uint8), TensorSpec((2, 0), np.uint8)),
        (["a", "bc"], TensorSpec((2,), bytes)),
        (np.array([b"a", 3], object), TensorSpec((2,), object)),
        (np.array([], object), TensorSpec((0,), bytes)),
        (np.datetime64(1, "s"), TensorSpec((), "M8[s]")),
        (RaggedTensor([1, 2], [0, 2]), RaggedTensorSpec((1, None), np.int64)),
        (SparseTensor([[0]], [1.0], [4]), SparseTensorSpec((4,), np.float64)),
        (object(), TensorSpec((), object)),
    ],
)
def test_the_spec_of_a_value_says_kind_shape_and_dtype(value, spec):
    assert spec_of(value) == spec
    assert spec.is_compatible_with(value)


def test_the_spec_of_an_element_has_its_structure():
    element = {"x": (1, None), "y": Pair(b"s", np.zeros(2, np.float32))}
    spec = {"x": (TensorSpec((), np.int64), None), "y": Pair(TensorSpec((), bytes), TensorSpec((2,)))}
    assert spec_of(element) == spec
    structure, specs = flatten_spec(spec)
    assert len(specs) == 3
    assert structure.unflatten(specs) == spec
    assert flatten_spec(map_spec(lambda s: s.batched(5), spec)) == (structure, [s.batched(5) for s in specs])
    with pytest.raises(TypeError, match=r"TensorSpec or similar specs, got <class 'int'>"):
        flatten_spec((TensorSpec(()), int))


@pytest.mark.parametrize(
    "spec",
    [TensorSpec((2, None), bytes, "n"), RaggedTensorSpec((2, None), np.int8), SparseTensorSpec((None,), np.float64)],
)
def test_specs_are_values(spec):
    assert pickle.loads(pickle.dumps(spec)) == spec  # our own bytes
    with pytest.raises(AttributeError):
        spec.shape = (3,)
    assert {spec: 1}[spec] == 1


DATASETS = st.builds(DatasetSpec, st.one_of(SPECS, st.tuples(SPECS, SPECS)), SHAPES)


@given(DATASETS, DATASETS)
def test_the_most_general_spec_of_datasets_allows_the_elements_of_both(a, b):
    general = a.most_general_with(b)
    assert general == b.most_general_with(a)
    (mine, my_specs), (theirs, their_specs) = flatten_spec(a.element_spec), flatten_spec(b.element_spec)
    alike = mine == theirs and [x.dtype for x in my_specs] == [y.dtype for y in their_specs]
    assert (general is not None) == alike
    if alike:
        assert general.allows(a)
        assert general.allows(b)
        inner = flatten_spec(general.element_spec)[1]
        assert inner == [x.most_general_with(y) for x, y in zip(my_specs, their_specs, strict=True)]
    assert a.allows(a)
    assert a.is_compatible_with(a)
    if a.allows(b):
        assert a.is_compatible_with(b)
        assert b.is_compatible_with(a)
        assert general == a


def test_specs_of_datasets():
    def spec(*dims):
        return DatasetSpec(TensorSpec(dims, np.int64))

    assert spec(2).most_general_with(spec()) == DatasetSpec(TensorSpec(None, np.int64))
    assert spec(2).most_general_with(TensorSpec((), object)) is None
    assert DatasetSpec(spec(2)).most_general_with(DatasetSpec(spec(3))) == DatasetSpec(spec(None))
    numbers = Dataset.range(4)
    assert spec(2).is_compatible_with(numbers.batch(2))
    for other in (spec(3), numbers, 5):
        assert not spec(2).is_compatible_with(other)
    assert spec_of((1, numbers)) == (TensorSpec((), np.int64), spec())
    batch = np.empty(2, object)
    batch[:] = [numbers.batch(size, drop_remainder=True) for size in (2, 3)]
    assert spec_of(batch) == DatasetSpec(TensorSpec((None,), np.int64), (2,))
    assert repr(spec_of(batch)) == "DatasetSpec(TensorSpec(shape=(None,), dtype=int64), dataset_shape=(2,))"
    batch[1] = numbers.map(float)
    assert spec_of(batch) == TensorSpec((2,), object)  # there is no spec that allows both

"""Tests of to_tf: elements, specs, cardinalities, passes, failures, memory, and when resources are released."""

import collections
import dataclasses

import ml_dtypes
import numpy as np
import pytest

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
from support import pipelines
from support.op_cases import Sample
from support.pipelines import Pair

pytestmark = pytest.mark.explore  # it needs TensorFlow


@dataclasses.dataclass
class Record:
    x: object
    y: object

    def __tf_flatten__(self):
        return (), (self.x, self.y)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*components)


def declared(spec, *values):
    return Dataset.from_generator(lambda: iter(values), output_signature=spec)


X, Y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
TEXT = np.array([b"", b"a", b"b\0", b"c", b"dd", "é".encode()], object)
STRUCTURES = {
    "bare": X,
    "tuple": (X, Y),
    "one in a tuple": (X,),
    "deep": (X, {"b": (Y, TEXT), "a": X}),
    "named tuple": Pair(X, {"y": Y}),
    "dict": {"y": Y, "x": X},
    "numbered": {1: X, 0: Y},
    "ordered dict": collections.OrderedDict(y=Y, x=X),
    "attrs": Sample(X, (Y,)),
    "dataclass": Record(X, {"y": Y}),
    "text": TEXT,
}


def assert_same(tf, one, other):
    """Check that two TensorFlow elements are equal and nested in the same classes."""
    tf.nest.assert_same_structure(one, other, check_types=True)
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("data", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_it_equals_the_tf_data_dataset_of_the_same_arrays(tf, data):
    for chain in (
        lambda d: d,
        lambda d: d.batch(4),
        lambda d: d.batch(4, drop_remainder=True),
        lambda d: d.batch(2).repeat(),
    ):
        ours = chain(Dataset.from_tensor_slices(data)).to_tf()
        theirs = chain(tf.data.Dataset.from_tensor_slices(data))
        assert ours.element_spec == theirs.element_spec
        assert ours.cardinality() == theirs.cardinality()
        assert isinstance(ours, tf.data.Dataset)
        for _ in range(2):
            pairs = list(zip(ours.take(9), theirs.take(9), strict=True))
            assert pairs
            for one, other in pairs:
                assert_same(tf, one, other)


DTYPES = [*"?efdFDBbHhIiQq", ml_dtypes.bfloat16]
DTYPES += [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]


@pytest.mark.parametrize("dtype", [np.dtype(code) for code in DTYPES], ids=str)
def test_dtypes_are_kept(tf, dtype):
    array = np.array([[0, 1], [2, 3]]).astype(dtype)
    for ours in (Dataset.from_tensors(array), Dataset.from_tensor_slices(array.ravel())):
        converted = ours.to_tf()
        assert converted.element_spec.dtype == tf.as_dtype(dtype)
        for one, other in zip(converted, ours, strict=True):
            assert np.array_equal(one.numpy(), other)
            assert one.numpy().dtype == dtype


def test_the_other_byte_order_becomes_native_and_none_is_kept():
    (row,) = Dataset.from_tensors(np.arange(3, dtype=">i4")).to_tf()
    assert row.numpy().tolist() == [0, 1, 2]
    ((first, second),) = Dataset.from_tensors((None, {"x": 1, "y": None})).to_tf()
    assert first is second["y"] is None
    assert second["x"].numpy() == 1


@pytest.mark.parametrize("splits", [np.int32, np.int64])
def test_ragged_tensors_are_ragged(tf, splits):
    rows = [[b"a"], [], [b"b", b"c"]], [[b"d"], [b"e"], []]
    values = [RaggedTensor.from_rows([np.array(r, object) for r in row], object, splits) for row in rows]
    spec = RaggedTensorSpec((3, None), bytes, row_splits_dtype=splits)
    converted = Dataset.from_generator(lambda: iter(values), output_signature=spec).to_tf()
    assert converted.element_spec == tf.RaggedTensorSpec((3, None), tf.string, row_splits_dtype=tf.as_dtype(splits))
    for one, other in zip(converted, values, strict=True):
        assert isinstance(one, tf.RaggedTensor)
        assert one.to_list() == other.to_list()


def test_sparse_tensors_are_sparse(tf):
    values = [
        SparseTensor([[0, 1], [1, 0]], np.array([5, 6], np.int32), [2, 3]),
        SparseTensor([], np.zeros(0, np.int32), [2, 4]),
    ]
    converted = declared(SparseTensorSpec((2, None), np.int32), *values).to_tf()
    assert converted.element_spec == tf.SparseTensorSpec((2, None), tf.int32)
    for one, other in zip(converted, values, strict=True):
        assert np.array_equal(tf.sparse.to_dense(one).numpy(), other.to_dense())


NAMED = {"x": TensorSpec((), np.int64)}
TIMES, OBJECTS, DATASETS = TensorSpec((), "datetime64[s]"), TensorSpec((), object), DatasetSpec(NAMED["x"])
REFUSED = {
    "times": (lambda: declared({**NAMED, "name": TIMES}), r"component 'name' has the dtype datetime64\[s\].*convert"),
    "objects": (lambda: declared({**NAMED, "name": OBJECTS}), "component 'name' has the dtype object"),
    "datasets": (lambda: declared({**NAMED, "name": DATASETS}), "component 'name' is DatasetSpec.*flat_map"),
    "a dataclass": (
        lambda: Dataset.range(3).map(lambda x: (x, pipelines.Record(x, x))),
        "cannot flatten a Record.*__tf_flatten__.*dict",
    ),
    "no spec": (lambda: Dataset.range(0).map(lambda x: np.zeros(int(x))), "can only be determined by computing"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_elements_without_a_type_of_tensorflow_are_refused_at_once(make, words):
    with pytest.raises(SpecError, match=words):
        make().to_tf()
    with pytest.raises(SpecError, match="no component"):
        Dataset.range(3).to_tf(())


def test_a_signature_replaces_the_spec_of_the_first_element(tf):
    dataset = Dataset.range(1, 4).map(lambda x: np.zeros(int(x)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)\(2,\).*its spec is.*\(1,\).*output_signature"):
        list(dataset.to_tf())
    for count in (3, 0):
        converted = dataset.take(count).to_tf(TensorSpec((None,), np.float64))
        assert converted.element_spec == tf.TensorSpec((None,), tf.float64)
        assert [len(x) for x in converted] == list(range(1, count + 1))
    structures = r"expected elements of structure \(\*, \*\), got \{'x': \*\}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=structures):
        next(iter(Dataset.range(2).map(lambda x: {"x": x}).to_tf((TensorSpec((), np.int64),) * 2)))
    with pytest.raises(TypeError, match="TensorSpec"):
        Dataset.range(3).to_tf({"x": np.int64})


def test_ops_and_functions_of_tensorflow_work_on_it(tf):
    converted = Dataset.range(10).map(lambda x: x * x).to_tf()
    both = tf.data.Dataset.zip((converted, converted.skip(1)))
    assert [(int(x), int(y)) for x, y in both] == [(x * x, (x + 1) ** 2) for x in range(9)]
    inner = tf.data.Dataset.range(2).flat_map(lambda _: converted.take(2))
    assert [int(x) for x in inner] == [0, 1, 0, 1]

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for x in converted:
            result += x
        return result

    assert total().numpy() == sum(x * x for x in range(10))


@pytest.mark.parametrize("is_share", [False, True])
@pytest.mark.parametrize("make", [Dataset.range, lambda n: declared(TensorSpec((), np.int64), *range(n))])
def test_processes_of_tf_distribute_divide_the_elements_unless_shard_by_process_has(make, is_share, tf):
    from tensorflow.python.data.experimental.ops import distribute

    from dataset.adapters.keras.feed import Feed
    from dataset.adapters.keras.tf_dataset import tf_dataset

    found = []
    for rank in range(2):
        part = make(12).batch(2).shard_by_process(rank, 2) if is_share else make(12).batch(2)
        for each in (part.to_tf(), tf_dataset(Feed(part, None))):
            found += [int(x) for batch in distribute._AutoShardDataset(each, 2, rank) for x in batch]
    assert sorted(found) == sorted([*range(12), *range(12)])

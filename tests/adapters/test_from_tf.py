"""Tests of from_tf: elements, specs, cardinalities, passes, failures, states, and when resources are released."""

import collections
import threading

import ml_dtypes
import numpy as np
import pytest

from dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    DatasetSpec,
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    StateError,
    TensorSpec,
)
from dataset.testing import assert_elements_equal, check_operator
from support.op_cases import Sample
from support.pipelines import Pair

pytestmark = pytest.mark.explore  # it needs TensorFlow

X, Y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
TEXT = np.array([b"", b"a", b"b\0", b"c", b"dd", b"\xff"], object)
STRUCTURES = {
    "bare": X,
    "deep": (X, {"b": (Y, TEXT), "a": X}),
    "named tuple": Pair(X, {"y": Y}),
    "ordered dict": collections.OrderedDict(y=Y, x=X),
    "attrs": Sample(X, (Y,)),
}


@pytest.mark.parametrize("data", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_it_equals_the_dataset_of_the_same_arrays(tf, data):
    for chain in (lambda d: d, lambda d: d.batch(4), lambda d: d.batch(4, drop_remainder=True)):
        ours = chain(Dataset.from_tensor_slices(data))
        theirs = Dataset.from_tf(chain(tf.data.Dataset.from_tensor_slices(data)))
        assert theirs.element_spec == ours.element_spec
        assert theirs.cardinality() == ours.cardinality()
        for _ in range(2):
            assert_elements_equal(list(theirs), list(ours))


@pytest.mark.parametrize("dtype", [np.bool, np.uint16, np.int64, np.float16, np.complex64, ml_dtypes.bfloat16])
def test_dtypes_are_kept(tf, dtype):
    array = np.array([[0, 1], [2, 3]]).astype(dtype)
    dataset = Dataset.from_tf(tf.data.Dataset.from_tensors(array))
    assert dataset.element_spec == TensorSpec((2, 2), dtype)
    assert_elements_equal(list(dataset), [array])


def test_the_user_may_write_to_the_elements(tf):
    dataset = Dataset.from_tf(tf.data.Dataset.from_tensors(np.zeros(1000)).cache().repeat(2))
    first, second = dataset
    first[:] = 1
    assert not second.any()


def test_ragged_and_sparse_tensors_are_ragged_and_sparse(tf):
    theirs = tf.data.Dataset.from_tensors(tf.ragged.constant([[[1.0], []], [[2.0, 3.0]]], row_splits_dtype=tf.int32))
    dataset = Dataset.from_tf(theirs)
    assert dataset.element_spec == RaggedTensorSpec((2, None, None), np.float32, 2, np.int32)
    (one,) = dataset
    assert isinstance(one, RaggedTensor)
    assert one.row_splits_dtype == np.int32
    assert one.to_list() == [[[1.0], []], [[2.0, 3.0]]]
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [b"a", b"b"], [2, 3])
    dataset = Dataset.from_tf(tf.data.Dataset.from_tensors({"x": sparse}))
    assert dataset.element_spec == {"x": SparseTensorSpec((2, 3), bytes)}
    (one,) = dataset
    assert one["x"] == SparseTensor([[0, 1], [1, 0]], np.array([b"a", b"b"], object), [2, 3])


def test_datasets_in_elements_are_datasets(tf):
    dataset = Dataset.from_tf(tf.data.Dataset.range(5).map(lambda x: {"x": x}).window(2))
    assert dataset.element_spec == {"x": DatasetSpec(TensorSpec((), np.int64))}
    assert [list(map(int, window["x"])) for window in dataset] == [[0, 1], [2, 3], [4]]
    assert [batch.tolist() for batch in dataset.flat_map(lambda window: window["x"].batch(2))] == [[0, 1], [2, 3], [4]]


def test_none_and_an_unknown_rank_are_kept(tf):
    dataset = Dataset.from_tf(tf.data.Dataset.range(2).map(lambda x: (None, x)))
    assert dataset.element_spec == (None, TensorSpec((), np.int64))
    assert list(dataset) == [(None, 0), (None, 1)]
    theirs = tf.data.Dataset.from_generator(lambda: iter([1, [2]]), output_signature=tf.TensorSpec(None, tf.int64))
    dataset = Dataset.from_tf(theirs)
    assert dataset.element_spec == TensorSpec(None, np.int64)
    assert [np.ndim(one) for one in dataset] == [0, 1]


def test_cardinalities_and_passes_are_those_of_tensorflow(tf):
    numbers = tf.data.Dataset.range(5)
    assert len(Dataset.from_tf(numbers)) == 5
    assert Dataset.from_tf(numbers.repeat()).cardinality() == INFINITE_CARDINALITY
    assert Dataset.from_tf(numbers.filter(lambda x: x > 2)).cardinality() == UNKNOWN_CARDINALITY
    assert len(Dataset.from_tf(numbers).batch(2).repeat(3)) == 9
    shuffled = Dataset.from_tf(tf.data.Dataset.range(100).shuffle(100).batch(100))
    (first,), (second,) = shuffled, shuffled
    assert first.tolist() != second.tolist()
    assert sorted(first) == sorted(second)
    explained = shuffled.explain()
    assert "from_tf(BatchDataset)" in explained
    assert "1 element" in explained


def test_an_exception_takes_the_place_of_its_element(tf):
    def check(x):
        with tf.control_dependencies([tf.debugging.Assert(x != 2, ["not two"])]):
            return tf.identity(x)

    iterator = iter(Dataset.from_tf(tf.data.Dataset.range(5).map(check)))
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not two") as caught:
        next(iterator)
    assert any("from_tf" in note and "element 2" in note for note in caught.value.__notes__)
    assert [int(x) for x in iterator] == [3, 4]
    assert [int(x) for x in Dataset.from_tf(tf.data.Dataset.range(5).map(check)).ignore_errors()] == [0, 1, 3, 4]


def test_it_keeps_the_contract_of_operators(tf):
    theirs = tf.data.Dataset.range(12).map(lambda x: {"x": x, "y": tf.strings.as_string(x)})
    check_operator(lambda: Dataset.from_tf(theirs), positions=4)
    state = iter(Dataset.from_tf(tf.data.Dataset.range(10)).batch(3)).state_dict()
    with pytest.raises(StateError):
        iter(Dataset.from_tf(tf.data.Dataset.range(11)).batch(3)).load_state_dict(state)


class Endless:
    """Iterator for tf.data that records when it is dropped."""

    dropped = threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __del__(self):
        self.dropped.set()


@pytest.mark.parametrize("is_closed", [True, False])
def test_ending_the_iteration_ends_tensorflows_pass(tf, is_closed):
    Endless.dropped.clear()
    theirs = tf.data.Dataset.from_generator(Endless, output_signature=tf.TensorSpec((), tf.int64)).prefetch(2)
    iterator = iter(Dataset.from_tf(theirs).prefetch(1))
    next(iterator)
    assert not Endless.dropped.is_set()
    if is_closed:
        iterator.close()
    else:
        del iterator
    assert Endless.dropped.wait(60)


def test_only_a_tf_data_dataset_is_accepted():
    for wrong in ([1, 2], Dataset.range(3), None):
        with pytest.raises(TypeError, match=r"from_tf\(\): expected a tf.data.Dataset, got .* of type"):
            Dataset.from_tf(wrong)


def test_other_components_and_calls_in_a_tf_function_are_refused_at_once(tf):
    quantized = tf.data.Dataset.range(2).map(lambda x: {"name": tf.bitcast(tf.cast(x, tf.int8), tf.qint8)})
    optional = tf.data.Dataset.range(2).map(lambda x: {"name": tf.experimental.Optional.from_value(x)})
    for theirs in (quantized, optional, tf.data.Dataset.range(4).window(2).map(lambda w: {"name": w}).batch(2)):
        with pytest.raises(TypeError, match=r"from_tf\(\): component 'name' is .* leave it out or convert it"):
            Dataset.from_tf(theirs)
    with pytest.raises(RuntimeError, match=r"outside of tf\.function"):
        tf.function(lambda: Dataset.from_tf(tf.data.Dataset.range(3)) and None)()

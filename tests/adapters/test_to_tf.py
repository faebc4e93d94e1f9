"""Tests of to_tf: elements, specs, cardinalities, passes, failures, memory, and when resources are released."""

import collections
import dataclasses
import threading

import attrs
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


class BadNumberError(Exception):
    """The error that the tests raise."""


def fail_at(*bad):
    def check(x):
        if x in bad:
            raise BadNumberError(f"not {x}")
        return x

    return check


Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024  # a plain namedtuple


@attrs.define
class Attrs:
    x: object
    y: object


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


@dataclasses.dataclass
class Plain:
    x: object


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
    "attrs": Attrs(X, (Y,)),
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


def test_ragged_batches_equal_those_of_tf_data(tf):
    def chain(lib, fill):
        return lib.range(1, 6).map(fill).ragged_batch(2).map(lambda x: {"x": x})

    fill = lambda n: np.full((int(n), 2), n, np.float32)
    ours = chain(Dataset, fill).to_tf({"x": RaggedTensorSpec((None, None, None), np.float32, 2)})
    theirs = chain(tf.data.Dataset, lambda n: tf.fill((n, 2), tf.cast(n, tf.float32)))
    assert ours.element_spec["x"].ragged_rank == 2  # as in tf.data where the sizes of rows are unknown
    for one, other in zip(ours, theirs, strict=True):
        assert one["x"].to_list() == other["x"].to_list()
    value = RaggedTensor.from_nested_row_splits(np.arange(5.0), [[0, 2, 3], [0, 2, 2, 5]])
    (one,) = Dataset.from_tensors(value).to_tf()
    assert (one.ragged_rank, one.to_list()) == (2, value.to_list())


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
TIMES, OBJECTS = TensorSpec((), "datetime64[s]"), TensorSpec((), object)
REFUSED = {
    "times": (
        lambda: declared({**NAMED, "name": TIMES}),
        None,
        r"component 'name' has the dtype datetime64\[s\].*convert",
    ),
    "objects": (lambda: declared({**NAMED, "name": OBJECTS}), None, "component 'name' has the dtype object"),
    "datasets": (
        lambda: declared({**NAMED, "name": DatasetSpec(NAMED["x"])}),
        None,
        "component 'name' is DatasetSpec.*flat_map",
    ),
    "a dataclass": (
        lambda: Dataset.range(3).map(lambda x: (x, Plain(x))),
        None,
        "cannot flatten a Plain.*__tf_flatten__.*dict",
    ),
    "no component": (lambda: Dataset.range(3), (), "no component"),
    "no spec": (lambda: Dataset.range(0).map(lambda x: np.zeros(int(x))), None, "can only be determined by computing"),
}


@pytest.mark.parametrize(("make", "signature", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_elements_without_a_type_of_tensorflow_are_refused_at_once(make, signature, words):
    with pytest.raises(SpecError, match=words):
        make().to_tf(signature)


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


LENGTHS = {
    "known": lambda d: d,
    "unknown": lambda d: d.filter(lambda x: x < 100),
    "endless": lambda d: d.repeat(),
}


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS.keys())
def test_an_exception_takes_the_place_of_its_element(tf, length):
    converted = length(Dataset.range(5).map(fail_at(1, 3))).to_tf()
    iterator = iter(converted)
    found = []
    for _ in range(5):
        try:
            found.append(int(next(iterator)))
        except tf.errors.OpError as error:
            found.append(error.message)
    assert found[::2] == [0, 2, 4]
    for message, words in zip(found[1::2], ["BadNumberError: not 1", "BadNumberError: not 3"], strict=True):
        assert words in message
        assert "in map(" in message  # the note
        assert "test_to_tf.py" in message
    assert [int(x) for x in converted.ignore_errors().take(3)] == [0, 2, 4]


def test_ops_and_functions_of_tensorflow_work_on_it(tf):
    converted = Dataset.range(10).map(lambda x: x * x).to_tf()
    assert [int(x) for x in converted.skip(3).take(2)] == [9, 16]
    assert [int(x) for x in converted.shard(3, 1)] == [1, 16, 49]
    assert [int(x) for x in converted.repeat(2)] == [x * x for x in range(10)] * 2
    both = tf.data.Dataset.zip((converted, converted.skip(1)))
    assert [(int(x), int(y)) for x, y in both] == [(x * x, (x + 1) ** 2) for x in range(9)]
    assert len(both) == 9
    inner = tf.data.Dataset.range(2).flat_map(lambda _: converted.take(2))
    assert [int(x) for x in inner] == [0, 1, 0, 1]

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for x in converted:
            result += x
        return result

    assert total().numpy() == sum(x * x for x in range(10))


def test_each_pass_is_a_new_one():
    converted = Dataset.range(100).shuffle(100, seed=1).batch(100).to_tf()
    passes = [iter(converted) for _ in range(2)]
    first, second = (next(one).numpy().tolist() for one in passes)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(100))


def test_nothing_is_read_ahead_without_a_prefetch():
    taken = []

    def numbers():
        for number in range(100):
            taken.append(number)
            yield number

    converted = Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64)).to_tf()
    iterator = iter(converted)
    assert not taken
    for given in range(1, 6):
        next(iterator)
        assert len(taken) == given


def aligned(shape, fill=1):
    memory = np.zeros(int(np.prod(shape)) * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + int(np.prod(shape)) * 4].view(np.float32).reshape(shape)
    array[...] = fill
    return array


def test_tensorflow_shares_memory_where_it_can(tf):
    """Otherwise the tests below would prove nothing."""
    array = aligned((16, 16))
    signature = (tf.TensorSpec((16, 16), tf.float32),)
    ((tensor,),) = tf.data.Dataset.from_generator(lambda: iter([(array,)]), output_signature=signature)
    array[:] = 2
    assert tensor[0, 0] == 2


@pytest.mark.parametrize(
    "make",
    [
        Dataset.from_tensors,
        lambda array: Dataset.from_tensor_slices(array).batch(64),
        lambda array: Dataset.range(2).map(lambda _: array),
        lambda array: Dataset.from_generator(lambda: iter([array, array])),
        lambda array: Dataset.from_tensors(RaggedTensor(array, [0, 30, 64])).map(lambda x: x),
    ],
)
@pytest.mark.parametrize("length", ["known", "unknown"])
def test_a_tensor_does_not_change_with_the_source_array(make, length):
    source = aligned((64, 64))
    dataset = make(source)
    if length == "unknown":
        dataset = dataset.filter(lambda x: True)
    tensor = next(iter(dataset.to_tf()))
    source[:] = 2
    assert (getattr(tensor, "flat_values", tensor).numpy() == 1).all()


def test_a_reused_buffer_becomes_different_tensors():
    buffer = aligned((64, 64))

    def numbers():
        for number in range(6):
            buffer[:] = number
            yield buffer

    assert [int(x[0, 0]) for x in list(Dataset.from_generator(numbers).to_tf())] == list(range(6))


@pytest.mark.parametrize("how", ["dropped", "at the end"])
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS.keys())
def test_the_end_of_an_iteration_ends_the_threads(length, how):
    iterator = iter(length(Dataset.range(50)).map(lambda x: x + 1).prefetch(2).to_tf())
    for _ in iterator:
        threads = [thread for thread in threading.enumerate() if "prefetch" in thread.name]
        break
    assert threads
    if how == "at the end" and length is not LENGTHS["endless"]:
        assert len(list(iterator)) == 49
    else:
        del iterator
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()

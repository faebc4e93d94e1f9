"""Tests of parse_tensor and serialize_tensor on untrusted bytes. tests/oracle compares values with TensorFlow's."""

import numpy as np
import pytest

from dataset.errors import ParseError
from dataset.io.example.messages import TensorProto
from dataset.io.example.tensor import parse_tensor, serialize_tensor
from dataset.testing import assert_elements_equal
from support.memory import memory_below


def message(*sizes, dtype=1, **fields):
    shape = {"dim": [{"size": size} for size in sizes]}
    return TensorProto(dtype=dtype, tensor_shape=shape, **fields).SerializeToString()


@pytest.mark.parametrize(
    "value",
    [np.float32([[1, 2]]), np.array([[b"a\0", b""]], object), np.arange(6).reshape(2, 3)[:, ::2]],
    ids=["numbers", "text", "a view"],
)
def test_as_many_dimensions_as_numpy_supports_are_written_and_read(value):
    value = value.reshape(*value.shape, *[1] * 62)
    dtype = bytes if value.dtype == object else value.dtype
    assert_elements_equal([parse_tensor(serialize_tensor(value), dtype)], [value])


def test_other_byte_orders_and_text_are_converted():
    assert serialize_tensor(np.array([1, 2], ">i4")) == serialize_tensor(np.array([1, 2], "<i4"))
    assert serialize_tensor(np.array(["a", "ü"])) == serialize_tensor([b"a", "ü".encode()])


def test_numbers_are_a_view_of_the_message():
    parsed = parse_tensor(serialize_tensor(np.zeros(3)), np.float64)
    assert not parsed.flags.writeable
    assert parsed.copy().flags.writeable


@pytest.mark.parametrize("value", [{1}, np.array([1], "datetime64[s]"), None])
def test_values_that_are_not_arrays_of_tensorflow_are_refused(value):
    with pytest.raises(TypeError, match="the dtype must be one of float32"):
        serialize_tensor(value)


@pytest.mark.parametrize(
    ("serialized", "dtype", "words"),
    [
        (b"hello", np.float32, "length 5.*can't be parsed as a TensorProto"),
        (message(2, float_val=[1, 2]), np.float64, "is float32, but out_type is float64"),
        (message(2, dtype=21), np.float64, "of TensorFlow's type 21, but out_type is float64"),
        (message(-2, float_val=[1, 2]), np.float32, r"the shape \(-2,\) is negative"),
        (message(2, tensor_content=b"abcd"), np.float32, "2 values of float32 were declared, but there are 4 bytes"),
        (message(1, dtype=10, tensor_content=b"\2"), bool, "a bool is 0 or 1, got 2"),
        (message(*[1] * 65, float_val=[1]), np.float32, "NumPy does not support the shape .* found 65"),
        (message(2**62, 2**62, 0), np.float32, "NumPy does not support the shape"),
        (message(10**9, dtype=7, tensor_content=b"\1a"), bytes, "1000000000 texts were declared"),
        (message(1, dtype=7, tensor_content=b"\x80" * 20), bytes, "the length of a text is damaged"),
        (message(10**9, float_val=[1]), np.float32, "values were declared, but there are only 1; .*larger max_bytes"),
        (message(10**6, 10**6, 10**6), np.float32, "there are only 0"),
    ],
)
def test_corrupt_messages_are_refused_without_allocating_what_they_declare(serialized, dtype, words):
    with memory_below(1 << 20), pytest.raises(ParseError, match=words):
        parse_tensor(serialized, dtype)


def test_values_are_repeated_up_to_a_size():
    serialized = message(1000, float_val=[1, 2])
    assert parse_tensor(serialized, np.float32, max_bytes=4000).tolist() == [1.0, *[2.0] * 999]
    with pytest.raises(ParseError, match="more than max_bytes = 3999"):
        parse_tensor(serialized, np.float32, max_bytes=3999)


def test_repeated_texts_keep_the_zero_bytes_at_their_end():
    assert parse_tensor(message(3, dtype=7, string_val=[b"a", b"b\0"]), bytes).tolist() == [b"a", b"b\0", b"b\0"]
    assert parse_tensor(message(2, dtype=7), bytes).tolist() == [b"", b""]

"""Tests of decode_raw against results of tf.io.decode_raw of TensorFlow 2.21, given as literals."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.raw import decode_raw

TYPES = [np.bool_, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.float32, np.complex128]


def object_array(items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize("dtype", TYPES)
def test_reads_back_what_tobytes_wrote(dtype):
    values = np.array([0, 1, 1, 0, 7]).astype(dtype)
    result = decode_raw(values.tobytes(), dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("little_endian", [True, False])
def test_either_byte_order_gives_native_arrays(dtype, little_endian):
    values = np.array([1, 0, 1, 1, 0, 100]).astype(dtype).reshape(2, 3)
    stored = values.astype(values.dtype.newbyteorder("<" if little_endian else ">"))
    items = [row.tobytes() for row in stored]
    for got in (decode_raw(items, dtype, little_endian), decode_raw(object_array(items), dtype, little_endian)):
        assert got.dtype == dtype
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, values)


def test_a_scalar_is_a_read_only_view_of_the_bytes():
    content = bytes(range(8))
    result = decode_raw(content, np.uint8)
    assert not result.flags.writeable
    assert np.shares_memory(result, np.frombuffer(content, np.uint8))


def test_a_batch_is_read_only_as_its_elements_are():
    assert not decode_raw([b"ab", b"cd"], np.uint8).flags.writeable


def test_swapped_and_bool_results_are_the_callers_to_write():
    for result in (decode_raw(b"\0\1", np.int16, sys.byteorder != "little"), decode_raw(b"\0\1", np.bool_)):
        result[0] = 1
        assert result[0] == 1


def test_every_byte_but_zero_is_true():
    result = decode_raw(b"\x00\x01\x02", bool)
    assert result.tolist() == [False, True, True]
    assert result.view(np.uint8).tolist() == [0, 1, 1]


def test_nested_inputs_keep_their_shape():
    assert decode_raw([[b"ab", b"cd"]], np.uint8).tolist() == [[[97, 98], [99, 100]]]
    assert decode_raw(object_array([b"abcd"]).reshape(1, 1, 1), np.int16).shape == (1, 1, 1, 2)


@pytest.mark.parametrize(
    ("given_bytes", "shape"),
    [(b"", (0,)), ([b"", b""], (2, 0)), (np.empty(0, object), (0, 0)), ([], (0, 0))],
)
def test_empty_inputs_give_empty_arrays(given_bytes, shape):
    result = decode_raw(given_bytes, np.int32)
    assert result.shape == shape
    assert result.dtype == np.int32


def test_fixed_length_pads_with_zero_bytes_and_cuts():
    assert decode_raw([b"abc", b"a"], np.int16, fixed_length=4).tolist() == [[25185, 99], [97, 0]]
    assert decode_raw(b"abc", np.int16, fixed_length=2).tolist() == [25185]
    assert decode_raw([], np.int16, fixed_length=4).shape == (0, 2)


@given(st.lists(st.binary(min_size=6, max_size=6), max_size=20), st.sampled_from([np.uint8, np.int16]), st.booleans())
def test_a_batch_is_the_stack_of_its_elements(items, dtype, little_endian):
    batch = decode_raw(object_array(items), dtype, little_endian)
    assert len(batch) == len(items)
    for row, item in zip(batch, items, strict=True):
        np.testing.assert_array_equal(row, decode_raw(item, dtype, little_endian))


@given(st.lists(st.binary(max_size=9), min_size=1), st.sampled_from([2, 4, 8]))
def test_with_a_fixed_length_any_lengths_stack(items, length):
    batch = decode_raw(items, np.uint8, fixed_length=length)
    assert [bytes(row) for row in batch] == [item[:length] + b"\0" * (length - len(item[:length])) for item in items]


def test_it_says_that_it_takes_a_chunk():
    assert decode_raw.__dataset_vectorized__ is True


@pytest.mark.parametrize("given_bytes", [b"abcdef", [b"abcdef", b"abcdef"]])
def test_a_length_that_does_not_divide_is_named(given_bytes):
    with pytest.raises(ValueError, match=r"decode_raw\(\): .* multiple of 4, the item size of int32, got 6 bytes"):
        decode_raw(given_bytes, np.int32)


def test_the_first_element_of_another_length_is_named():
    with pytest.raises(ValueError, match=r"got 2 bytes in element 0 and 3 in element 2\. Set fixed_length"):
        decode_raw([b"ab", b"cd", b"efg", b"h"], np.uint8)


@pytest.mark.parametrize("length", [0, -2, 3])
def test_a_fixed_length_must_be_a_positive_multiple(length):
    with pytest.raises(ValueError, match=f"fixed_length must be a positive multiple of 2.*got {length}"):
        decode_raw(b"abcd", np.int16, fixed_length=length)


@pytest.mark.parametrize("out_type", [object, np.str_, np.dtype(np.int32).newbyteorder("S")])
def test_types_without_a_plain_memory_are_refused(out_type):
    with pytest.raises(TypeError, match=r"decode_raw\(\): out_type must be"):
        decode_raw(b"abcd", out_type)


@pytest.mark.parametrize(
    ("given_bytes", "got"),
    [
        ("text", "'text'"),
        (3, "3"),
        (np.array([b"ab"]), "an array of dtype"),
        ([b"a", "b"], "str in element 1"),
        ([[b"a"], [b"b", b"c"]], "list in element 0"),
    ],
)
def test_what_is_not_bytes_is_refused(given_bytes, got):
    with pytest.raises(TypeError, match=got):
        decode_raw(given_bytes, np.uint8)

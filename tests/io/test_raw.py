"""Tests of decode_raw against results of tf.io.decode_raw of TensorFlow 2.21, given as literals."""

import re
import sys

import numpy as np
import pytest

from dataset.io.raw import decode_raw

TYPES = [np.bool_, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.float32, np.complex128]


def object_array(items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("little_endian", [True, False])
def test_either_byte_order_gives_native_arrays(dtype, little_endian):
    values = np.array([1, 0, 1, 1, 0, 100]).astype(dtype).reshape(2, 3)
    stored = values.astype(values.dtype.newbyteorder("<" if little_endian else ">"))
    items = [row.tobytes() for row in stored]
    batches = [decode_raw(some, dtype, little_endian) for some in (items, object_array(items), [items])]
    for got, expected in zip(batches, (values, values, values[None]), strict=True):
        assert got.dtype == dtype
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(decode_raw(items[0], dtype, little_endian), values[0])
    assert decode_raw(object_array(items).reshape(1, 1, 2), dtype, little_endian).shape == (1, 1, 2, 3)


def test_a_scalar_is_a_read_only_view_of_the_bytes_unless_it_is_swapped_or_bool():
    content = bytes(range(8))
    result = decode_raw(content, np.uint8)
    assert not result.flags.writeable
    assert np.shares_memory(result, np.frombuffer(content, np.uint8))
    assert not decode_raw([b"ab", b"cd"], np.uint8).flags.writeable
    for result in (decode_raw(b"\0\1", np.int16, sys.byteorder != "little"), decode_raw(b"\0\1", np.bool_)):
        result[0] = 1
        assert result[0] == 1
    assert decode_raw.__dataset_vectorized__ is True  # it takes a chunk


def test_every_byte_but_zero_is_true():
    assert decode_raw(b"\x00\x01\x02", bool).view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(("given_bytes", "shape"), [(b"", (0,)), ([b"", b""], (2, 0)), ([], (0, 0))])
def test_empty_inputs_give_empty_arrays(given_bytes, shape):
    result = decode_raw(given_bytes, np.int32)
    assert (result.shape, result.dtype) == (shape, np.int32)


def test_fixed_length_pads_with_zero_bytes_and_cuts():
    assert decode_raw([b"abc", b"a"], np.int16, fixed_length=4).tolist() == [[25185, 99], [97, 0]]
    assert decode_raw(b"abc", np.int16, fixed_length=2).tolist() == [25185]
    assert decode_raw([], np.int16, fixed_length=4).shape == (0, 2)


DOES_NOT_DIVIDE = "multiple of 4, the item size of int32, got 6 bytes"
SWAPPED = np.dtype(np.int32).newbyteorder("S")


@pytest.mark.parametrize(
    ("given_bytes", "out_type", "error", "words"),
    [
        *((given, np.int32, ValueError, DOES_NOT_DIVIDE) for given in (b"abcdef", [b"abcdef", b"abcdef"])),
        ([b"ab", b"cd", b"efg"], np.uint8, ValueError, "2 bytes in element 0 and 3 in element 2. Set fixed_length"),
        *((b"abcd", kind, TypeError, "decode_raw(): out_type must be") for kind in (object, np.str_, SWAPPED)),
        *(("text", np.uint8, TypeError, "'text'"), (3, np.uint8, TypeError, "3")),
        (np.array([b"ab"]), np.uint8, TypeError, "an array of dtype"),
        ([b"a", "b"], np.uint8, TypeError, "str in element 1"),
        ([[b"a"], [b"b", b"c"]], np.uint8, TypeError, "list in element 0"),
    ],
    ids=repr,
)
def test_what_cannot_be_decoded_is_refused(given_bytes, out_type, error, words):
    with pytest.raises(error, match=re.escape(words)):
        decode_raw(given_bytes, out_type)
    for length in (0, -2, 3):
        with pytest.raises(ValueError, match=f"fixed_length must be a positive multiple of 2.*got {length}"):
            decode_raw(b"abcd", np.int16, fixed_length=length)

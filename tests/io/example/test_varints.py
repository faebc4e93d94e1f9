"""Tests of unpacking packed varints against protobuf: all lengths, overlong encodings, blocks, and damaged data."""

import contextlib
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataset.errors import ParseError
from dataset.io.example import messages, varints
from dataset.io.example.varints import unpack_varints
from support.example_strategies import field, varint

TORN, TOO_LONG = "is damaged: its last int64 is truncated", "is damaged: an int64 has more than 10 bytes"


def protobuf(piece):
    """Return the values that protobuf reads from packed varints."""
    return list(messages.Int64List.FromString(field(1, piece)).value)


def check(pieces):
    """Check counts and values against protobuf; values are int64, writable, and do not share memory with the input."""
    expected = [protobuf(piece) for piece in pieces]
    counts, values = unpack_varints(pieces)
    assert counts.tolist() == list(map(len, expected))
    assert values.tolist() == list(itertools.chain(*expected))
    assert counts.dtype == values.dtype == np.int64
    assert values.flags.writeable
    assert values.flags.owndata


@st.composite
def lists(draw):
    """Draw varints of up to ``longest`` bytes; the last bytes may be empty groups."""
    longest = draw(st.integers(1, 10))
    number = st.integers(0, (1 << 7 * longest) - 1).map(lambda number: number % (1 << 64))
    value = st.builds(varint, st.one_of(st.integers(0, 127), number), st.integers(1, longest))
    return draw(st.lists(st.lists(value, max_size=6).map(b"".join), min_size=1, max_size=8))


@given(lists(), st.sampled_from([1, 2, 5, varints._BLOCK]))
@example([b""], 1)
@example([b"", b"\xff" * 9 + b"\x7f", b"", b"\x00", b""], varints._BLOCK)
def test_any_varints_are_what_protobuf_reads_whatever_the_blocks_that_they_are_computed_in(pieces, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(varints, "_BLOCK", block)
        check(pieces)


@pytest.mark.parametrize("bits", range(64))
def test_values_of_every_length(bits):
    near = [(1 << bits) + more for more in (-1, 0, 1)]
    pieces = [varint(number) for number in [*near, *[-number for number in near], 5]]
    check(pieces)
    check([b"".join(pieces)])
    check([piece * 3 for piece in pieces])


@pytest.mark.parametrize("longest", [7, 14, 21, 28, 35, 56, 63, 64])
@pytest.mark.parametrize("count", [varints._BLOCK, 2 * varints._BLOCK + 1])
def test_lists_longer_than_a_block(longest, count):
    rng = np.random.default_rng(0)
    numbers = [int(number) >> int(rng.integers(longest)) for number in rng.integers(1 << longest - 1, size=count - 1)]
    numbers.append((1 << longest) - 1)
    half = count // 2
    counts, values = unpack_varints([b"".join(map(varint, part)) for part in (numbers[:half], numbers[half:])])
    assert counts.tolist() == [half, count - half]
    assert values.view(np.uint64).tolist() == numbers


torn = st.binary(min_size=1, max_size=10).map(lambda octets: bytes(octet | 0x80 for octet in octets))
too_long = st.builds(varint, st.integers(0, 1 << 60), st.integers(11, 40)).map(lambda octets: octets + b"\x05")


@given(lists(), st.tuples(torn, st.just(TORN)) | st.tuples(too_long, st.just(TOO_LONG)), st.data())
def test_a_list_with_a_damaged_value_is_named(pieces, damage, data):
    row = data.draw(st.integers(0, len(pieces) - 1))
    pieces[row] += damage[0]
    with pytest.raises(ParseError, match=damage[1]) as raised:
        unpack_varints(pieces)
    assert raised.value.row == row


def test_the_first_damaged_list_is_named_and_one_that_is_cut_off_before_one_that_is_too_long():
    long, torn = varint(1, 11), b"\x01\x81"
    for pieces, message, row in [
        ([b"\x01", long, b"\x02", long], TOO_LONG, 1),
        ([b"\x01", torn, b"", torn], TORN, 1),
        ([varint(-1), long], TOO_LONG, 1),
        ([long, b"\x01", torn], TORN, 2),
        ([b"", b"\x80", b"\x01"], TORN, 1),
        ([b"\x80" * 500], TORN, 0),
    ]:
        with pytest.raises(ParseError, match=message) as raised:
            unpack_varints(pieces)
        assert raised.value.row == row


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=4))
def test_any_bytes_give_what_protobuf_reads_or_an_error(pieces):
    try:
        for piece in pieces:
            protobuf(piece)
    except Exception:
        with pytest.raises(ParseError, match="is damaged"):
            unpack_varints(pieces)
    else:
        check(pieces)


@pytest.mark.parametrize("octets", [b"\x01", b"\x81\x01", b"\x81\x82\x01", b"\xff" * 9 + b"\x01", b"\x81" * 200])
def test_memory_is_in_proportion_to_the_bytes(octets):
    pieces = [octets * (1_000_000 // len(octets))]
    tracemalloc.start()
    try:
        with contextlib.suppress(ParseError):
            unpack_varints(pieces)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000  # per byte: 8 for the position of its end and the value
    finally:
        tracemalloc.stop()

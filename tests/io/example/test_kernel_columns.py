"""Tests of reading columns with the native kernels against their twin: valid, unusual, damaged and hostile records."""

import struct
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.errors import ParseError
from dataset.io.example.columns import MessageReader
from dataset.io.example.encode import encode_example
from dataset.io.example.features import FixedLenFeature, RaggedFeature, VarLenFeature
from dataset.io.example.kernel_columns import KernelReader, kernels_for_strings
from dataset.io.example.parse import ExampleParser
from dataset.io.example.reference import regular_record
from dataset.plan.values import object_column
from support.example_columns import contents, in_blocks
from support.example_strategies import KEYS, damaged, entry, example, feature, field, odd_examples, unpacked, varint
from support.memory import memory_below

LIBRARY = kernels_for_strings()
READERS = {"twins": lambda records, keys: MessageReader(keys).columns(records)}
if LIBRARY is not None:
    READERS["kernels"] = lambda records, keys: KernelReader(LIBRARY, keys).columns(object_column(records))
    READERS["kernels, in blocks"] = lambda records, keys: KernelReader(LIBRARY, keys).columns(in_blocks(records))


def check(records, keys):
    """Check that the kernels read the same as the twin, and the same again with used memory."""
    expected = contents(lambda: MessageReader(keys).columns(records), len(records), keys)
    for make in READERS.values():
        assert contents(lambda make=make: make(records, keys), len(records), keys) == expected
    if LIBRARY is None:
        return
    reader = KernelReader(LIBRARY, keys)
    for _ in range(2):
        assert contents(lambda: reader.columns(object_column(records)), len(records), keys) == expected
    for record in records:
        assert one(reader.read_one, record) == one(MessageReader(keys).read_one, record)


def one(read, record):
    try:
        lists = read(record)
    except ParseError as error:
        return str(error)
    return [
        (kind, [] if values is None else [struct.pack("f", value) if kind == 2 else value for value in values])
        for kind, values in lists
    ]


@settings(max_examples=200)
@given(st.lists(odd_examples() | damaged(odd_examples()) | st.binary(max_size=30), max_size=12), st.permutations(KEYS))
def test_unusual_and_damaged_records_are_read_as_protobuf_reads_them(records, keys):
    check(records, keys[:5])


@pytest.mark.parametrize("size", range(1, 14))
@pytest.mark.parametrize("before", range(9))
def test_an_integer_has_ten_bytes_or_fewer_wherever_it_begins(size, before):
    for after in (b"", b"\x05" * 12):
        for octets in (varint(1, size), b"\x80" * size):
            check([example(entry("a", field(3, field(1, b"\x01" * before + octets + after))))], ["a"])


def x(value):
    return encode_example({"x": value})


def test_many_unusual_records_among_regular_ones():
    """Protobuf reads each of them, and the kernel continues after it."""
    odd = [
        entry("a", feature("int64", [1]) + feature("int64", [2])),
        entry("a", field(3, b"\x0b\x0c" + field(1, b"\x07"))),
    ]
    odd += [
        field(1, field(2, feature("float", [0.5])) + field(1, b"b")),
        entry("a", feature("int64", [1, 300], unpacked)),
    ]
    regular = [entry("a", feature("int64", [4, 5])), entry("b", feature("float", [1.5])), entry("c", b"")]
    records = [
        example(*[parts[(i * 7 + j) % len(parts)] for j in range(2)]) for i in range(60) for parts in (odd, regular)
    ]
    check(records, ["a", "b", "c"])
    for record in records:
        once = regular_record(record, ["a", "b"])
        twin = MessageReader(["a", "b"])
        assert twin.read_one(once) == twin.read_one(record)


@pytest.mark.parametrize("declared", [1 << 20, (1 << 28) - 1, 1 << 28, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 64) - 1])
def test_memory_is_not_allocated_for_declared_lengths(declared):
    inner = varint(1 << 3 | 2) + varint(declared) + b"123"
    lists = [field(kind, inner) for kind in (1, 2, 3)]
    records = [inner, field(1, inner), field(1, field(1, inner)), *[example(entry("a", content)) for content in lists]]
    check(records, ["a"])  # which imports modules
    with memory_below(1_000_000):
        for record in records:
            check([record], ["a"])


@pytest.mark.parametrize("octets", [b"\x01", b"\x81\x01", b"\x81\x82\x01", b"\xff" * 9 + b"\x01"])
def test_memory_of_integers_is_in_proportion_to_the_bytes(octets):
    records = [example(entry("a", field(3, field(1, octets * (1_000_000 // len(octets))))))] * 2
    parser = ExampleParser({"a": VarLenFeature(np.int64)})
    with memory_below(128_000_000):
        parser.parse_columns(records, {"a"}, packed=True)


def test_items_that_are_not_bytes_are_refused_before_their_memory_is_read():
    good = x(1)
    for bad in (None, 3, "text", bytearray(good), memoryview(good), object, np.array(1)):
        for name, make in READERS.items():
            if name == "kernels, in blocks":  # which hold bytes only
                continue
            with pytest.raises(TypeError, match=rf"records must be bytes, got {type(bad).__name__} at position 1"):
                make([good, bad], ["x"])


def test_the_caller_may_replace_records_while_they_are_read():
    """The kernels run without the interpreter's lock."""
    features = {"a": FixedLenFeature((50,), np.int64), "b": RaggedFeature(bytes)}
    records = np.empty(400, object)
    records[:] = [encode_example({"a": [i] * 50, "b": [b"%d" % i] * (i % 5)}) for i in range(400)]
    parser, stopped = ExampleParser(features), threading.Event()

    def replace():
        while not stopped.is_set():
            records[:] = [bytes(bytearray(record)) for record in records]

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(50):
            found = parser.parse_batch(records)
            assert (found["a"] == np.arange(400)[:, None]).all()
            assert found["b"].to_list() == [[b"%d" % i] * (i % 5) for i in range(400)]
    finally:
        stopped.set()
        thread.join()

"""Tests of parsing Examples: TensorFlow's results, and the same from every fast path."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor
from dataset.errors import ParseError
from dataset.io.example.columns import MessageReader
from dataset.io.example.encode import encode_example
from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from dataset.io.example.messages import Example
from dataset.io.example.parse import ExampleParser, parse_example, parse_single_example
from dataset.plan.spec import SparseTensorSpec, TensorSpec
from dataset.testing import assert_elements_equal
from support.example_strategies import (
    alike,
    damaged,
    entry,
    example,
    feature,
    feature_specs,
    field,
    odd_examples,
    unpacked,
)

I64 = np.int64


def outcome(function, *args):
    """Return the result of a call; an exception if it raises ParseError."""
    try:
        return function(*args)
    except ParseError:
        return ParseError("")


def batched(rows, spec):
    """Return the values of a feature as one batch, as the ops make it."""
    if isinstance(spec, RaggedFeature):
        return RaggedTensor.from_rows(rows, rows[0].dtype)
    values, size = Dataset.from_list(rows), len(rows)
    if isinstance(spec, FixedLenSequenceFeature):
        return values.padded_batch(size, padding_values=spec.default_value).get_single_element()
    return values.batch(size).get_single_element()


def check(parser, records):
    """Check that each way to call the parser gives what a new one gives for single records: tests/fuzz checks those."""
    specs = parser.features
    elements = [outcome(ExampleParser(specs), record) for record in records]
    assert_elements_equal([outcome(parser, record) for record in records], elements)
    columns, batch = outcome(parser, records), outcome(parser.parse_batch, records)
    if failures := [element for element in elements if isinstance(element, ParseError)]:
        assert_elements_equal([columns, batch], failures[:1] * 2)
        return
    assert list(columns) == list(batch) == list(specs)
    for name, spec in specs.items():
        rows = [element[name] for element in elements]
        assert_elements_equal([*columns[name], batch[name]], [*rows, batched(rows, spec)])


@given(st.lists(odd_examples(), min_size=1, max_size=24), feature_specs())
def test_odd_records_are_read_alike_in_every_way(records, specs):
    check(ExampleParser(specs), records)


@given(alike(min_size=1), st.data())
@settings(max_examples=80)
def test_records_alike_give_the_same_however_much_was_learned(given_records, data):
    records, kinds = given_records
    parser = ExampleParser(data.draw(feature_specs(kinds)))
    for _ in range(3):  # the second time, layouts and templates are known
        check(parser, records)
    # Hypothesis warns about strategies with a very long repr.
    one_of_these = st.integers(0, len(records) - 1).map(lambda number: records[number])
    for other in data.draw(st.lists(st.one_of(damaged(one_of_these), odd_examples()), max_size=3)):
        check(parser, [other])
        at = data.draw(st.integers(0, len(records)))
        check(parser, [*records[:at], other, *records[at:]])
    check(parser, records)


@given(odd_examples(), feature_specs())
def test_what_protobuf_parses_is_what_its_map_of_features_says(record, specs):
    try:
        message = Example.FromString(record)
    except Exception:
        return
    for key, (kind, values) in zip(specs, MessageReader(specs).read_one(record), strict=True):
        feature = message.features.feature.get(key)
        name = feature and feature.WhichOneof("kind")
        assert kind == [None, "bytes_list", "float_list", "int64_list"].index(name)
        if name:
            np.testing.assert_array_equal(list(values), list(getattr(feature, name).value))


# Results of TensorFlow 2.21 for unusual bytes: (features, values of a VarLenFeature "a" or None for an error). Omitted:
# TensorFlow contradicts protobuf by ignoring a last entry of "a" without a list, and the second of two lists.
ONE, TWO = feature("int64", [1]), feature("int64", [2])
TENSORFLOW = [
    (example(entry("a", ONE), entry("a", TWO)), [2]),
    (example(entry("a", feature("bytes", [b"x"])), entry("a", ONE)), [1]),
    (example(entry("a", ONE), entry("a", feature("bytes", [b"x"]))), None),
    (example(), []),
    (example(entry("a", b"")), []),
    (example(entry("a", field(3, b""))), []),
    (example(entry("a", field(2, b""))), None),
    (example(entry("a", feature("int64", [5, 6], unpacked))), [5, 6]),
    (example(entry("a", ONE + feature("bytes", [b"x"]))), None),
    (example(entry("a", feature("bytes", [b"x"]) + ONE)), [1]),
    (example(field(1, field(2, ONE) + field(1, b"a"))), [1]),
    (example(entry("a", field(3, b"\x0a\x01\x01\x10\x05"))), [1]),
    (example(entry("a", ONE)) + b"\x10\x05\x1a\x01z", [1]),
    (example(entry("a", ONE)) + example(entry("b", TWO)), [1]),
    (example(entry("a", ONE)) + example(entry("a", TWO)), [2]),
    (b"", []),
    (b"garbage", None),
    (example(entry("a", ONE))[:-1], None),
    (example(entry("a", ONE)) + b"\x00", None),
    (example(field(1, field(1, b"\xff") + field(2, ONE)), entry("a", ONE)), [1]),
    (example(entry("a", field(3, field(1, b"\x81\x80\x80\x00")))), [1]),
    (example(entry("a", field(3, field(1, b"\xff" * 9 + b"\x7f")))), [-1]),
    (example(entry("a", field(3, field(1, b"\xff" * 10 + b"\x01")))), None),
    (example(entry("a", field(3, field(1, b"\x81")))), None),
    (example(entry("z", field(3, field(1, b"\x81"))), entry("a", ONE)), [1]),
    (example(entry("z", b"\xff\xff"), entry("a", ONE)), [1]),
]


@pytest.mark.parametrize(("record", "values"), TENSORFLOW)
@pytest.mark.parametrize("copies", [1, 40])
def test_tensorflow_gives_the_same_for_odd_bytes(record, values, copies):
    specs = {"a": VarLenFeature(I64)}
    if values is None:
        with pytest.raises(ParseError):
            parse_example([record] * copies, specs)
        with pytest.raises(ParseError):
            parse_single_example(record, specs)
    else:
        assert parse_single_example(record, specs)["a"].values.tolist() == values
        assert parse_example([record] * copies, specs)["a"].values.tolist() == values * copies


RAGGED = encode_example({"v": [1, 2, 3, 4, 5], "s": [0, 2, 5], "l": [2, 3], "s2": [0, 1, 2], "ids": [0, 0, 2, 2, 2]})
RAGGED_IDS = encode_example({"v": [1, 2], "ids": [0, 1]})
R = RaggedFeature


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (R.RowLengths("s"), "has 5 values, which do not match its RowLengths 's' with values [0, 2, 5]"),
        (R.RowSplits("l"), "has 5 values, which do not match its RowSplits 'l' with values [2, 3]"),
        (R.ValueRowIds("v2"), "has 5 values, which do not match its ValueRowIds 'v2'"),
        (R.UniformRowLength(2), "holds 5 values, which is not a whole number of rows of shape (2,)"),
    ],
)
def test_partitions_must_cover_the_values(partition, message):
    assert f"'r' {message}" in parsed_both_ways(RAGGED, [partition], [b""])


def parsed_both_ways(record, partition, others=(b"",)):
    """Parse one record, alone and behind others; check that both fail in the same way."""
    spec = {"r": RaggedFeature(I64, value_key="v", partitions=partition)}
    with pytest.raises(ParseError, match="'r'") as alone:
        parse_single_example(record, spec)
    for parse in (lambda records: parse_example(records, spec), ExampleParser(spec)):
        with pytest.raises(ParseError, match="'r'") as together:
            parse([*others, record])
        assert str(together.value) == str(alone.value).replace("'r'", f"'r' of record {len(others)}", 1)
    return str(alone.value)


@pytest.mark.parametrize("count", [1, 39])
def test_declared_rows_are_bounded_by_the_values(count):
    """A record of 30 bytes declares ten million rows, which would take 80 MB; with another number it was 32 GB."""
    record = encode_example({"v": [1, 2], "ids": [0, 10_000_000]})
    words = parsed_both_ways(record, [R.ValueRowIds("ids")], [RAGGED_IDS] * count)
    assert re.search(r"has 2 values, but its ValueRowIds 'ids' declares 10,000,001 rows, .*_rows = 65,536", words)


@pytest.mark.parametrize("largest", [2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1])
def test_no_number_of_rows_is_allocated_or_overflows(largest):
    record = encode_example({"v": [1, 2], "ids": [0, largest]})
    inner = [R.RowLengths("ids"), R.ValueRowIds("ids")]
    for partitions in ([R.ValueRowIds("ids")], inner, [R.RowSplits("ids")], [R.RowLimits("ids")], [R.RowStarts("ids")]):
        parsed_both_ways(record, partitions, [b""] * 39)
    record = encode_example({"v": [1, 2], "n": [2**63 - 1, 2**63 - 1, 4]})  # the sum overflows to 2
    assert "RowLengths 'n'" in parsed_both_ways(record, [R.RowLengths("n")])


def test_empty_rows_within_the_bound_are_made_and_the_bound_can_be_raised():
    record = encode_example({"v": [1, 2], "ids": [0, 65_537]})
    few, more = R.ValueRowIds("ids", max_empty_rows=65_535), R.ValueRowIds("ids", max_empty_rows=65_536)
    assert more == R.ValueRowIds("ids")
    rows = parse_single_example(record, {"r": RaggedFeature(I64, value_key="v", partitions=[more])})["r"]
    assert len(rows) == 65_538
    assert rows[65_537].tolist() == [2]
    assert "max_empty_rows = 65,535" in parsed_both_ways(record, [few])


def x(value):
    return encode_example({"x": value})


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize(
    ("record", "spec", "good", "message"),
    [
        (b"", FixedLenFeature((), I64), 1, "is required, but missing. Set default_value"),
        (x(b"a"), FixedLenFeature((), I64), 1, "holds bytes, but int64 was requested. Request bytes"),
        (x([1, 2]), FixedLenFeature((3,), I64), [1, 2, 3], r"holds 2 values, but shape \(3,\) needs 3"),
        (x(np.zeros(0, I64)), FixedLenFeature((), I64, 5), 1, r"holds 0 values, but shape \(\) needs 1"),
        (
            x([1, 2, 3]),
            FixedLenSequenceFeature((2,), I64, allow_missing=True),
            [1, 2, 3, 4],
            r"holds 3 values, which is not a whole number of rows of shape \(2,\)",
        ),
        (example(entry("x", field(3, field(1, b"\x81")))), VarLenFeature(I64), 1, "is damaged"),
        (example(entry("x", field(3, field(1, b"\x80" * 11 + b"\x01")))), VarLenFeature(I64), 1, "is damaged"),
        (example(entry("x", field(2, field(1, b"\x00" * 5)))), VarLenFeature(np.float32), 0.5, "is damaged"),
        (b"\x0a\x7f", VarLenFeature(I64), 1, None),
    ],
)
def test_errors_name_the_feature_and_the_record(record, spec, good, message, count):
    message = (
        f"feature 'x' of record {{}} {message}" if message else r"record {} \(length 2\) can't be parsed as a tf.tr"
    )
    records = [x(good)] * count + [record] + [x(good)] * count
    for parse in (lambda: parse_example(records, {"x": spec}), lambda: ExampleParser({"x": spec})(records)):
        with pytest.raises(ParseError, match=message.format(count)):
            parse()
    with pytest.raises(ParseError, match=message.replace(" of record {}", "").replace("record {}", "the bytes")):
        parse_single_example(record, {"x": spec})


def test_results_are_writable_and_independent_of_each_other():
    record = encode_example({"i": [1, 2], "f": [0.5, 1.5], "b": [b"x", b"y"]})
    specs = {"i": FixedLenFeature((2,), I64), "f": FixedLenFeature((2,), np.float32), "b": FixedLenFeature((2,), bytes)}
    parser = ExampleParser(specs | {"d": FixedLenFeature((2,), I64, [7, 8])})
    for _ in range(4):
        for result in (parser(record), parser([record] * 20), parser.parse_batch([record])):
            for array in result.values():
                array[...] = array.ravel()[0]
    assert parser(record)["i"].tolist() == [1, 2]
    assert parser([record] * 20)["d"].tolist() == [[7, 8]] * 20
    twice = parse_example([record], {"i": VarLenFeature(I64), "again": RaggedFeature(I64, value_key="i")})
    twice["i"].values[:] = 0
    assert twice["again"].to_list() == [[1, 2]]


def test_a_dict_of_features_may_change_between_calls():
    record = encode_example({"x": 1, "y": 2})
    spec = {"x": FixedLenFeature((), I64)}
    assert parse_single_example(record, spec) == {"x": 1}
    spec["y"] = spec.pop("x")
    assert parse_single_example(record, spec) == {"y": 2}
    spec["y"] = FixedLenFeature((1,), I64)
    assert parse_example([record], spec)["y"].tolist() == [[2]]


def test_the_parser_knows_its_spec_and_can_be_pickled():
    specs = {"x": FixedLenFeature((2,), I64), "y": VarLenFeature(bytes)}
    parser = ExampleParser(specs)
    assert parser.element_spec == {"x": TensorSpec((2,), I64), "y": SparseTensorSpec((None,), bytes)}
    record = encode_example({"x": [1, 2], "y": "a"})
    parser([record] * 30)
    copy = pickle.loads(pickle.dumps(parser))
    assert copy == parser
    assert hash(copy) == hash(parser)
    assert copy(record)["x"].tolist() == [1, 2]
    assert repr(ExampleParser({str(i): VarLenFeature(I64) for i in range(10)})).endswith("VarLenFeature, ... 2 more)")


def test_threads_may_share_a_parser():
    rng = np.random.default_rng(0)
    records = [encode_example({"a": rng.bytes(int(rng.integers(5))), "b": int(rng.integers(999))}) for _ in range(400)]
    parser = ExampleParser({"a": FixedLenFeature((), bytes), "b": FixedLenFeature((), I64)})
    expected = [ExampleParser(parser.features)(record) for record in records]

    def work(shift):
        for begin in range(shift, 400 - 32, 7):
            found = parser(records[begin : begin + 32])
            for i in range(32):
                assert expected[begin + i] == parser(records[begin + i]) == {name: found[name][i] for name in found}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        ([VarLenFeature(I64)], TypeError, "features must be a dict"),
        ({}, ValueError, "at least one feature"),
        ({"x": np.int64}, TypeError, "feature 'x' must be one of FixedLenFeature"),
        ({"x": FixedLenSequenceFeature((), I64)}, ValueError, "needs allow_missing=True"),
    ],
)
def test_features_are_checked(features, error, words):
    with pytest.raises(error, match=words):
        ExampleParser(features)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([b"", 3], "got int at position 1"),
        ("abc", "got str"),
        (np.zeros((2, 2), object), r"object array of shape \(n,\), got"),
    ],
)
def test_records_are_checked(records, words):
    parser = ExampleParser({"x": VarLenFeature(I64)})
    with pytest.raises(TypeError, match=words):
        parser(records)
    assert parser([np.bytes_(b"")])["x"][0].shape == (0,)
    with pytest.raises(TypeError, match="serialized must be bytes, got list"):
        parse_single_example([b""], {"x": VarLenFeature(I64)})


def test_a_parser_that_stands_behind_batch_says_where_it_belongs_and_what_works_there():
    features = {"x": FixedLenFeature([], np.int64)}
    parser = ExampleParser(features)
    batches = Dataset.from_tensor_slices([x(i) for i in range(5)]).batch(3)
    with pytest.raises(TypeError, match=r"must come before batch\(\).*parse_example\(records, features\)"):
        next(iter(batches.map(parser)))
    for parse in (parser.parse_batch, lambda records: parse_example(records, features)):
        assert [batch["x"].tolist() for batch in batches.map(parse)] == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("last", [0x80, 0x85, 0xFF])
def test_a_number_that_is_cut_off_is_found_in_a_record_of_a_known_form(last):
    """Records with the same length and keys as earlier ones, which are read with a template."""
    parser = ExampleParser({"x": FixedLenFeature((), I64)})
    assert [parser(x(5))["x"] for _ in range(4)] == [5] * 4
    with pytest.raises(ParseError, match="'x'"):
        parser(x(5)[:-1] + bytes((last,)))

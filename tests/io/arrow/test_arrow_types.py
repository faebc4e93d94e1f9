"""Tests of the component for each Arrow type, with and without nulls, in tables and in Parquet files."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.model import plain
from dataset import Dataset, RaggedTensorSpec, SpecError, TensorSpec
from support.seeds import rng


@pytest.fixture(params=["from_arrow", "from_parquet"])
def source(request):
    return request.param


def rows_of(source, column, folder, **options):
    """Return the values of a column read from a table or a file, and the dataset."""
    table = pa.table({"x": column})
    if source == "from_arrow":
        dataset = Dataset.from_arrow(table, **options)
    else:
        pq.write_table(table, folder / "x.parquet", row_group_size=3)
        dataset = Dataset.from_parquet(folder / "x.parquet", **options)
    return [row["x"] for row in dataset], dataset


NUMBERS = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_keep_their_dtype(source, dtype, tmp_path):
    kind = pa.from_numpy_dtype(dtype)
    found, dataset = rows_of(source, pa.array(np.arange(5).astype(dtype), kind), tmp_path)
    assert [type(value) for value in found] == [np.dtype(dtype).type] * 5
    assert found == list(range(5))
    assert dataset.element_spec == {"x": TensorSpec((), dtype)}
    if found[0].dtype.kind == "f":
        found, _ = rows_of(source, pa.array([1.5, None, np.nan], kind), tmp_path)
        np.testing.assert_array_equal(found, [1.5, np.nan, np.nan])
        assert {value.dtype for value in found} == {np.dtype(dtype)}


TIMES = [(pa.timestamp("us"), "M8[us]"), (pa.timestamp("ns", "Europe/Berlin"), "M8[ns]")]
TIMES += [(pa.timestamp("ms", "UTC"), "M8[ms]"), (pa.date32(), "M8[D]"), (pa.time32("ms"), "m8[ms]")]
TIMES += [(pa.time64("us"), "m8[us]"), (pa.duration("us"), "m8[us]")]


@pytest.mark.parametrize(("kind", "dtype"), TIMES, ids=[str(row[0]) for row in TIMES])
def test_times_are_numpys_and_a_null_is_not_a_time(source, kind, dtype, tmp_path):
    _, dataset = rows_of(source, pa.array([7, None, -7, 7], kind), tmp_path)
    assert dataset.element_spec == {"x": TensorSpec((), dtype)}
    expected = np.array([7, "NaT", -7, 7], dtype)
    for size in (1, 4):
        column = np.concatenate([batch["x"] for batch in dataset.batch(size)])
        np.testing.assert_array_equal(column, expected)
        assert column.dtype == dtype


def test_a_date_of_milliseconds_keeps_its_unit_and_a_time_with_a_zone_is_in_utc(tmp_path):
    day = dt.date(2024, 2, 29)
    found, dataset = rows_of("from_arrow", pa.array([day], pa.date64()), tmp_path)  # Parquet has days only
    assert found == [np.datetime64("2024-02-29", "ms")]
    assert dataset.element_spec == {"x": TensorSpec((), "M8[ms]")}
    zone = dt.timezone(dt.timedelta(hours=2))
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=zone)
    found, _ = rows_of("from_parquet", pa.array([moment], pa.timestamp("us", "+02:00")), tmp_path)
    assert found == [np.datetime64("2024-07-01T10:00:00", "us")]


def test_times_of_96_bits_may_be_of_any_year(tmp_path):
    times = np.array(["0001-01-01", "1677-09-21", "1969-12-31T23:59:59.999999", "2262-04-12", "9999-12-31"], "M8[us]")
    pq.write_table(pa.table({"x": times}), tmp_path / "x", use_deprecated_int96_timestamps=True)
    dataset = Dataset.from_parquet(tmp_path / "x")
    assert dataset.element_spec == {"x": TensorSpec((), "M8[us]")}
    assert [row["x"] for row in dataset] == list(times)


FLOAT, TEXT = TensorSpec((), np.float64), TensorSpec((), bytes)
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
LISTS = [[1, 2], [], [3], [4, 5, 6]]
NESTED = [[[1], [2, 3]], [], [[], [4]]]
ROWS = np.arange(24, dtype=np.float32).reshape(8, 3)
TENSORS = np.arange(24, dtype=np.int32).reshape(4, 2, 3)
STRUCTS = [{"b": 1.5, "a": {"t": "x"}}, None, {"b": None, "a": None}]
PARTS = [{"b": 1.5, "a": {"t": b"x"}}, {"b": np.nan, "a": {"t": b"?"}}, {"b": np.nan, "a": {"t": b"?"}}]
# A column, its elements as Python values, and their spec.
VALUES = {
    "bools": (pa.array([True, False]), [True, False], TensorSpec((), bool)),
    "decimals": (pa.array([decimal.Decimal("1.25"), None]), [1.25, np.nan], FLOAT),
    **{
        str(kind): (pa.array(["a", "", "é", "long" * 20], kind), [b"a", b"", "é".encode(), b"long" * 20], TEXT)
        for kind in TEXTS
    },
    "zeros": (pa.array([b"a\0\0", b"\0\xff"]), [b"a\0\0", b"\0\xff"], TEXT),
    "text of one length": (pa.array([b"ab\0", b"\0cd"], pa.binary(3)), [b"ab\0", b"\0cd"], TEXT),
    "a dictionary of text": (pa.array(["b", "a", "b"]).dictionary_encode(), [b"b", b"a", b"b"], TEXT),
    "a dictionary of numbers": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), pa.array([0.5, 2.5])),
        *([2.5, 0.5, np.nan], FLOAT),
    ),
    "a dictionary with a null": (pa.array(["a", None, "a"]).dictionary_encode(), [b"a", b"?", b"a"], TEXT),
    "lists": (pa.array(LISTS, pa.list_(pa.int16())), LISTS, RaggedTensorSpec((None,), np.int16, 0)),
    "lists of text": (
        pa.array([["a", "b"], [], ["c"]], pa.large_list(pa.string())),
        *([[b"a", b"b"], [], [b"c"]], RaggedTensorSpec((None,), bytes, 0)),
    ),
    "lists of lists": (pa.array(NESTED), NESTED, RaggedTensorSpec((None, None), np.int64)),
    "lists of one size": (
        pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 3),
        *(ROWS.tolist(), TensorSpec((3,), np.float32)),
    ),
    "tensors": (
        pa.FixedShapeTensorArray.from_numpy_ndarray(TENSORS),
        *(TENSORS.tolist(), TensorSpec((2, 3), np.int32)),
    ),
    "structs": (pa.array(STRUCTS), PARTS, {"b": FLOAT, "a": {"t": TEXT}}),
}
if hasattr(pa, "bool8"):
    BOOL8 = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, -2], pa.int8()))
    VALUES["bools as bytes"] = BOOL8, [False, True, True], TensorSpec((), bool)
    LISTS_OF_BOOL8 = pa.ListArray.from_arrays(pa.array([0, 0, 3], pa.int32()), BOOL8)
    VALUES["lists of bool8"] = LISTS_OF_BOOL8, [[], [False, True, True]], RaggedTensorSpec((None,), bool, 0)


@pytest.mark.parametrize(("column", "expected", "spec"), VALUES.values(), ids=VALUES)
def test_values_of_every_type(source, column, expected, spec, tmp_path):
    fills = {"x.a.t": b"?"} if pa.types.is_struct(column.type) else {"x": "?"} if b"?" in expected else None
    found, dataset = rows_of(source, column, tmp_path, fill_null=fills)
    np.testing.assert_equal([plain(value) for value in found], expected)
    assert dataset.element_spec == {"x": spec}
    if not isinstance(found[0], dict):
        (batch,) = dataset.skip(1).batch(9)
        np.testing.assert_equal([plain(row) for row in batch["x"]], expected[1:])
    if b"?" in expected:
        assert found[0] is found[2]  # this makes columns with few distinct texts cheap


DECIMALS = [pa.decimal128(38, 10), pa.decimal128(38, 38), pa.decimal256(76, 0)]
DECIMALS += [pa.decimal32(9, 3), pa.decimal64(18, 9)] if hasattr(pa, "decimal32") else []


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_a_decimal_becomes_the_nearest_float(source, kind, tmp_path):
    draws = rng("decimals", kind)
    limits = [10 ** draws.randint(1, kind.precision) for _ in range(300)]
    texts = [f"{draws.randrange(-limit + 1, limit)}e-{kind.scale}" for limit in limits]
    found, _ = rows_of(source, pa.array(list(map(decimal.Decimal, texts)), kind), tmp_path)
    assert found == list(map(float, texts))


UNSUPPORTED = {
    "null": (pa.nulls(2), "contains only nulls, so the type of its values is unknown"),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "the keys and the values as two lists"),
    "structs": (pa.array([[{"a": 1}]]), "store a struct of lists"),
    "interval": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "no corresponding NumPy dtype"),
}


@pytest.mark.parametrize(("column", "words"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_a_type_without_a_component_is_refused_and_can_be_left_out(column, words):
    table = pa.table({"good": pa.array(range(len(column))), "bad": column})
    with pytest.raises(SpecError, match=rf"column 'bad' .*{words}.*columns=\["):
        Dataset.from_arrow(table)
    assert len(Dataset.from_arrow(table, columns=["good"])) == len(column)


NULLS = {
    "int": (pa.array([1, None, 3]), -1, [1, -1, 3]),
    "bool": (pa.array([True, None]), False, [True, False]),
    "text": (pa.array(["a", None]), "?", [b"a", b"?"]),
    "float": (pa.array([1.5, None]), 0.0, [1.5, 0.0]),
    "date": (pa.array([1, None], pa.date32()), dt.date(1970, 1, 3), [np.datetime64(1, "D"), np.datetime64(2, "D")]),
    "time": (pa.array([1, None], pa.timestamp("us")), np.datetime64(0, "s"), [np.datetime64(t, "us") for t in (1, 0)]),
}
if hasattr(pa, "bool8"):
    NULLS["bool8"] = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([3, None], pa.int8())), False, [True, False]


@pytest.mark.parametrize(("column", "fill", "expected"), NULLS.values(), ids=NULLS.keys())
def test_fill_null_stands_for_a_null(source, column, fill, expected, tmp_path):
    assert rows_of(source, column, tmp_path, fill_null={"x": fill})[0] == expected


def test_fill_null_in_lists_stands_for_values_and_makes_null_lists_empty(source, tmp_path):
    column = pa.array([[1, None], None, [3]])
    found, _ = rows_of(source, column, tmp_path, fill_null={"x": -1})
    assert [value.tolist() for value in found] == [[1, -1], [], [3]]
    fixed = pa.array([[1, None], None, [3, 4]], pa.list_(pa.int64(), 2))
    found, _ = rows_of(source, fixed, tmp_path, fill_null={"x": -1})
    assert [value.tolist() for value in found] == [[1, -1], [-1, -1], [3, 4]]
    floats = pa.array([[1.5, None], None], pa.list_(pa.float32(), 2))
    found, _ = rows_of(source, floats, tmp_path)
    np.testing.assert_array_equal(np.stack(found), [[1.5, np.nan], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("column", "row"),
    [
        (pa.array([1, 2, None]), 2),
        (pa.array(["a", None]), 1),
        (pa.array([[1.5], None]), 1),
        (pa.array([[], [], [1, 2], [None]]), 3),
        (pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2)), 1),
        (pa.array(["a", "b", None]).dictionary_encode(), 2),
    ],
)
def test_a_null_without_a_value_says_which_row_and_what_to_do(column, row):
    with pytest.raises(ValueError, match=rf"row {row}: column 'x' contains a null.*fill_null="):
        Dataset.from_arrow(pa.table({"x": column}))


def test_a_fill_that_does_not_fit_or_is_for_no_column_is_refused():
    table = pa.table({"x": pa.array([1, None], pa.int8())})
    for fill in ("text", 1.5, 300, None):
        with pytest.raises(ValueError, match=r"fill_null\['x'\] must be a value of int8"):
            Dataset.from_arrow(table, fill_null={"x": fill})
    with pytest.raises(ValueError, match=r"fill_null names 'y', but the columns are \['x'\]"):
        Dataset.from_arrow(pa.table({"x": [1]}), fill_null={"y": 1})


DRAWN = {
    "int": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "text": (st.text(max_size=5), pa.string()),
    "bytes": (st.binary(max_size=5), pa.binary()),
    "float": (st.floats(width=32, allow_nan=False), pa.float32()),
    "ints": (st.lists(st.integers(0, 9), max_size=3), pa.list_(pa.int8())),
    "texts": (st.lists(st.text(max_size=2), max_size=3), pa.list_(pa.string())),
    "nested": (st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2), pa.list_(pa.list_(pa.int8()))),
    "pair": (st.lists(st.booleans(), min_size=2, max_size=2), pa.list_(pa.bool_(), 2)),
}


def encoded(value):
    if isinstance(value, list):
        return [encoded(item) for item in value]
    return value.encode() if isinstance(value, str) else value


@settings(deadline=None, max_examples=150)
@given(data=st.data(), name=st.sampled_from(sorted(DRAWN)), start=st.integers(0, 3), cuts=st.integers(1, 4))
def test_any_part_of_any_column_comes_out_as_it_is(data, name, start, cuts):
    """Slices have offsets and several chunks, which are common sources of conversion errors."""
    strategy, kind = DRAWN[name]
    values = data.draw(st.lists(strategy, min_size=start + 1, max_size=12))
    pieces = [values[i::cuts] for i in range(cuts)]
    chunked = pa.chunked_array([pa.array(piece, kind) for piece in pieces], kind).slice(start)
    expected = [value for piece in pieces for value in piece][start:]
    found = [plain(row["x"]) for row in Dataset.from_arrow(pa.table({"x": chunked}))]
    assert found == encoded(expected)

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

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SpecError, TensorSpec


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


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]


def test_text_is_bytes_which_keep_their_zeros(source, tmp_path):
    for kind in TEXTS:
        found, dataset = rows_of(source, pa.array(["a", "", "é", "long" * 20], kind), tmp_path)
        assert found == [b"a", b"", "é".encode(), b"long" * 20]
        assert dataset.element_spec == {"x": TensorSpec((), bytes)}
    assert rows_of(source, pa.array([b"a\0\0", b"\0\xff"]), tmp_path)[0] == [b"a\0\0", b"\0\xff"]
    assert rows_of(source, pa.array([b"ab\0", b"\0cd"], pa.binary(3)), tmp_path)[0] == [b"ab\0", b"\0cd"]


def test_bools_and_decimals(source, tmp_path):
    assert rows_of(source, pa.array([True, False]), tmp_path)[0] == [np.True_, np.False_]
    found, dataset = rows_of(source, pa.array([decimal.Decimal("1.25"), None]), tmp_path)
    np.testing.assert_array_equal(found, [1.25, np.nan])
    assert dataset.element_spec == {"x": TensorSpec((), np.float64)}


def test_a_dictionary_is_its_values(source, tmp_path):
    texts = pa.array(["b", "a", "b", "b"]).dictionary_encode()
    assert rows_of(source, texts, tmp_path)[0] == [b"b", b"a", b"b", b"b"]
    numbers = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), pa.array([0.5, 2.5]))
    np.testing.assert_array_equal(rows_of(source, numbers, tmp_path)[0], [2.5, 0.5, np.nan])
    found, _ = rows_of(source, pa.array(["a", None, "a"]).dictionary_encode(), tmp_path, fill_null={"x": "?"})
    assert found == [b"a", b"?", b"a"]
    assert found[0] is found[2]  # this makes columns with few distinct texts cheap


def test_a_list_is_an_array_and_a_batch_of_them_ragged(source, tmp_path):
    lists = [[1, 2], [], [3], [4, 5, 6]]
    found, dataset = rows_of(source, pa.array(lists, pa.list_(pa.int16())), tmp_path)
    assert [value.tolist() for value in found] == lists
    assert {(type(value), value.dtype) for value in found} == {(np.ndarray, np.dtype(np.int16))}
    assert dataset.element_spec == {"x": RaggedTensorSpec((None,), np.int16, ragged_rank=0)}
    (batch,) = dataset.batch(4)
    assert batch["x"] == RaggedTensor.from_rows(lists, np.int16)
    (padded,) = dataset.padded_batch(4)
    assert padded["x"].tolist() == [[1, 2, 0], [0, 0, 0], [3, 0, 0], [4, 5, 6]]
    (ragged,) = dataset.ragged_batch(4)
    assert ragged["x"] == batch["x"]


def test_lists_of_text_and_of_lists(source, tmp_path):
    texts = [["a", "b"], [], ["c"]]
    found, _ = rows_of(source, pa.array(texts, pa.large_list(pa.string())), tmp_path)
    assert [value.tolist() for value in found] == [[b"a", b"b"], [], [b"c"]]
    nested = [[[1], [2, 3]], [], [[], [4]]]
    found, dataset = rows_of(source, pa.array(nested), tmp_path)
    assert [value.to_list() for value in found] == nested
    assert dataset.element_spec == {"x": RaggedTensorSpec((None, None), np.int64)}
    pairs = pa.array([[[1, 2], [3, 4]], []], pa.list_(pa.list_(pa.int32(), 2)))
    found, dataset = rows_of("from_arrow", pairs, tmp_path)
    assert [value.shape for value in found] == [(2, 2), (0, 2)]
    assert dataset.element_spec == {"x": RaggedTensorSpec((None, 2), np.int32, ragged_rank=0)}


def test_a_list_of_a_fixed_size_and_a_tensor_are_arrays(source, tmp_path):
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    tensors = np.arange(24, dtype=np.int32).reshape(4, 2, 3)
    for values, column in [
        (rows, pa.FixedSizeListArray.from_arrays(rows.ravel(), 3)),
        (tensors, pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)),
    ]:
        found, dataset = rows_of(source, column, tmp_path)
        np.testing.assert_array_equal(np.stack(found), values)
        assert dataset.element_spec == {"x": TensorSpec(values.shape[1:], values.dtype)}
        (batch,) = dataset.skip(1).take(2).batch(2)
        np.testing.assert_array_equal(batch["x"], values[1:3])


def test_a_struct_is_a_dict_and_its_null_one_in_each_field(source, tmp_path):
    column = pa.array([{"b": 1.5, "a": {"t": "x"}}, None, {"b": None, "a": None}])
    found, dataset = rows_of(source, column, tmp_path, fill_null={"x.a.t": "none"})
    assert [list(row) for row in found] == [["b", "a"]] * 3
    np.testing.assert_array_equal([row["b"] for row in found], [1.5, np.nan, np.nan])
    assert [row["a"]["t"] for row in found] == [b"x", b"none", b"none"]
    assert dataset.element_spec == {"x": {"b": TensorSpec((), np.float64), "a": {"t": TensorSpec((), bytes)}}}


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
        (pa.array([True, None]), 1),
        (pa.array([[1], [2, None]]), 1),
        (pa.array([[1.5], None]), 1),
        (pa.array([[], [], [1, 2], [None]]), 3),
        (pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2)), 1),
        (pa.array(["a", "b", None]).dictionary_encode(), 2),
        (pa.array([b"abc", None], pa.binary(3)), 1),
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


VALUES = {
    "int": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "text": (st.text(max_size=5), pa.string()),
    "bytes": (st.binary(max_size=5), pa.binary()),
    "float": (st.floats(width=32, allow_nan=False), pa.float32()),
    "ints": (st.lists(st.integers(0, 9), max_size=3), pa.list_(pa.int8())),
    "texts": (st.lists(st.text(max_size=2), max_size=3), pa.list_(pa.string())),
    "nested": (st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2), pa.list_(pa.list_(pa.int8()))),
    "pair": (st.lists(st.booleans(), min_size=2, max_size=2), pa.list_(pa.bool_(), 2)),
}


def plain(value):
    """Convert a component to the value that Arrow returns, except for text."""
    if isinstance(value, RaggedTensor):
        return value.to_list()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def encoded(value):
    if isinstance(value, list):
        return [encoded(item) for item in value]
    return value.encode() if isinstance(value, str) else value


@settings(deadline=None, max_examples=150)
@given(data=st.data(), name=st.sampled_from(sorted(VALUES)), start=st.integers(0, 3), cuts=st.integers(1, 4))
def test_any_part_of_any_column_comes_out_as_it_is(data, name, start, cuts):
    """Slices have offsets and several chunks, which are common sources of conversion errors."""
    strategy, kind = VALUES[name]
    values = data.draw(st.lists(strategy, min_size=start + 1, max_size=12))
    pieces = [values[i::cuts] for i in range(cuts)]
    chunked = pa.chunked_array([pa.array(piece, kind) for piece in pieces], kind).slice(start)
    expected = [value for piece in pieces for value in piece][start:]
    found = [plain(row["x"]) for row in Dataset.from_arrow(pa.table({"x": chunked}))]
    assert found == encoded(expected)

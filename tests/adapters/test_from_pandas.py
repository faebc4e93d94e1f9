"""Tests of from_pandas: every dtype against the frame's values, nulls, shared memory, and what is rejected."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_operator

ROWS_MAX = 12


def elements(frame, **options):
    return list(Dataset.from_pandas(frame, **options))


# Every dtype, against the frame's own values.


def as_element(value):
    """Return the component for a cell of a frame, from its Python value alone."""
    if isinstance(value, str):
        return value.encode()
    if value is pd.NaT:
        return np.datetime64("NaT", "us")
    if isinstance(value, pd.Timestamp):
        naive = value.tz_convert("UTC").tz_localize(None) if value.tzinfo else value
        return np.datetime64(naive.to_pydatetime(), "us")
    return value


KINDS = {
    "int8 uint8 int32 int64 uint64 Int16 UInt32 Int64 int32[pyarrow] Sparse[int]": st.integers(0, 100),
    "float32 float64 Float64 double[pyarrow]": st.integers(-5, 5).map(lambda x: x / 2),
    "str object string[python] string[pyarrow] category arrow": st.text(max_size=4),
    "bool boolean object bool[pyarrow]": st.booleans(),
    "datetime64[us] datetime64[us,UTC] datetime64[us,Europe/Rome] timestamp[us][pyarrow]": st.datetimes(
        pd.Timestamp("1990").to_pydatetime(), pd.Timestamp("2030").to_pydatetime()
    ).map(pd.Timestamp),
}


def columns(kinds, values):
    """Return a strategy for the dtype of a column, and its values."""
    names = [pd.ArrowDtype(pa.string()) if name == "arrow" else name.replace(",", ", ") for name in kinds.split()]
    return st.tuples(st.sampled_from(names), st.lists(values, min_size=1, max_size=ROWS_MAX))


COLUMNS = st.one_of(columns(*item) for item in KINDS.items())


@given(COLUMNS)
@settings(deadline=None)
def test_each_row_is_what_iloc_gives(column):
    kind, values = column
    frame = pd.DataFrame({"x": pd.Series(values, dtype=kind)})
    dataset = Dataset.from_pandas(frame)
    assert len(dataset) == len(frame)
    for row, element in enumerate(dataset):
        expected = as_element(frame["x"].iloc[row])
        assert element["x"] == expected
        assert isinstance(element["x"], bytes | np.generic)
    assert [dataset[row] for row in range(len(frame))] == list(dataset)


@given(COLUMNS, st.data())
@settings(deadline=None, max_examples=50)
def test_a_null_is_nan_or_nat_or_an_error_that_names_the_row_unless_it_is_filled(column, data):
    kind, values = column
    if kind in {"bool", "Sparse[int]"} or str(kind).startswith(("int", "uint")):
        kind = {"bool": "boolean"}.get(kind, "Int64")
    row = data.draw(st.integers(0, len(values)))
    series = pd.Series([*values[:row], None, *values[row:]], dtype=kind)
    if set(values) <= {True, False} and kind == "object":
        series = series.astype(object).where(series.notna(), None)
    frame = pd.DataFrame({"x": series})
    if (spec := Dataset.from_pandas(pd.DataFrame({"x": series.dropna()})).element_spec["x"]).dtype.kind in "fM":
        null = elements(frame)[row]["x"]
        assert np.isnan(null) if null.dtype.kind == "f" else np.isnat(null)
        assert null.dtype == spec.dtype
    else:
        with pytest.raises(ValueError, match=rf"from_pandas\(\): row {row}: column 'x' contains a null, .*fill_null"):
            elements(frame)
    filled = elements(frame, fill_null={"x": as_element(values[0])})
    assert filled[row]["x"] == as_element(values[0])
    assert type(filled[row]["x"]) is type(filled[row - 1]["x"])


def test_dtypes_are_kept_and_nullable_ones_become_those_of_numpy():
    kinds = {name: name for name in ("int8", "uint16", "float32", "float16", "complex64", "bool")}
    kinds |= {"Int8": "int8", "UInt64": "uint64", "Float32": "float32", "boolean": "bool"}
    frame = pd.DataFrame({kind: pd.array([0, 1], dtype=kind) for kind in kinds})
    assert Dataset.from_pandas(frame).element_spec == {kind: TensorSpec((), name) for kind, name in kinds.items()}


# Objects.


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b\0"], [b"a", b"b\0"]),
        (["a", bytearray(b"b")], [b"a", b"b"]),
        ([True, np.False_], [np.True_, np.False_]),
        ([1, np.int8(2)], [np.int64(1), np.int64(2)]),
        ([1, 2.5], [np.float64(1), np.float64(2.5)]),
        ([2**63, 1], [np.uint64(2**63), np.uint64(1)]),
        ([decimal.Decimal("1.25")], [np.float64(1.25)]),
        ([dt.date(2020, 1, 2)], [np.datetime64("2020-01-02", "D")]),
        ([dt.time(0, 1)], [np.timedelta64(60_000_000, "us")]),
        ([dt.timedelta(seconds=1)], [np.timedelta64(1_000_000, "us")]),
        ([[1], [2.5, 3]], [np.array([1.0]), np.array([2.5, 3.0])]),
        ([[1], [], [2.5]], [np.array([1.0]), np.array([]), np.array([2.5])]),
    ],
)
def test_objects_of_one_kind_are_components(values, expected):
    found = elements(pd.Series(values, dtype=object))
    assert_elements_equal(found, expected)
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "a"], r"row 1: column 'x' holds 'a' of type str: .*of one kind"),
        (["a", None, 2], r"row 2: column 'x' holds 2 of type int"),
        ([True, 2], r"row 1: column 'x' holds 2 of type int"),
        (["a", ["b"]], r"row 1: column 'x' holds \['b'\] of type list"),
        ([[1], None], r"row 1: column 'x' contains a null"),
        ([[1], [None, 2]], r"row 1: column 'x' contains a null"),
        ([[1], [2, [3]]], r"row 1: column 'x' holds \[2, \[3\]\] of type list"),
        ([[1], [[2]]], r"row 1: column 'x' holds \[\[2\]\] of type list"),
        ([[1], ["a"]], r"row 1: column 'x' holds \['a'\] of type list: .*'a' with type str"),
        ([np.array(1), np.array(2)], r"row 0: column 'x' holds array\(1\) .*: zero-dimensional"),
        ([np.eye(2), np.eye(3)], r"(?s)row 1: column 'x' holds array.*dimension 1.* has size 2 .* has size 3"),
        ([np.eye(2), None], r"row 1: column 'x' holds None .*must not contain nulls; .*dropna"),
        ([{"a": 1}, {"b": 1}], r"row 1: column 'x.a' contains a null.*fill_null={'x.a'"),
    ],
)
def test_objects_of_several_kinds_are_refused_with_column_and_row(values, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_pandas(pd.DataFrame({"x": pd.Series(values, dtype=object)}))


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (pd.Series([object()]), r"row 0: column 'x' holds <object object .* of type object: "),
        (pd.Series([2**70]), r"row 0: column 'x' holds 1180591620717411303424 of type int: .*too large"),
        (pd.Series([np.array([-1]), np.array([1], np.uint64)]), r"row 1: .*no integer dtype for both int64 and uint64"),
        (pd.Series([None, None]), r"column 'x' .*it contains only nulls, so the type of its values is unknown"),
        (pd.Series(pd.period_range("2020", periods=2)), r"no dtype for period\[D\]; series.dt.to_timestamp\(\)"),
        (pd.Series([], dtype="period[D]"), r"no dtype for period\[D\]"),
        (pd.Series(pd.interval_range(0, 2)), r"no dtype for interval\[int64, right\]; .*series.array.left and"),
        (pd.Series(pd.interval_range(0, 2)).astype("category"), r"Interval: NumPy has no dtype for"),
        (
            pd.Series([[("a", 1)]], dtype=pd.ArrowDtype(pa.map_(pa.string(), pa.int8()))),
            "column 'x' .* has the type map<",
        ),
    ],
)
def test_a_column_without_a_component_is_refused(series, words):
    with pytest.raises(SpecError, match=rf"from_pandas\(\): .*{words}.*Leave it out with columns="):
        Dataset.from_pandas(pd.DataFrame({"x": series}))


def test_dicts_are_dicts_and_nulls_in_them_are_replaced():
    frame = pd.DataFrame({"a": [{"x": 1, "y": "u"}, {"x": 2}]})
    assert elements(frame, fill_null={"a.y": "?"}) == [{"a": {"x": 1, "y": b"u"}}, {"a": {"x": 2, "y": b"?"}}]


def test_a_dtype_is_that_of_the_values_and_not_of_empty_rows():
    arrays = [np.array([]), np.array([1], np.uint8), np.array([300], np.int16)]
    assert [array.dtype for array in elements(pd.Series(arrays))] == [np.dtype(np.int16)] * 3
    assert [array.tolist() for array in elements(pd.Series([[], []]))] == [[], []]


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([[1, 2], [3, 4]], (2,)),
        ([[b"a", b"b"], [b"c", b"d"]], (2,)),
        ([[[1, 2]], [[3, 4]]], (1, 2)),
        ([[[1, 2]], [[3, 4], [5, 6]]], (None, 2)),
        ([[[1], [2, 3]], [[4], []]], (None, None)),
        ([[np.nan, 1], [2, 3]], (2,)),
        ([np.zeros((1, 2)), np.zeros((3, 2))], (None, 2)),
        ([np.zeros((0, 2)), np.zeros((0, 2))], (0, 2)),
    ],
)
def test_the_shape_of_lists_and_arrays_is_what_they_have_in_common(values, shape):
    dataset = Dataset.from_pandas(pd.Series(values))
    assert dataset.element_spec.shape == shape
    for found, expected in zip(dataset, values, strict=True):
        rows = found.to_list() if isinstance(found, RaggedTensor) else found.tolist()
        np.testing.assert_equal(rows, expected.tolist() if isinstance(expected, np.ndarray) else expected)


# Names, index, Series.


def test_columns_have_the_requested_order_and_rows_that_of_the_frame():
    frame = pd.DataFrame({"a": range(5), "b": [object()] * 5, "c": list("uvwxy")})
    part = frame[frame["a"] % 2 == 0].sort_values("a", ascending=False)
    found = elements(part, columns=["c", "a"])
    assert found == [{"c": b"y", "a": 4}, {"c": b"w", "a": 2}, {"c": b"u", "a": 0}]
    assert list(found[0]) == ["c", "a"]


def test_the_index_is_dropped_unless_requested():
    frame = pd.DataFrame({"x": [1, 2]}, index=["u", "v"])
    assert elements(frame) == [{"x": 1}, {"x": 2}]
    assert elements(frame, index=True) == [{"index": b"u", "x": 1}, {"index": b"v", "x": 2}]
    assert elements(frame.rename_axis("key"), index=True)[0] == {"key": b"u", "x": 1}
    levels = pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([("a", 7)], names=["k", "n"]))
    assert elements(levels, index=True) == [{"k": b"a", "n": 7, "x": 1}]
    assert elements(frame, columns=["index"], index=True) == [{"index": b"u"}, {"index": b"v"}]
    with pytest.raises(ValueError, match=r"index=True.*already exists.*rename_axis"):
        Dataset.from_pandas(frame.rename_axis("x"), index=True)


def test_the_elements_of_a_series_are_its_values():
    series = pd.Series([1.5, 2.5], name="x")
    assert_elements_equal(elements(series), [np.float64(1.5), np.float64(2.5)])
    assert elements(series, index=True) == [{"index": 0, "x": 1.5}, {"index": 1, "x": 2.5}]
    assert elements(pd.Series([1, None], dtype="Int8"), fill_null={"values": 3}) == [1, 3]
    with pytest.raises(ValueError, match="a Series has only one column"):
        Dataset.from_pandas(series, columns=["x"])


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (pd.DataFrame(np.zeros((2, 2))), TypeError, r"must be strings, got 0 of type int; .*astype\(str\)"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), ValueError, "several columns 'x'"),
        (pd.DataFrame({("a", "b"): [1]}), TypeError, r"must be strings, got \('a', 'b'\) .*levels: .*'\.'\.join"),
        (pd.DataFrame(), ValueError, "needs at least one column"),
        (pd.DataFrame(index=[1, 2]), ValueError, "needs at least one column"),
        ({"x": [1]}, TypeError, "must be a pandas DataFrame or Series, got {'x'"),
        (None, TypeError, "got None of type NoneType"),
    ],
)
def test_a_frame_without_named_columns_is_refused(frame, error, words):
    with pytest.raises(error, match=r"from_pandas\(\): .*" + words):
        Dataset.from_pandas(frame)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"columns": ["y"]}, ValueError, r"the frame has no column 'y'; the columns are \['x'\]"),
        ({"fill_null": {"y": 1}}, ValueError, r"fill_null names 'y', but the columns are \['x'\]"),
        ({"fill_null": 1}, TypeError, "fill_null must be a dict"),
        ({"index": 1}, TypeError, "index"),
    ],
)
def test_invalid_arguments_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        Dataset.from_pandas(pd.DataFrame({"x": [1]}), **options)


@pytest.mark.parametrize("kind", ["int8", "float64", "str", "object", "category", "Int64", "datetime64[ns]"])
def test_a_frame_without_rows_has_no_elements(kind):
    dataset = Dataset.from_pandas(pd.DataFrame({"x": pd.Series([], dtype=kind)}))
    assert (len(dataset), list(dataset), list(dataset.batch(2))) == (0, [], [])


# Memory.


def test_numbers_and_times_are_read_only_views_of_the_frame():
    numbers = np.arange(50)
    times = numbers.astype("M8[us]")
    frame = pd.DataFrame({"i": numbers, "f": numbers * 1.0, "b": numbers % 2 == 0, "t": times})
    frame["z"] = pd.Series(times).dt.tz_localize("UTC")
    frame["n"] = pd.array(numbers, dtype="Int32")
    frame["a"] = pd.array(numbers, dtype="int64[pyarrow]")
    (batch,) = Dataset.from_pandas(frame).batch(50)
    for name, column in batch.items():
        assert not column.flags.writeable
        source = pa.array(frame[name]).to_numpy() if name == "a" else frame[name].to_numpy(dtype=column.dtype)
        assert np.shares_memory(column, source), name


def test_later_changes_of_the_frame_do_not_change_the_elements_or_the_reverse():
    frame = pd.DataFrame({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    dataset = Dataset.from_pandas(frame)
    part = dataset.skip(1).batch(2)
    frame.loc[1, "x"] = 99
    frame["x"] += 100
    frame.loc[2, "s"] = "?"
    assert [element["x"] for element in dataset] == [1, 2, 3]
    assert next(iter(part))["x"].tolist() == [2, 3]
    assert dataset[2]["s"] == b"c"
    gathered = next(iter(Dataset.from_pandas(frame).shuffle(3, seed=1).batch(3)))
    gathered["x"][:] = 0
    assert frame["x"].tolist() == [101, 199, 103]


# Integration with the rest of the library.


def test_it_keeps_the_contract_of_operators():
    frame = pd.DataFrame({"i": range(30), "s": list("abc") * 10, "l": [[i] * (i % 3) for i in range(30)]})
    check_operator(lambda: Dataset.from_pandas(frame), positions=8)
    dataset = Dataset.from_pandas(frame[["i", "s"]])
    assert "gather(from_pandas)" in dataset.shuffle(30, seed=1).repeat(2).batch(10).explain()
    assert "from_pandas[1:30:3]" in dataset.shard(3, 1).explain()
    assert list(Dataset(pickle.loads(pickle.dumps(dataset.plan)))) == list(dataset)


def test_different_frames_have_different_fingerprints():
    first, same, other = (Dataset.from_pandas(pd.DataFrame({"x": values})) for values in ([1, 2], [1, 2], [1, 3]))
    assert first.fingerprint() == same.fingerprint() != other.fingerprint()

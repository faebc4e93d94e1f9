"""Tests of from_polars: every dtype against the frame's values, nulls, several chunks, and what is rejected."""

from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensorSpec, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_operator

MOMENT = dt.datetime.fromisoformat("2020-01-02T03:04:05.678901")
LONG_AGO, ONE_DAY = dt.datetime.fromisoformat("1900-01-01"), dt.datetime.fromisoformat("2100-01-01")


def elements(frame, **options):
    return list(Dataset.from_polars(frame, **options))


def as_element(value):
    """Return the component for a cell, from polars' value."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {key: as_element(item) for key, item in value.items()}
    if isinstance(value, list | pl.Series):
        return [as_element(item) for item in value]
    if isinstance(value, dt.datetime):
        return np.datetime64(value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value, "us")
    if isinstance(value, dt.date):
        return np.datetime64(value, "D")
    if isinstance(value, dt.timedelta):
        return np.timedelta64(value, "us")
    return value


def as_plain(component):
    if isinstance(component, dict):
        return {key: as_plain(item) for key, item in component.items()}
    return component.tolist() if isinstance(component, np.ndarray) else component


COLUMNS = st.sampled_from(
    [
        (pl.Int8, st.integers(-100, 100)),
        (pl.UInt64, st.integers(0, 2**64 - 1)),
        (pl.Float32, st.integers(-8, 8).map(lambda x: x / 4)),
        (pl.Float64, st.floats(allow_nan=False)),
        (pl.Boolean, st.booleans()),
        (pl.String, st.text(max_size=20)),
        (pl.Binary, st.binary(max_size=20)),
        (pl.Categorical, st.sampled_from(["u", "v", ""])),
        (pl.Enum(["v", "u"]), st.sampled_from(["u", "v"])),
        (pl.Date, st.dates(LONG_AGO.date(), ONE_DAY.date())),
        (pl.Datetime("us"), st.datetimes(LONG_AGO, ONE_DAY)),
        (pl.Duration("us"), st.timedeltas(dt.timedelta(-9), dt.timedelta(9))),
        (pl.List(pl.Int16), st.lists(st.integers(-9, 9), max_size=3)),
        (pl.List(pl.String), st.lists(st.text(max_size=3), max_size=3)),
        (pl.Array(pl.Float32, 2), st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=2)),
        (pl.Struct({"x": pl.Int32, "y": pl.String}), st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.text()})),
    ]
).flatmap(lambda kind: st.tuples(st.just(kind[0]), st.lists(kind[1], min_size=1, max_size=10)))


@given(COLUMNS, st.integers(0, 4))
@settings(deadline=None)
def test_each_row_is_what_the_frame_gives_in_one_chunk_and_in_several(column, count):
    kind, values = column
    frame = pl.DataFrame({"x": pl.Series(values, dtype=kind)})
    chunked = frame
    for _ in range(count):
        chunked = chunked.vstack(frame)
    expected = [as_element(frame["x"][row]) for row in range(len(frame))] * (count + 1)
    dataset = Dataset.from_polars(chunked)
    assert len(dataset) == len(expected)
    assert [as_plain(element["x"]) for element in dataset] == expected
    spec = dataset.element_spec["x"]
    assert isinstance(spec, dict) or all(spec.is_compatible_with(element["x"]) for element in dataset)
    assert [as_plain(dataset[row]["x"]) for row in range(len(dataset))] == expected


@pytest.mark.parametrize(
    ("kind", "value", "spec"),
    [
        (pl.Decimal(10, 2), "1.25", TensorSpec((), np.float64)),
        (pl.Time, dt.time(1), TensorSpec((), "m8[ns]")),
        (pl.Datetime("ms"), MOMENT, TensorSpec((), "M8[ms]")),
        (pl.Datetime("ns", "Europe/Rome"), MOMENT, TensorSpec((), "M8[ns]")),
        (pl.Duration("ms"), dt.timedelta(1), TensorSpec((), "m8[ms]")),
        (pl.Array(pl.Int8, (2, 3)), np.zeros((2, 3), np.int8), TensorSpec((2, 3), np.int8)),
        (pl.Array(pl.String, 1), ["a"], TensorSpec((1,), bytes)),
        (pl.List(pl.Int8), [1], RaggedTensorSpec((None,), np.int8, 0)),
        (pl.List(pl.List(pl.Int8)), [[1]], RaggedTensorSpec((None, None), np.int8, 1)),
    ],
)
def test_each_dtype_has_its_component(kind, value, spec):
    frame = pl.DataFrame({"x": pl.Series([value], dtype=pl.String if isinstance(value, str) else kind).cast(kind)})
    dataset = Dataset.from_polars(frame)
    assert dataset.element_spec == {"x": spec}
    ((element,),) = (row.values() for row in dataset)
    assert spec.is_compatible_with(element)
    assert list(Dataset.from_polars(frame.clear())) == []


def test_a_null_is_nan_or_nat_or_an_error_that_names_the_row():
    null = elements(pl.DataFrame({"f": [1.5, None], "t": [MOMENT, None]}))[1]
    assert np.isnan(null["f"])
    assert np.isnat(null["t"])
    with pytest.raises(ValueError, match=r"from_polars\(\): row 1: column 'x' contains a null.*fill_null"):
        elements(pl.DataFrame({"x": [1, None]}))


def test_columns_have_the_requested_order():
    frame = pl.DataFrame({"a": [1], "o": pl.Series([object()], dtype=pl.Object), "s": [{"x": 2, "y": 3}], "b.c": [4]})
    assert list(elements(frame, columns=["s", "a"])[0]) == ["s", "a"]
    assert elements(frame, columns=["s.y", "b.c"]) == [{"s": {"y": 3}, "b.c": 4}]
    with pytest.raises(ValueError, match=r"from_polars\(\): the table has no column 'z'; the columns are \['a', 'b'\]"):
        Dataset.from_polars(pl.DataFrame({"a": [1], "b": [1]}), columns=["a", "z"])


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (pl.Series("x", [object()], dtype=pl.Object), "column 'x' has the type Object, .*Python objects"),
        (pl.Series("x", [1], dtype=pl.Int128), "column 'x' has the type Int128, which Arrow cannot"),
        (pl.Series("x", [None]), "column 'x' of the table has the type null: it contains"),
        (pl.Series("x", [[{"a": 1}]]), ".*lists of structs are not supported"),
    ],
)
def test_a_column_without_a_component_is_refused(series, words):
    with pytest.raises(SpecError, match=rf"from_polars\(\): {words}"):
        Dataset.from_polars(pl.DataFrame({"good": [1], "x": series}))


def test_only_frames_of_polars_with_columns_are_accepted():
    for data in (None, {"x": [1]}, np.zeros(3)):
        with pytest.raises(TypeError, match=r"from_polars\(\): df must be a polars DataFrame, LazyFrame or Series"):
            Dataset.from_polars(data)
    with pytest.raises(ValueError, match="at least one column"):
        Dataset.from_polars(pl.DataFrame())


def test_a_lazy_frame_is_collected_once_at_the_call():
    runs = []

    def count(frame):
        runs.append(1)
        return frame

    lazy = pl.LazyFrame({"x": [3, 1, 2]}).map_batches(count).sort("x")
    dataset = Dataset.from_polars(lazy)
    assert runs == [1]
    check_operator(lambda: dataset, [{"x": np.int64(x)} for x in (1, 2, 3)])
    assert runs == [1]


def test_the_elements_of_a_series_are_its_values():
    check_operator(lambda: Dataset.from_polars(pl.Series("x", [1, 2])), [np.int64(1), np.int64(2)])
    assert elements(pl.Series([[1], [2, 3]]))[1].tolist() == [2, 3]
    assert elements(pl.Series([1, None]), fill_null={"": 7}) == [1, 7]


def test_a_part_of_a_frame_has_the_text_of_its_rows():
    frame = pl.DataFrame({"s": [f"a text that is longer than twelve bytes, {i}" for i in range(100)]})
    assert elements(frame[10:90:7].tail(3)) == [{"s": frame["s"][row].encode()} for row in (73, 80, 87)]


def test_it_keeps_the_contract_of_operators_and_shares_memory():
    numbers, texts = np.arange(30), [f"row {i}" for i in range(30)]
    frame = pl.DataFrame({"i": numbers, "t": numbers.astype("M8[us]"), "s": texts})
    check_operator(lambda: Dataset.from_polars(frame), positions=8)
    dataset = Dataset.from_polars(frame)
    (batch,) = dataset.batch(30)
    for name in ("i", "t"):
        assert np.shares_memory(batch[name], frame[name].to_numpy(allow_copy=False))
        assert not batch[name].flags.writeable
    assert "gather(from_polars)" in dataset.shuffle(30, seed=1).batch(10).explain()
    assert_elements_equal(list(Dataset(pickle.loads(pickle.dumps(dataset.plan)))), list(dataset))

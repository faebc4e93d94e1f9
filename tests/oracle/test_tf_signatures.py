"""Tests that Dataset has all public methods of tf.data.Dataset, with the same arguments, order and defaults."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from compare import oracle

import dataset

DIFFERENT = {
    "__nonzero__": "Python 2's name of __bool__",
    "range": "tf.data takes any keyword and ignores those it does not know; ours are named in the signature",
}


def public(cls):
    special = ["__iter__", "__len__", "__bool__"]
    return sorted([name for name in dir(cls) if not name.startswith("_")] + special)


METHODS = [name for name in public(oracle().Dataset) if name not in DIFFERENT]


def parameters(function):
    return [
        (parameter.name, parameter.kind, plain(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
    ]


def plain(default):
    """Return a default value; dtypes become NumPy dtypes."""
    if default is inspect.Parameter.empty:
        return "required"
    if isinstance(default, oracle().tf.DType):
        return np.dtype(default.as_numpy_dtype)
    return np.dtype(default) if isinstance(default, type) and issubclass(default, np.generic) else default


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    theirs = getattr(oracle().Dataset, method)
    assert hasattr(dataset.Dataset, method), f"there is no Dataset.{method}()"
    ours = getattr(dataset.Dataset, method)
    assert callable(ours) == callable(theirs)
    if callable(theirs):
        compare(ours, theirs)
        assert is_static(dataset.Dataset, method) == is_static(oracle().Dataset, method)


def compare(ours, theirs):
    mine, expected = parameters(ours), parameters(theirs)
    assert mine[: len(expected)] == expected
    for name, _, default in mine[len(expected) :]:
        assert default != "required", f"{name} is an argument of ours, and must have a default"


def is_static(cls, method):
    return isinstance(inspect.getattr_static(cls, method), staticmethod)


def test_range():
    """Its arguments are documented, not declared, in tf.data."""
    names = [name for name, _, _ in parameters(dataset.Dataset.range)]
    assert names == ["args", "output_type", "name"]
    assert plain(inspect.signature(dataset.Dataset.range).parameters["output_type"].default) == np.dtype(np.int64)


@pytest.mark.parametrize("name", ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"])
def test_datasets_of_files(name):
    compare(getattr(dataset, name), getattr(oracle().tf.data, name))


def test_sql_dataset():
    """Only output_types may be missing here."""
    mine, expected = parameters(dataset.SqlDataset), parameters(oracle().tf.data.experimental.SqlDataset)
    assert [name for name, _, _ in mine] == [name for name, _, _ in expected]
    assert mine[:-1] == expected[:-1]


def test_csv():
    experimental = oracle().tf.data.experimental
    compare(dataset.CsvDataset, experimental.CsvDataset)
    compare(dataset.Dataset.from_csv, experimental.make_csv_dataset)
    compare(dataset.io.decode_csv, oracle().tf.io.decode_csv)


@pytest.mark.parametrize("name", ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY"])
def test_constants(name):
    assert getattr(dataset, name) == int(getattr(oracle().tf.data, name))


def test_the_docs_list_every_method_with_its_test():
    rows = re.findall(r"^\| (`.*?`) \|", (Path(__file__).parents[2] / "docs" / "tf_data.md").read_text(), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(public(oracle().Dataset)) - {"__nonzero__"} <= listed

"""Tests that Dataset has all public methods of tf.data.Dataset, with the same arguments, order and defaults."""

import inspect
import operator
import re
from pathlib import Path

import numpy as np
import pytest
from compare import theirs

import dataset

DIFFERENT = {
    "__nonzero__": "Python 2's name of __bool__",
    "range": "tf.data takes any keyword and ignores those it does not know; ours are named in the signature",
}


def public(cls):
    special = ["__iter__", "__len__", "__bool__"]
    return sorted([name for name in dir(cls) if not name.startswith("_")] + special)


def parameters(function):
    return [
        (parameter.name, parameter.kind.name, plain(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
    ]


def plain(default):
    """Return a default value; dtypes become NumPy dtypes."""
    if default is inspect.Parameter.empty:
        return "required"
    if hasattr(default, "as_numpy_dtype"):
        return np.dtype(default.as_numpy_dtype)
    return np.dtype(default) if isinstance(default, type) and issubclass(default, np.generic) else default


def described(cls, name):
    """Return the parameters of a method and whether it is static; None for a property."""
    member = getattr(cls, name)
    if callable(member):
        return parameters(member), isinstance(inspect.getattr_static(cls, name), staticmethod)
    return None


def test_methods():
    expected_methods = theirs(lambda lib: {name: described(lib.Dataset, name) for name in public(lib.Dataset)})
    missing = set(expected_methods) - set(DIFFERENT) - set(dir(dataset.Dataset))
    assert not missing
    for name in set(expected_methods) - set(DIFFERENT):
        ours, expected = described(dataset.Dataset, name), expected_methods[name]
        if expected is None:
            assert ours is None, name
        else:
            assert_begins(name, ours[0], expected[0])
            assert ours[1] == expected[1], name


def assert_begins(name, ours, expected):
    """Check that a function has these parameters first, and that all others have defaults."""
    assert ours[: len(expected)] == expected, name
    for parameter, _, default in ours[len(expected) :]:
        assert default != "required", f"{parameter} is an argument of our {name}, and must have a default"


FUNCTIONS = {
    "data.FixedLengthRecordDataset": dataset.FixedLengthRecordDataset,
    "data.TFRecordDataset": dataset.TFRecordDataset,
    "data.TextLineDataset": dataset.TextLineDataset,
    "data.experimental.CsvDataset": dataset.CsvDataset,
    "data.experimental.make_csv_dataset": dataset.Dataset.from_csv,
    "io.decode_csv": dataset.io.decode_csv,
    "io.parse_sequence_example": dataset.io.parse_sequence_example,
    "io.parse_single_sequence_example": dataset.io.parse_single_sequence_example,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    expected = theirs(lambda lib: parameters(operator.attrgetter(name)(lib.tf)))
    assert_begins(name, parameters(FUNCTIONS[name]), expected)


def test_sql_dataset():
    """Only output_types may be missing here."""
    mine = parameters(dataset.SqlDataset)
    expected = theirs(lambda lib: parameters(lib.tf.data.experimental.SqlDataset))
    assert [name for name, _, _ in mine] == [name for name, _, _ in expected]
    assert mine[:-1] == expected[:-1]


def test_range():
    """Its arguments are documented, not declared, in tf.data."""
    assert [name for name, _, _ in parameters(dataset.Dataset.range)] == ["args", "output_type", "name"]
    assert plain(inspect.signature(dataset.Dataset.range).parameters["output_type"].default) == np.dtype(np.int64)


def test_constants():
    names = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY"]
    expected = theirs(lambda lib: [int(getattr(lib.tf.data, name)) for name in names])
    assert [getattr(dataset, name) for name in names] == expected


def test_the_docs_list_every_method_with_its_test():
    rows = re.findall(r"^\| (`.*?`) \|", (Path(__file__).parents[2] / "docs" / "tf_data.md").read_text(), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(theirs(lambda lib: public(lib.Dataset))) - {"__nonzero__"} <= listed

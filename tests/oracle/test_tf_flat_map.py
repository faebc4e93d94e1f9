"""Tests of flat_map against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, INT64, SOURCES, failing
from compare import assert_both_refuse, assert_same, attempt, oracle

from dataset import Dataset
from support.libraries import fail_at

INNER = {
    "growing": lambda lib, x: lib.Dataset.range(x),
    "all empty": lambda lib, x: lib.Dataset.range(0),
    "repeated": lambda lib, x: lib.Dataset.from_tensors(x).repeat(2),
    "rows": lambda lib, x: lib.Dataset.from_tensor_slices(lib.stack([x, x + 10])),
    "filtered": lambda lib, x: lib.Dataset.range(4).filter(lambda y: y > x),
    "nested": lambda lib, x: lib.Dataset.range(x).flat_map(lib.Dataset.range),
    "failing": lambda lib, x: failing(lib, 0, 2, size=3),
    "tuples": lambda lib, x: lib.Dataset.zip(lib.Dataset.range(x), lib.Dataset.range(1, 4)),
    "dicts": lambda lib, x: lib.Dataset.from_tensors({"b": x, "a": b"x"}),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("source", SOURCES)
def test_sources(source, inner):
    if source == "endless" and inner == "all empty":
        return
    spec = "any" if "empty" in source or inner in {"all empty", "nested", "filtered"} or source == "one" else "equal"
    assert_same(lambda lib: SOURCES[source](lib).flat_map(lambda x: INNER[inner](lib, x)), limit=30, spec=spec)


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(
        lambda lib: lib.Dataset.range(2).flat_map(lambda x: lib.Dataset.from_tensors(ELEMENTS[element](lib))),
        spec="compatible",
    )


@pytest.mark.parametrize(
    "element", ["tuple", "tuple of one", "nested tuples", "None in a tuple", "named tuple", "nested"]
)
def test_arguments(element):
    assert_same(
        lambda lib: (
            lib.Dataset.from_tensors(ELEMENTS[element](lib))
            .repeat(2)
            .flat_map(lambda *args: lib.Dataset.from_tensors(args))
        )
    )


def test_endless_inner_datasets():
    assert_same(lambda lib: lib.Dataset.range(3).flat_map(lambda x: lib.Dataset.from_tensors(x).repeat()), limit=12)


@pytest.mark.parametrize("bad", [(0,), (2,), (4,), (0, 4), (1, 2, 3), (0, 1, 2, 3)], ids=str)
def test_failures_of_the_source(bad):
    assert_same(lambda lib: failing(lib, *bad, size=5).flat_map(lambda x: lib.Dataset.range(x, x + 2)))


@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (0, 1), (1, 2)], ids=str)
def test_failures_inside(bad):
    assert_same(lambda lib: lib.Dataset.range(2).flat_map(lambda x: failing(lib, *bad, size=3)))
    assert_same(
        lambda lib: lib.Dataset.range(3).flat_map(
            lambda x: lib.Dataset.range(x, x + 3).map(lib.call(fail_at(*bad), INT64))
        )
    )


@pytest.mark.parametrize("bad", [(0,), (2,), (4,), (0, 4), (1, 2, 3)], ids=str)
def test_failures_of_the_function(bad):
    check = fail_at(*bad)
    assert_same(
        lambda lib: lib.Dataset.range(5).flat_map(
            lambda x: lib.Dataset.from_tensors(lib.call(check, INT64)(x)).repeat(2)
        )
    )


@pytest.mark.parametrize("result", [lambda x: x, lambda x: None, lambda x: (x,), lambda x: [1]])
def test_what_is_no_dataset(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(attempt(lambda lib: lib.Dataset.range(3).flat_map(result), oracle()), Exception)
    with pytest.raises(TypeError, match="must return a Dataset"):
        next(iter(Dataset.range(3).flat_map(result)))


@pytest.mark.parametrize("function", [None, 3, "abs"], ids=repr)
def test_what_is_no_function(function):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).flat_map(function), TypeError)


def test_names():
    assert_same(lambda lib: lib.Dataset.range(3).flat_map(map_func=lib.Dataset.from_tensors, name="label"))
    assert_same(lambda lib: lib.Dataset.range(3).flat_map(lambda x: lib.Dataset.from_tensors(np.int64(1)), name="a"))

"""Comparison of a pipeline in both libraries: everything that a user can observe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import dataset
from dataset.plan.node import spec_is_static
from dataset.plan.spec import flatten_spec
from dataset.testing import assert_elements_equal
from support.libraries import Ours, TensorFlow, map_plain

FAILED = "an element that failed"
ENDS_LATER = "and so on"


@cache
def oracle() -> TensorFlow:
    """Return tf.data, imported once per process."""
    return TensorFlow()


def assert_same(
    build: Callable[[Any], Any], *, limit: int = 100, spec: str = "equal", cardinality: bool = True
) -> list[Any]:
    """Check that ``build(lib)``, a dataset, is the same in both libraries.

    Compared are, in this order: whether it can be built, its cardinality, its spec, and up to ``limit`` elements, with
    structure, dtypes, shapes and values, each failure at its place, and the end.

    Args:
        build: returns a dataset of a library, given one of the classes of libraries.py.
        limit: the maximum number of elements, for infinite datasets.
        spec: "equal", except for sizes downstream of a function, which tf.data finds by tracing and this library does
            not claim to know; "compatible"; "any".
        cardinality: whether to compare the cardinalities.

    Returns:
        The elements of this library, FAILED for each failure.
    """
    lib = oracle()
    theirs, ours = attempt(build, lib), attempt(build, Ours())
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if not (isinstance(theirs, Exception) and isinstance(ours, Exception)):
            raise AssertionError(f"only one cannot be built: tf.data {theirs!r}, dataset {ours!r}")
        return []
    if cardinality:
        expected = int(theirs.cardinality())
        assert ours.cardinality() == expected, f"cardinality {ours.cardinality()}, in tf.data {expected}"
    if spec != "any":
        compare_specs(ours.element_spec, lib.spec(theirs.element_spec), as_known(ours, spec))
    found = outcomes(iter(ours), plain, limit)
    expected = outcomes(iter(theirs), lambda value: to_numpy(lib.tf, value), limit)
    assert_outcomes_equal(found, expected)
    return found


def attempt(build: Callable[[Any], Any], lib: Any) -> Any:
    """Return what ``build`` returns or raises."""
    try:
        return build(lib)
    except Exception as error:
        return error


def outcomes(elements: Iterator[Any], convert: Callable[[Any], Any], limit: int) -> list[Any]:
    """Return up to ``limit`` elements, FAILED for those that raise, and ENDS_LATER at the end if there are more."""
    found: list[Any] = []
    while len(found) < limit:
        try:
            found.append(convert(next(elements)))
        except StopIteration:
            return found
        except AssertionError:
            raise
        except Exception:
            found.append(FAILED)
    return [*found, ENDS_LATER]


def has_failed(found: list[Any]) -> bool:
    """Return whether the outcomes that ``assert_same`` returned contain a failure."""
    return any(outcome is FAILED for outcome in found)


def assert_outcomes_equal(found: list[Any], expected: list[Any]) -> None:
    """Raise AssertionError with both lists if they differ."""
    try:
        assert_elements_equal(found, expected)
    except AssertionError as error:
        raise AssertionError(f"{error}\nours:    {found!r:.1500}\ntf.data: {expected!r:.1500}") from None


def plain(element: Any) -> Any:
    """Return an element of this library, with nested datasets replaced by their elements."""
    return map_plain(
        lambda part: inner_outcomes(iter(part), plain) if isinstance(part, dataset.Dataset) else part, element
    )


def inner_outcomes(elements: Iterator[Any], convert: Callable[[Any], Any]) -> Any:
    return ("dataset", tuple(outcomes(elements, convert, 100)))


def to_numpy(tf: Any, element: Any) -> Any:
    """Return an element of tf.data with this library's classes for components."""

    def component(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tf.Tensor):
            return value.numpy()
        if isinstance(value, tf.RaggedTensor):
            splits = [part.numpy() for part in value.nested_row_splits]
            return dataset.RaggedTensor.from_nested_row_splits(value.flat_values.numpy(), splits)
        if isinstance(value, tf.SparseTensor):
            return dataset.SparseTensor(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
        if isinstance(value, tf.data.Dataset):
            return inner_outcomes(iter(value), lambda inner: to_numpy(tf, inner))
        raise TypeError(f"this library has no component for {value!r}")

    return map_plain(component, element)


def as_known(ours: Any, how: str) -> str:
    """Return how to compare the spec of a dataset: downstream of a function, it need only be compatible."""
    return "allows" if how == "equal" and not spec_is_static(ours.plan) else how


def compare_specs(ours: Any, theirs: Any, how: str) -> None:
    (structure, mine), (other_structure, others) = flatten_spec(ours), flatten_spec(theirs)
    same = structure == other_structure
    for a, b in zip(mine, others, strict=False):
        same = same and {"equal": a.__eq__, "allows": a.allows}.get(how, a.is_compatible_with)(b)
    assert same, f"element_spec {ours!r}, in tf.data {theirs!r}"


def assert_both_refuse(build: Callable[[Any], Any], error: type[Exception] | tuple[type[Exception], ...]) -> None:
    """Check that building or the first iteration fails in both libraries; in this one, building raises ``error``."""
    theirs = attempt(lambda lib: list(build(lib).take(5)), oracle())
    assert isinstance(theirs, Exception), f"tf.data accepts it: {theirs!r}"
    ours = attempt(build, Ours())
    assert isinstance(ours, error), f"expected {error!r}, got {ours!r}"


__all__ = [
    "ENDS_LATER",
    "FAILED",
    "assert_both_refuse",
    "assert_outcomes_equal",
    "assert_same",
    "has_failed",
    "np",
    "oracle",
]

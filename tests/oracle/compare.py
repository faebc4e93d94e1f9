"""Running one pipeline in both libraries, and comparing everything that a user can see."""

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
    """The real thing, imported once in a process."""
    return TensorFlow()


def assert_same(
    build: Callable[[Any], Any], *, limit: int = 100, spec: str = "equal", cardinality: bool = True
) -> list[Any]:
    """Check that ``build(lib)``, a dataset, is the same in both libraries.

    Compared are, in this order: whether it can be built, its cardinality, its spec, and up to ``limit`` elements, with
    structure, dtypes, shapes and values, each failure at its place, and the end.

    Args:
        build: given one of the classes of libraries.py, returns a dataset of that library.
        limit: how many elements, for datasets that do not end.
        spec: "equal", but for sizes behind a function, which tf.data finds by tracing it, and which ours does not
            claim; "compatible"; "any".
        cardinality: whether to compare it.

    Returns:
        Our elements, FAILED in the place of a failure.
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
    """What ``build`` returns or raises."""
    try:
        return build(lib)
    except Exception as error:
        return error


def outcomes(elements: Iterator[Any], convert: Callable[[Any], Any], limit: int) -> list[Any]:
    """Up to ``limit`` elements, FAILED in the place of those that raise; ENDS_LATER behind them if there are more."""
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
    """Whether a failure is among the outcomes that ``assert_same`` returned."""
    return any(outcome is FAILED for outcome in found)


def assert_outcomes_equal(found: list[Any], expected: list[Any]) -> None:
    """Raise AssertionError, with both lists, where they differ."""
    try:
        assert_elements_equal(found, expected)
    except AssertionError as error:
        raise AssertionError(f"{error}\nours:    {found!r:.1500}\ntf.data: {expected!r:.1500}") from None


def plain(element: Any) -> Any:
    """An element of ours, with the elements of the datasets in it by value."""
    return map_plain(
        lambda part: inner_outcomes(iter(part), plain) if isinstance(part, dataset.Dataset) else part, element
    )


def inner_outcomes(elements: Iterator[Any], convert: Callable[[Any], Any]) -> Any:
    return ("dataset", tuple(outcomes(elements, convert, 100)))


def to_numpy(tf: Any, element: Any) -> Any:
    """An element of tf.data's with this library's classes for components."""

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
        raise TypeError(f"no component of this library stands for {value!r}")

    return map_plain(component, element)


def as_known(ours: Any, how: str) -> str:
    """How to compare the spec of a dataset of ours: behind a function, it need only allow what tf.data has found."""
    return "allows" if how == "equal" and not spec_is_static(ours.plan) else how


def compare_specs(ours: Any, theirs: Any, how: str) -> None:
    (structure, mine), (other_structure, others) = flatten_spec(ours), flatten_spec(theirs)
    same = structure == other_structure
    for a, b in zip(mine, others, strict=False):
        same = same and {"equal": a.__eq__, "allows": a.allows}.get(how, a.is_compatible_with)(b)
    assert same, f"element_spec {ours!r}, in tf.data {theirs!r}"


def assert_both_refuse(build: Callable[[Any], Any], error: type[Exception] | tuple[type[Exception], ...]) -> None:
    """Check that building, or else the first iteration, fails in both, and in ours at construction with ``error``."""
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

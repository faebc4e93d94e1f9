"""Exact comparison of elements: structure, dtypes, shapes and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dataset.plan.nested import is_dataset
from dataset.plan.structure import structure_of
from dataset.plan.values import RaggedTensor, SparseTensor


def assert_elements_equal(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raise AssertionError unless both sequences hold equal elements.

    Elements are equal if they have the same structure, and each component has the same type, dtype, shape and values;
    NaN equals NaN. Nested datasets are equal if they produce equal elements and exceptions, at most 10,000.

    Args:
        got: elements, or exceptions in the place of some, as ``outcomes`` returns them.
        expected: the expected elements and exceptions.

    >>> assert_elements_equal([np.int64(1)], [np.int64(1)])
    >>> assert_elements_equal([np.int64(1)], [np.int32(1)])
    Traceback (most recent call last):
        ...
    AssertionError: element 0: got int64 1, expected int32 1
    """
    for index, (mine, theirs) in enumerate(zip(got, expected, strict=False)):
        _assert_element_equal(index, mine, theirs)
    if len(got) != len(expected):
        raise AssertionError(f"got {len(got)} elements, expected {len(expected)}: {got!r:.500} and {expected!r:.500}")


def outcomes(elements: Iterator[Any], limit: int = 10_000) -> list[Any]:
    """Return the elements of an iterator, with an exception in the place of each one that failed.

    Args:
        elements: an iterator over a dataset, which continues after a failure.
        limit: the maximum number of outcomes.

    Raises:
        AssertionError: there are more outcomes.

    >>> from dataset import Dataset
    >>> def fail_at_zero(x):
    ...     if x == 0:
    ...         raise ValueError("zero")
    ...     return x
    >>> outcomes(iter(Dataset.range(2).map(fail_at_zero)))
    [ValueError('zero'), np.int64(1)]
    """
    found: list[Any] = []
    for _ in range(limit):
        try:
            found.append(next(elements))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001  # it is an outcome
            found.append(error)
    raise AssertionError(f"no end after {limit} elements")


def _assert_element_equal(index: int, got: Any, expected: Any) -> None:
    if isinstance(got, Exception) or isinstance(expected, Exception):
        if type(got) is not type(expected) or str(got) != str(expected):
            raise AssertionError(f"element {index}: got {got!r}, expected {expected!r}")
        return
    structure = structure_of(got)
    if structure != structure_of(expected):
        raise AssertionError(f"element {index}: got {structure!r}, expected {structure_of(expected)!r}")
    pairs = zip(structure.paths(), structure.flatten(got), structure.flatten(expected), strict=True)
    for path, mine, theirs in pairs:
        if not _equal(mine, theirs):
            raise AssertionError(f"element {index}{path}: got {_shown(mine)}, expected {_shown(theirs)}")


def _equal(got: Any, expected: Any) -> bool:
    if is_dataset(got) and is_dataset(expected):
        return _produce_equal(got, expected)
    if type(got) is not type(expected):
        return False
    if isinstance(got, np.ndarray | np.generic):
        same_kind = got.dtype == expected.dtype and got.shape == expected.shape
        if same_kind and got.dtype == object:
            return all(map(_equal, got.ravel(), expected.ravel()))
        return same_kind and np.array_equal(got, expected, equal_nan=got.dtype.kind in "fcmM")
    if isinstance(got, SparseTensor):
        parts = ("indices", "values", "dense_shape")
        return all(_equal(getattr(got, part), getattr(expected, part)) for part in parts)
    if isinstance(got, RaggedTensor):
        if got.shape != expected.shape:
            return False
        mine, theirs = ([part.flat_values, *part.nested_row_splits] for part in (got, expected))
        return len(mine) == len(theirs) and all(map(_equal, mine, theirs))
    return bool(got == expected)


def _produce_equal(got: Any, expected: Any) -> bool:
    try:
        assert_elements_equal(outcomes(iter(got)), outcomes(iter(expected)))
    except AssertionError:
        return False
    return True


def _shown(value: Any) -> str:
    if is_dataset(value):
        return f"a dataset of {outcomes(iter(value))!r:.500}"
    return f"{value.dtype} {value}" if isinstance(value, np.ndarray | np.generic) else repr(value)

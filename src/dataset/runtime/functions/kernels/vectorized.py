"""Vectorized functions: how they are marked and called, their arguments, and what they may return."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.origin import function_name
from dataset.plan.packed import BytesColumn, is_packed
from dataset.plan.structure import LEAF, StructureMismatchError, is_tuple, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor, object_column
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Chunk, Column, Outcome
from dataset.runtime.chunks.normalization import canonical_array, chunk_of_rows, is_canonical
from dataset.runtime.chunks.ownership import own
from dataset.runtime.chunks.slicing import rows_of
from dataset.runtime.functions.kernels.kernel import Calls, Done, Kernel, outcomes_of_output
from dataset.runtime.resources.exceptions import as_error_of_element, with_location
from dataset.world.interrupts import call

VECTORIZED = "__dataset_vectorized__"

F = TypeVar("F", bound=Callable[..., Any])


def vectorized(function: F) -> F:
    """Mark a function as one that takes whole columns, so that ``map`` and ``filter`` call it once for many elements.

    Instead of each component, the function gets an array with a leading axis of size n. Text is passed as an object
    array of ``bytes``, and arrays of different shapes as an object array. It must return components with a leading axis
    of size n: arrays, or lists of arrays that differ in shape, such as the tokens of n texts. Put such a list into a
    dict, because ``map`` interprets a returned list as a tuple of components. n varies from call to call and may be 1.
    The function must treat elements independently. It can still be called directly, and with arguments bound by
    ``functools.partial``.

    Args:
        function: the function to mark; also usable as a decorator.

    Returns:
        The same function.

    >>> import dataset
    >>> @dataset.vectorized
    ... def scaled(image):
    ...     return image / 255
    >>> images = np.full((4, 2), 51, np.uint8)
    >>> next(iter(dataset.Dataset.from_tensor_slices(images).map(scaled).batch(4)))[0]
    array([0.2, 0.2])
    """
    setattr(function, VECTORIZED, True)
    return function


def is_vectorized(function: Callable[..., Any]) -> bool:
    """Return whether a function, or the function of a ``functools.partial``, is marked as vectorized."""
    while type(function) is functools.partial:
        if VECTORIZED in vars(function):
            break
        function = function.func
    return bool(getattr(function, VECTORIZED, False))


def require_one_by_one(op: str, argument: str, function: Callable[..., Any]) -> None:
    """Raise TypeError for a vectorized function where elements are passed one by one."""
    if is_vectorized(function):
        raise TypeError(
            f"{op}(): {argument} is called for one element at a time, but {function_name(function)} is marked as "
            "vectorized and requires whole columns"
        )


class VectorizedKernel(Kernel):
    """Kernel that calls a vectorized function for all elements at once, or, if it fails, for each of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def run(self, calls: Calls, inputs: Chunk, position: int) -> Done:
        if inputs.length > 1:
            with contextlib.suppress(Exception):
                return done_at_once(calls, inputs, self._result(inputs))
        outcomes: list[Outcome] = []
        try:
            for index in range(inputs.length):
                outcomes += self._outcomes(calls, inputs.slice(index, index + 1), position + index)
                if calls.stops:
                    break
            return Done(inputs.length, outcomes)
        finally:
            del outcomes  # see runtime/contract.py on exceptions that are kept

    def _outcomes(self, calls: Calls, element: Chunk, position: int) -> list[Outcome]:
        try:
            return done_at_once(calls, element, self._result(element)).outcomes
        except Exception as error:  # noqa: BLE001  # raised in its place
            return [with_location(error, calls.node, position)]

    def _result(self, inputs: Chunk) -> Any:
        given = column_arguments(inputs)
        try:
            return own(call(self._function, *given), given)
        except GeneratorExit as error:
            raise as_error_of_element(error) from None


def done_at_once(calls: Calls, inputs: Chunk, result: Any) -> Done:
    """Return the outcomes for the result of a function for columns.

    Raises:
        SpecError: for a result of another structure.
    """
    try:
        output = calls.finish_columns(inputs, result)
    except StructureMismatchError:
        raise SpecError(calls.mismatch(result)) from None
    return Done(inputs.length, outcomes_of_output(output, inputs))


def column_arguments(inputs: Chunk) -> list[Any]:
    """Return the arguments of a vectorized function: the structure of an element with whole columns in it."""
    columns: list[Any] = []
    for column in inputs.columns():
        try:
            columns.append(column if isinstance(column, BytesColumn) else stack_column(column))
        except ColumnMismatchError:
            columns.append(object_column(column))
    element = inputs.structure.unflatten(columns)
    return list(element) if is_tuple(inputs.structure) else [element]


def _as_column(component: Any) -> Column:
    if type(component) is np.ndarray and is_canonical(component):
        return component
    if isinstance(component, list) or is_packed(component):
        return component  # type: ignore[return-value]  # it takes the place of a list
    if isinstance(component, RaggedTensor | SparseTensor):
        return rows_of(component)
    column = canonical_array(component)
    if column.dtype == object and column.ndim == 1 and not set(map(type, column)) <= {bytes}:
        return list(column)  # a list may hold arrays of different shapes
    return column


def chunk_of_columns(result: Any, length: int, given: Sequence[Column] = (), *, to_be_stacked: bool = False) -> Chunk:
    """Convert the result of a vectorized function to a chunk: each component is an array or list of ``length`` values.

    Args:
        result: the result of the function.
        length: how many elements it was given.
        given: columns that belong to another owner. If the function returns them, their numbers and rows are copied or
            listed as if a function had returned them one by one.
        to_be_stacked: whether rows will be copied into arrays anyway.

    Raises:
        SpecError: if a component has another length, or none.
    """
    structure = structure_of(result)
    columns: list[Column] = []
    for index, component in enumerate(structure.flatten(result)):
        column = _as_column(component)
        if (isinstance(column, np.ndarray) and column.ndim == 0) or len(column) != length:
            shape = "a scalar" if np.ndim(component) == 0 else f"{len(column)} values"
            advice = "; a list or tuple contains one column per component" if is_tuple(structure) else ""
            raise SpecError(
                f"a vectorized function must return columns of {length} values, one for each input element; "
                f"{structure.component_name(index)} has {shape}{advice}"
            )
        if isinstance(column, list):
            column = list(chunk_of_rows(column, LEAF).columns()[0]) if column else column
        if any(_share_memory(column, other) for other in given):
            keeps_rows = isinstance(column, list) or (column.ndim > 1 and not to_be_stacked)
            column = list(column) if keeps_rows else column.copy()
        # The same array twice in one element would make two components share memory.
        columns.append(column.copy() if any(_share_memory(column, other) for other in columns) else column)
    return Chunk(structure, length, columns)


def _share_memory(column: Column, other: Column) -> bool:
    are_arrays = type(column) is np.ndarray and type(other) is np.ndarray
    return column is other or (are_arrays and np.may_share_memory(column, other))


def are_identical(a: Chunk | None, b: Chunk | None) -> bool:
    """Return whether two chunks hold the same objects, or equal values of the library's types, bit for bit."""
    if a is None or b is None:
        return a is b
    if a.structure != b.structure or a.length != b.length:
        return False
    return all(map(_is_same_column, a.columns(), b.columns()))


def _is_same_column(a: Column, b: Column) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return all(map(is_same, a, b))
    try:
        x, y = stack_column(a), stack_column(b)
    except ColumnMismatchError:
        return False
    return is_same(x, y)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two components are the same object, or equal values of one type of the library, bit for bit."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is np.ndarray:
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return all(map(is_same, a.ravel(), b.ravel())) if a.dtype == object else a.tobytes() == b.tobytes()
    return kind in {bytes, RaggedTensor, SparseTensor} and bool(a == b)

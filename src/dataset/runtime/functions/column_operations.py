"""Operations on columns: what an operator, a function or a method gives for each of n elements, computed at once.

``ColumnValues`` are the values that one expression has for n elements. The result of each operation here equals, bit
for bit and with the same types, dtypes, shapes and memory layout, what it gives for each element by itself. Only the
payload of a NaN may differ. The operands decide how the result is computed:

- At once, where NumPy gives for an array exactly what it gives for each row in it. That holds for operators and
  functions whose results are exact or correctly rounded according to IEEE 754 (+ - * /, comparisons, sqrt, floor and
  similar ones), for // and %, which use the same C code for both, for functions that only move values, and for
  reductions of rows that are contiguous and fit into one buffer, since they then add in the same order.
- One by one otherwise. NumPy has several loops for exp, sin, ** and similar ones, which may differ in the last bit, and
  chooses one by an element's position; maximum and minimum choose among zeros of both signs in such a way, too. All
  functions here are without side effects, so that it does not matter how often they are called.

If neither is possible, because the results differ in shape or are no numbers, the operation raises an error.

A result is a view of an operand exactly if it is for each element by itself. Where it has to be a copy instead, as that
of a row of a table, ``ColumnValues.source`` says so.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import BuiltinFunctionType, EllipsisType, FunctionType, MappingProxyType, NoneType
from typing import Any

import numpy as np

from dataset.runtime.functions.bytecode import NotProvedError

_CODES = "?bBhHiIlLqQefd"
NUMBERS: frozenset[np.dtype[Any]] = frozenset(map(np.dtype, _CODES))
"""The supported dtypes; larger floats contain unused bits."""

_RESULTS = NUMBERS.union(map(np.dtype, "FD"))
"""Dtypes of results. Those with complex numbers are computed one by one, and so are operations with them."""

_REAL = frozenset(code for code in _CODES if np.dtype(np.dtype(code).str).char == code)
_OPERANDS = _REAL | {"F", "D"}
"""Codes of the dtypes of operands. Which of two codes for the same numbers a result has varies."""

SCALARS = frozenset(np.dtype(code).type for code in _CODES)
"""The types of NumPy's numbers."""

_PYTHON = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64)}
_PLAIN = frozenset({*_PYTHON, str, EllipsisType, NoneType})
_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(eq=False, slots=True)
class ColumnValues:
    """The values of one expression for n elements.

    Attributes:
        values: an array whose first axis counts the elements.
        is_python: whether each value is a Python number, which adapts to the dtype of arrays and of NumPy's numbers.
        is_array: whether each value is an array even if it has no axes; NumPy computes powers of these differently.
        source: an array, if the values are copies here, but views of this array if each is computed by itself.
    """

    values: np.ndarray[Any, Any]
    is_python: bool = False
    is_array: bool = False
    source: np.ndarray[Any, Any] | None = None

    @property
    def rank(self) -> int:
        """The number of axes of each value."""
        return self.values.ndim - 1

    @property
    def are_contiguous(self) -> bool:
        """Whether each value is contiguous in C order."""
        return self.values.flags.c_contiguous or self.values.ndim == 1 or self.values[0].flags.c_contiguous

    def __array__(self, *_: Any) -> Any:
        raise TypeError("rows are given to NumPy as an operand that is the same for all elements")

    def each(self) -> Iterator[Any]:
        """Yield the values as objects."""
        if self.is_python:
            return map(np.generic.item, self.values)
        return (self.values[i, ...] for i in range(len(self.values))) if self.is_array else iter(self.values)


def require(condition: Any, reason: str | None = None) -> None:
    """Raise NotProvedError if a condition is false."""
    if not condition:
        raise NotProvedError(reason)


# The general path: one by one, with the first value as the pattern of the others


def _apply(single: Any, at_once: Any, positional: Sequence[Any], keywords: Mapping[str, Any] = _EMPTY) -> Any:
    """Return what ``single`` gives for each element; ``at_once`` may compute it, or raise NotProvedError."""
    operands, names, count = [*positional, *keywords.values()], tuple(keywords), len(positional)
    columns = _columns_in(operands)
    n = len(columns[0])
    rows = zip(*(stream(operand, n) for operand in operands), strict=False)
    results: Any = itertools.starmap(single, rows)
    if names:
        results = (single(*row[:count], **dict(zip(names, row[count:], strict=True))) for row in rows)
    first = next(results)
    held = (*columns, *(one for one in operands if type(one) is np.ndarray)) if type(first) is np.ndarray else ()
    source = next((array for array in held if np.may_share_memory(first, array)), None)
    if at_once is not None and not any(column.dtype.kind == "c" for column in columns):
        with suppress(NotProvedError, TypeError):  # TypeError: it does not support a parameter
            values = at_once(*positional, **keywords)
            is_scalar = np.ndim(first) == 0
            if is_view := any(np.may_share_memory(values, column) for column in columns):  # like the first, or a copy
                values = values.view() if is_scalar or source is not None else values.copy("K")
            if _is_like(values, first, n):
                is_array = is_scalar and type(first) is np.ndarray
                return ColumnValues(values, type(first) in _PYTHON, is_array, None if is_view else source)
    return _stacked(itertools.chain([first], results), n, source)


def _columns_in(operands: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the columns among the operands and in them, after a check of all."""
    columns = [rows.values for rows in _rows_in(operands)]
    for column in columns:
        require(_is_supported(column.dtype), "it computes with values that are not numbers")
        require(column.size, "it computes with empty arrays")  # NumPy warns by other means than np.errstate
    require(len(set(map(len, columns))) == 1)
    return columns


def _rows_in(operands: Sequence[Any]) -> Iterator[ColumnValues]:
    """Yield the rows among the operands and in them, after a check that the others are constants."""
    for operand in operands:
        kind = type(operand)
        if kind is ColumnValues:
            yield operand
        elif kind is tuple or kind is list:
            yield from _rows_in(operand)
        elif kind is slice:
            yield from _rows_in([operand.start, operand.stop, operand.step])
        elif not _is_constant(operand):
            raise NotProvedError(f"it computes with a value of type {kind.__name__}")


def _is_supported(dtype: np.dtype[Any]) -> bool:
    return dtype.char in _OPERANDS and dtype.isnative


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind is np.ndarray or kind in SCALARS:
        return _is_supported(value.dtype)
    return kind in _PLAIN or isinstance(value, np.dtype) or (kind is type and (value in SCALARS or value in _PYTHON))


def stream(operand: Any, n: int) -> Iterable[Any]:
    """Return the values of an operand, or of what it contains, for each element."""
    kind = type(operand)
    if hasattr(kind, "each"):  # it is a column
        return operand.each()  # type: ignore[no-any-return]
    if kind in {tuple, list} and operand:
        return map(kind, zip(*(stream(item, n) for item in operand), strict=True))
    if kind is slice:
        return map(slice, *(stream(item, n) for item in (operand.start, operand.stop, operand.step)))
    return itertools.repeat(operand, n)


def _is_like(values: Any, first: Any, n: int) -> bool:
    """Return whether a column may be that of results of which one is given."""
    if type(values) is not np.ndarray or values.shape != (n, *np.shape(first)) or values.dtype not in NUMBERS:
        return False
    dtype = _PYTHON.get(type(first)) or first.dtype
    return values.dtype.char == dtype.char and (values.ndim == 1 or _layout(values[0]) == _layout(first))


def _layout(array: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Return how an array is laid out in memory."""
    return [(axis, stride) for axis, stride in enumerate(array.strides) if array.shape[axis] > 1]


def _stacked(results: Iterator[Any], n: int, source: np.ndarray[Any, Any] | None = None) -> Any:
    """Return the results for each element as a column, and tuples as a tuple of columns."""
    first = next(results)
    kind = type(first)
    if kind is np.ndarray and first.dtype in _RESULTS:
        compact = first.size and _layout(first.copy("K")) == _layout(first)
        require(compact, "it computes arrays that are not contiguous")
        storage, strides = np.empty(n * first.size, first.dtype), (first.nbytes, *first.strides)
        values = np.ndarray((n, *first.shape), first.dtype, storage, 0, strides)
        pattern = kind, first.shape, first.dtype, first.strides
        for i, result in enumerate(itertools.chain([first], results)):
            if (type(result), result.shape, result.dtype, result.strides) != pattern:
                raise NotProvedError("it computes arrays of several shapes or dtypes")
            values[i, ...] = result
        return ColumnValues(values, is_array=first.ndim == 0, source=source)
    singles = [first, *results]
    require(len(set(map(type, singles))) == 1, "it computes values of several types")
    if kind is tuple:
        return tuple(_stacked(iter(column), n) for column in zip(*singles, strict=True))
    if kind not in _PYTHON and not (issubclass(kind, np.generic) and first.dtype in _RESULTS):
        raise NotProvedError(f"it computes values of type {kind.__name__}, which are not numbers")
    return ColumnValues(np.array(singles, _PYTHON.get(kind) or first.dtype), kind in _PYTHON)


# Elementwise operations


def _elementwise(function: np.ufunc, operands: Sequence[Any], *, reuse: bool = False) -> ColumnValues:
    """Return the results of a function that computes each item of an array as it computes it alone."""
    arrays = _aligned(operands)
    target = arrays[0]
    reuse = reuse and target.dtype.kind == "f" and target.flags.owndata
    reuse = reuse and np.result_type(*arrays) == target.dtype and np.broadcast(*arrays).shape == target.shape
    return ColumnValues(function(*arrays, out=target if reuse else None))


def _is_simple(operand: Any) -> bool:
    """Return whether arrays computed with it are contiguous, and their dtypes are those of single values."""
    kind = type(operand)
    if kind is ColumnValues:
        values = operand.values
        is_number = values.dtype.char in _REAL and values.dtype.isnative and not operand.is_python
        return is_number and values.size and operand.are_contiguous
    if kind is np.ndarray or kind in SCALARS:
        return _is_supported(operand.dtype) and operand.flags.c_contiguous
    return kind in _PYTHON


def _aligned(operands: Sequence[Any]) -> list[Any]:
    """Return the operands with the axes of the elements aligned at the end, as NumPy aligns those of single values.

    Python numbers adapt to the dtype of the others.
    """
    ranks = [operand.rank if type(operand) is ColumnValues else getattr(operand, "ndim", 0) for operand in operands]
    rank, arrays = max(ranks), list(operands)
    for i, operand in enumerate(operands):
        if type(operand) is ColumnValues:
            values = _adapted(operand, operands) if operand.is_python else operand.values
            arrays[i] = values if ranks[i] == rank else with_rank(values, rank)
    return arrays


def with_rank(values: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
    """Return a column whose elements have this number of axes, with new ones before the others."""
    return values[(slice(None), *[None] * (rank + 1 - values.ndim))]


def _adapted(rows: ColumnValues, operands: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return Python numbers in the dtype in which NumPy computes with them and the other operands."""
    found = [next(operand.each()) if type(operand) is ColumnValues else operand for operand in operands]
    is_alone = all(type(one) in _PYTHON for one in found)
    return rows.values if is_alone else _converted(rows.values, np.result_type(*found))


def _converted(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if values.dtype.kind == "f" and dtype.kind == "f" and dtype.itemsize >= 4:  # rounded once
        return values.astype(dtype)
    with np.errstate(all="ignore"):
        converted = values.astype(dtype)
        same = (converted.astype(values.dtype) == values) & ((converted < 0) == (values < 0))
    require(same.all())
    return converted


def _cast(rows: Any, dtype: Any, copy: bool = True) -> np.ndarray[Any, Any]:  # noqa: ARG001  # _apply copies
    """Return numbers in another dtype, provided that they fit where that is not the same on all platforms."""
    values, dtype = _array(rows, 0), np.dtype(dtype)
    require(dtype in NUMBERS)
    if dtype.kind in "iu" and (values.dtype.kind == "f" or (rows.is_python and values.dtype.kind == "i")):
        limits = np.iinfo(dtype)
        # Python compares ints and floats exactly; NaN is not in any range.
        require(limits.min - 1 < values.min().item() and values.max().item() < limits.max + 1)
    elif rows.is_python:
        return _converted(values, dtype)
    return values.astype(dtype, copy=False)


# Operators


def _named(owner: Any, names: str) -> list[Any]:
    return [operator.attrgetter(name)(owner) for name in names.split()]


def _table(keys: str, owner: Any, names: str) -> dict[str, Any]:
    return dict(zip(keys.split(), _named(owner, names), strict=True))


_FUNCTIONS = "add sub mul truediv floordiv mod and_ or_ xor lshift rshift lt le eq ne gt ge"
_BINARY = _table("+ - * / // % & | ^ << >> < <= == != > >= ** @", operator, _FUNCTIONS + " pow matmul")
_UNARY = _table("- ~ + not", operator, "neg invert pos not_")
_UFUNC_NAMES = "add subtract multiply divide floor_divide remainder bitwise_and bitwise_or bitwise_xor left_shift "
_UFUNC_NAMES += "right_shift less less_equal equal not_equal greater greater_equal negative invert positive"
_UFUNCS = dict(zip(_named(operator, _FUNCTIONS + " neg invert pos"), _named(np, _UFUNC_NAMES), strict=True))
REUSING = frozenset("+-*/")
"""The operators that may write into the memory of an intermediate result."""


def operate(symbol: str, *operands: Any, reuse: bool = False) -> Any:
    """Return the results of an operator.

    Args:
        symbol: as in the source code, without the ``=`` of operators that assign.
        operands: one or two; at least one is ColumnValues, the others are constants: numbers or arrays of numbers.
        reuse: whether the first operand may be overwritten, if it owns its memory.
    """
    single = _single(symbol, operands)
    ufunc = _UFUNCS.get(single)
    if ufunc is not None and all(map(_is_simple, operands)):
        return _elementwise(ufunc, operands, reuse=reuse and symbol in REUSING)
    at_once: Any = {"not": _negated, "**": _power}.get(symbol, ufunc and functools.partial(_exactly, ufunc))
    are_python = all(one.is_python if type(one) is ColumnValues else type(one) in _PYTHON for one in operands)
    if are_python and symbol != "not":
        require(symbol != "~" or operands[0].values.dtype != bool)  # deprecated
        at_once = functools.partial(_among_python, symbol)
    return _apply(single, at_once, operands)


def operate_on_constants(symbol: str, operands: Sequence[Any]) -> Any:
    """Return the result of an operator for constants."""
    return _single(symbol, operands)(*operands)


def _single(symbol: str, operands: Sequence[Any]) -> Any:
    return (_UNARY if len(operands) == 1 else _BINARY)[symbol]


def _exactly(function: np.ufunc, *operands: Any) -> Any:
    return function(*_aligned(operands))


def _negated(value: ColumnValues) -> Any:
    require(value.rank == 0)
    return ~value.values.astype(bool)


_EXACT_POWERS = {int: (-1, 2), float: (0.5,)}
"""The exponents for which ``**`` calls reciprocal, square or sqrt for arrays."""


def _power(base: Any, exponent: Any) -> Any:
    """Return powers of arrays for which NumPy has exact functions, and powers of integers."""
    if type(base) is ColumnValues and base.rank and exponent in _EXACT_POWERS.get(type(exponent), ()):
        return base.values**exponent
    arrays = _aligned([base, exponent])
    require(all(np.asarray(array).dtype.kind in "iu" for array in arrays))
    return np.power(*arrays)


_ORDER = frozenset({"<", "<=", "==", "!=", ">", ">="})
_OF_INTEGERS = frozenset({"//", "%", "&", "|", "^", "~"})
_SMALL = 2**31
"""Results for integers below are exact in 64 bits, also as floats."""


def _among_python(symbol: str, *operands: Any) -> Any:
    """Return the results of an operator for Python numbers only, whose integers are unbounded: for small ones."""
    arrays = [np.asarray(operand.values if type(operand) is ColumnValues else operand) for operand in operands]
    kinds = {array.dtype.kind for array in arrays}
    require(symbol in REUSING | _ORDER or (symbol in _OF_INTEGERS and "f" not in kinds))
    require(all(array.dtype.kind in "bf" or -_SMALL < array.min() <= array.max() < _SMALL for array in arrays))
    if symbol not in "&|^" or kinds != {"b"}:
        arrays = [array.astype(np.int64) if array.dtype == bool else array for array in arrays]
    require(symbol not in {"/", "//", "%"} or arrays[1].all())
    with np.errstate(all="ignore"):  # Python gives infinity without a warning
        return _UFUNCS[_single(symbol, operands)](*arrays)


# Functions

_LOGICAL = frozenset(_named(np, "logical_and logical_or logical_xor"))
_EXACT_UFUNCS = _LOGICAL.union(
    _UFUNCS.values(),
    _named(np, "logical_not absolute fabs sign square isfinite isinf isnan signbit fmod sqrt reciprocal copysign rint"),
    _named(np, "floor ceil trunc"),
)
_ENDLESS = frozenset({"factorial", "comb", "perm"})
"""Functions whose results rarely fit into 64 bits."""

_AT_ONCE: dict[Any, Any] = dict.fromkeys(
    (
        *(value for value in vars(np).values() if type(value) is np.ufunc and value is not np.isnat),
        *(one for name, one in vars(math).items() if type(one) is BuiltinFunctionType and name not in _ENDLESS),
        *(round, min, max, sum, pow, divmod),
        *_named(
            np, "sort argsort cumsum cumprod diff ptp dot vdot inner outer tensordot trace tril triu hstack vstack"
        ),
        *_named(np, "dstack column_stack tile broadcast_to median percentile quantile nan_to_num isclose allclose"),
        *_named(np, "array_equal count_nonzero searchsorted digitize bincount interp convolve correlate linalg.norm"),
        *_named(
            np,
            "linalg.inv linalg.det linalg.solve fft.fft fft.ifft fft.rfft fft.irfft imag angle atleast_1d atleast_2d",
        ),
    )
)
"""The known functions, and how the results for columns are computed at once; None if only one by one."""


def _computes(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(at_once: Callable[..., Any]) -> Callable[..., Any]:
        _AT_ONCE.update((function, functools.partial(at_once, function)) for function in functions)
        return at_once

    return register


_computes(np.where, *_EXACT_UFUNCS - _LOGICAL)(_exactly)  # logical functions look at Python numbers as they are


@_computes(*_named(np, "maximum minimum fmax fmin"))
def _extreme(function: np.ufunc, *operands: Any) -> Any:
    """Return the maxima or minima, unless two zeros or NaNs of different signs meet: either may be chosen."""
    arrays = _aligned(operands)
    result = function(*arrays)
    left, right = sorted((np.asarray(array, result.dtype) for array in arrays), key=np.ndim, reverse=True)
    if result.dtype.kind == "f" and (right.ndim or not (right < 0 or right > 0)):
        alike = (left == right) | (np.isnan(left) & np.isnan(right))
        found = (alike & (np.signbit(left) != np.signbit(right))).any()
        require(not found)
    return result


@_computes(np.clip)
def _clip(_: Any, a: Any, a_min: Any = None, a_max: Any = None, **bounds: Any) -> Any:
    """Return clipped values. Bounds that are single numbers have their own loop, also for a single value."""
    require(bounds.keys() <= {"min", "max"})
    low, high = bounds.get("min", a_min), bounds.get("max", a_max)
    if low is None or high is None:
        return _extreme(np.minimum, a, high) if low is None else _extreme(np.maximum, a, low)
    require(not any(type(bound) is ColumnValues or np.ndim(bound) for bound in (low, high)))
    return np.clip(*_aligned([a, low, high]))


@functools.cache
def _parameters(function: Any) -> dict[str, Any]:
    """Return the names of a function's parameters with their defaults."""
    with suppress(ValueError):  # it is written in C
        return {name: one.default for name, one in inspect.signature(function).parameters.items()}
    return {}


def _array(operand: Any, rank: int = 1) -> np.ndarray[Any, Any]:
    """Return the column of arrays with at least ``rank`` axes."""
    require(type(operand) is ColumnValues and operand.rank >= rank)
    return operand.values  # type: ignore[no-any-return]  # they are ColumnValues


def _moved(axis: Any) -> Any:
    """Return an axis of elements, or several, as axes of their column."""
    return tuple(map(_moved, axis)) if type(axis) in {tuple, list} else operator.index(axis) + (axis >= 0)


_AXES = frozenset({"axis", "axes", "axis1", "axis2", "source", "destination"})
_SUMS = frozenset(_named(np, "mean std var sum prod"))
_REDUCTIONS = _SUMS.union(_named(np, "min max amin amax argmin argmax any all"))


@_computes(*_REDUCTIONS, *_named(np, "flip roll repeat expand_dims squeeze swapaxes moveaxis rot90 diagonal"))
def _along_axes(function: Any, *positional: Any, **keywords: Any) -> Any:
    """Return the results of a function that has parameters for axes."""
    given = _parameters(function) | dict(zip(_parameters(function), positional, strict=False)) | keywords
    rows = given.pop(next(iter(given)))
    values = _array(rows, function is not np.expand_dims)
    require(not any(type(value) is ColumnValues for value in given.values()))
    if function in _REDUCTIONS:
        require(rows.are_contiguous and keywords.keys().isdisjoint({"initial", "mean"}))
        values = _addable(function, values, given["dtype"]) if function in _SUMS else values
    given |= {name: _moved(axes) for name, axes in given.items() if name in _AXES and axes is not None}
    if given.get("axis", 0) is not None:
        return function(values, **given)
    if function is np.flip or function is np.squeeze:
        every = function is np.flip
        return function(values, tuple(i for i, size in enumerate(values.shape) if i and (every or size == 1)))
    result = function(values.reshape(len(values), -1), **given | {"axis": 1})
    if function is np.roll or given.get("keepdims") is True:
        result = result.reshape(values.shape if function is np.roll else (len(values), *[1] * rows.rank))
    return result


def _addable(function: Any, values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return the values in the dtype in which NumPy adds them up, so that it need not convert them in parts."""
    is_sum = function in {np.sum, np.prod}
    kind = values.dtype.kind
    target = np.dtype(dtype) if dtype is not None else values.dtype if kind == "f" or is_sum else np.dtype(np.float64)
    if is_sum and kind != "f" and target.kind != "f":  # exact in any order
        return values.astype(target) if dtype is not None else values
    require(dtype is None or is_sum or function is np.mean)  # others subtract the mean from the values as they are
    require(target.kind == "f" and np.float16 not in {target.type, values.dtype.type})
    require(values[0].size <= np.getbufsize())
    return values.astype(target, copy=False)


for _function, _axis in ((np.flipud, 0), (np.fliplr, 1)):
    _AT_ONCE[_function] = functools.partial(_along_axes, np.flip, axis=_axis)


@_computes(np.reshape, np.ravel)
def _reshape(_: Any, a: Any, *shape: Any) -> Any:
    sizes = shape[0] if shape and type(shape[0]) in {tuple, list} else shape or (-1,)
    return (values := _array(a, 0)).reshape(len(values), *sizes)


@_computes(np.transpose)
def _transpose(_: Any, a: Any, *axes: Any) -> Any:
    order = axes[0] if axes and type(axes[0]) is tuple else axes or range(a.rank)[::-1]
    return _array(a).transpose(0, *map(_moved, order))


@_computes(np.take)
def _take(function: Any, a: Any, indices: Any, axis: Any = None, mode: Any = "raise") -> Any:
    places = indices.values if type(indices) is ColumnValues else np.asarray(indices)
    require(places.dtype.kind in "iu")  # other items are selected by a mask
    if places is not getattr(indices, "values", None):
        return _along_axes(function, a, indices, axis, mode=mode)
    require(not indices.is_python and type(a) is not ColumnValues and axis in {None, 0})
    return np.take(a, places, axis, mode=mode)


@_computes(np.pad)
def _pad(_: Any, array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    require(mode == "constant" and not np.ndim(constant_values))
    widths = np.broadcast_to(pad_width, (array.rank, 2)).tolist()
    return np.pad(_array(array), [(0, 0), *widths], constant_values=constant_values)


@_computes(np.stack, np.concatenate)
def _joined(function: Any, arrays: Any, axis: Any = 0) -> Any:
    n = len(_columns_in(arrays)[0])
    return function([_column(item, n) for item in arrays], _moved(axis))


def _column(item: Any, n: int) -> np.ndarray[Any, Any]:
    """Return an operand as a column; Python numbers do not adapt to the others here."""
    if type(item) is ColumnValues:
        return item.values
    if type(item) in {tuple, list} and any(_rows_in(item)):
        return np.stack([_column(part, n) for part in item], 1)
    value = np.asarray(item)
    return np.broadcast_to(value, (n, *value.shape))


@_computes(np.asarray, np.array, np.ascontiguousarray, np.copy, np.real)
def _as_array(_: Any, a: Any, dtype: Any = None) -> Any:
    if type(a) is ColumnValues:
        return a.values if dtype is None else _cast(a, dtype)
    values = _column(a, len(_columns_in(a)[0]))
    require(dtype is None or np.can_cast(values.dtype, dtype, "same_kind"))
    return values if dtype is None else values.astype(dtype)


@_computes(np.zeros_like, np.ones_like, np.full_like, np.round, np.around)
def _of_each(function: Any, a: Any, *positional: Any, **keywords: Any) -> Any:
    require(function not in {np.round, np.around} or a.values.dtype.kind == "f")
    return function(_array(a, 0), *positional, **keywords)


_computes(*SCALARS)(lambda target, value: _cast(value, target))


@_computes(*_PYTHON)
def _to_python(target: Any, value: Any) -> Any:
    """Return Python numbers."""
    require(value.rank == 0 and (target is not int or value.values.dtype.kind != "u" or value.values.max() < 2**63))
    return _cast(ColumnValues(value.values), _PYTHON[target])


@_computes(abs)
def _absolute(_: Any, value: Any) -> Any:
    require(not value.is_python or value.values.min() > -(2**63))
    return np.absolute(value.values)


_SIZES = {len: "shape", np.shape: "shape", np.ndim: "ndim", np.size: "size"}
"""The functions whose result is the same for all elements, and attributes with it."""

_PURE = frozenset(
    _named(np, "zeros ones full arange linspace logspace eye identity tri diag meshgrid indices hanning hamming")
    + _named(np, "blackman fft.rfftfreq fft.fftfreq dtype finfo iinfo")
)
"""Functions that are only called with constants."""

_KINDS = frozenset({type, np.ufunc, FunctionType, BuiltinFunctionType, type(np.sum)})
"""The types of known functions, whose hashes run no user code."""


def is_known(function: Any) -> bool:
    """Return whether ``call`` takes the function."""
    return type(function) in _KINDS and (function in _AT_ONCE or function in _SIZES)


def is_one_by_one(function: Any) -> bool:
    """Return whether ``call`` always calls the function for each row."""
    return function in _AT_ONCE and _AT_ONCE[function] is None and function not in _LOGICAL


def is_pure(function: Any) -> bool:
    """Return whether a call has no side effects if its operands are constants, as ``call`` takes them."""
    return is_known(function) or (type(function) in _KINDS and function in _PURE)


def why_unknown(function: Any) -> str | None:
    """Return the reason why ``call`` does not take a function, in words for users; None if there is none to tell."""
    module = getattr(function, "__module__", None) or "" if type(function) in _KINDS else ""
    if module.partition(".")[0] != "numpy" or is_known(function):
        return None
    return f"it calls {module.replace('numpy', 'np', 1)}.{function.__name__}, which is only called for single elements"


_REFUSED = frozenset({"out", "where", "overwrite_input", "like", "subok", "key"})
_POSITIONAL_MAX = {np.dot: 2, np.concatenate: 2, np.array: 2, np.asarray: 2, np.nan_to_num: 1}


def _require_new_results(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Check that a call writes into no array that it is given."""
    names, most = list(_parameters(function)), _POSITIONAL_MAX.get(function, math.inf)
    most = function.nin if type(function) is np.ufunc else names.index("out") if "out" in names else most
    refused = _REFUSED | {"copy"} if function is np.nan_to_num else _REFUSED
    is_new = len(positional) <= most and refused.isdisjoint(keywords)
    require(is_new, "it calls a function with an array for its results")


def call(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any] = _EMPTY) -> Any:
    """Return the results of a known function: columns, or a constant that is the same for each element.

    Operands are columns, constants, and tuples, lists and slices of both.
    """
    if function in _SIZES and len(positional) == 1 and not keywords and type(positional[0]) is ColumnValues:
        sizes = attribute(positional[0], _SIZES[function])
        return sizes[0] if function is len else sizes
    is_exact = function in _EXACT_UFUNCS and not keywords and len(positional) == function.nin
    if is_exact and all(map(_is_simple, positional)):
        return _elementwise(function, positional)
    if function in _PYTHON or getattr(function, "__module__", None) == "math":
        takes_these = not any(rows.rank for rows in _rows_in(positional))  # others are deprecated
        require(takes_these, f"it calls {function.__name__}() with an array, but it takes single numbers")
    return _called(function, function, positional, keywords)


def _called(single: Any, function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the results of a known function, or of the method ``single`` that does the same."""
    _require_new_results(function, positional, keywords)
    if function is np.var or function is np.std:  # NumPy warns about a lack of freedom by other means than np.errstate
        row, given = positional[0].values[0], {**dict(zip(("a", "axis"), positional, strict=False)), **keywords}
        count = row.size // np.any(row, axis=given.get("axis")).size
        require(count > given.get("ddof", given.get("correction", 0)))
    return _apply(single, _AT_ONCE.get(function, function), positional, keywords)


def call_on_constants(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of a known or pure function of constants."""
    _require_new_results(function, positional, keywords)
    return function(*positional, **keywords)


# Methods and attributes

_METHOD_NAMES = (
    "clip reshape ravel squeeze transpose swapaxes copy take mean std var sum prod min max argmin argmax any "
)
_METHOD_NAMES += "all round cumsum cumprod argsort repeat dot diagonal trace"
_METHODS = _table(_METHOD_NAMES, np, _METHOD_NAMES) | {"flatten": np.ravel, "astype": _cast}
_METHODS["item"] = lambda value: _to_python(type(value.values[0].item()), value)
"""The methods of arrays, and the functions that compute the same."""

KNOWN_METHODS = frozenset(_METHODS)
KNOWN_ATTRIBUTES = frozenset({"shape", "ndim", "size", "dtype", "T", "real", "imag"})


def _of_numpy(owner: Any) -> Any:
    """Return a column, or an array, whose methods, attributes and items are known."""
    is_column = type(owner) is ColumnValues
    require(not is_column or not owner.is_python, "it uses a Python number as an array")
    require(is_column or type(owner) is np.ndarray)
    return owner


def method(owner: Any, name: str, positional: Sequence[Any], keywords: Mapping[str, Any] = _EMPTY) -> Any:
    """Return the results of a method of arrays and NumPy numbers, as ``call`` does."""

    def single(owner: Any, *positional: Any, **keywords: Any) -> Any:
        return getattr(owner, name)(*positional, **keywords)

    return _called(single, _METHODS[name], [_of_numpy(owner), *positional], keywords)


def method_of_constant(owner: Any, name: str, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of a method of an array or a NumPy number that is the same for each element."""
    require(name in _METHODS)
    _require_new_results(_METHODS[name], [owner, *positional], keywords)
    return getattr(owner, name)(*positional, **keywords)


def attribute(owner: ColumnValues, name: str) -> Any:
    """Return an attribute of arrays and NumPy numbers: ColumnValues for ``T``, otherwise a constant."""
    values = _of_numpy(owner).values
    if name == "T":
        return _apply(operator.attrgetter(name), _AT_ONCE[np.transpose], [owner])
    if name in {"real", "imag"}:
        require(values.dtype.kind == "c")
        return ColumnValues(getattr(values, name), is_array=owner.is_array)
    return {"shape": values.shape[1:], "ndim": owner.rank, "size": values[0].size, "dtype": values.dtype}[name]


def subscript(owner: Any, key: Any) -> Any:
    """Return the items at a key; the owner, the key or parts of it are ColumnValues, the others are constants."""
    return _apply(operator.getitem, _items, [_of_numpy(owner), key])


def _items(owner: Any, key: Any) -> Any:
    if type(owner) is not ColumnValues or type(key) in {list, np.ndarray}:
        return _take(np.take, owner, key, 0)
    keys = key if type(key) is tuple else (key,)
    require(all(type(item) in {int, slice, NoneType, EllipsisType} for item in keys))
    return _array(owner)[(slice(None), *keys)]

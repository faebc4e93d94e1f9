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

The results of subscripts, ``reshape``, ``ravel``, ``squeeze``, ``expand_dims``, ``transpose``, ``T``, ``swapaxes``,
``moveaxis``, ``flip``, ``fliplr``, ``flipud``, ``rot90``, ``asarray`` and casts to the same dtype may be views of the
operand.
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

_SCALARS = frozenset(np.dtype(code).type for code in _CODES)
_COMPLEX: frozenset[np.dtype[Any]] = frozenset({np.dtype(np.complex64), np.dtype(np.complex128)})
"""Dtypes of intermediate results; operations with complex numbers are computed one by one."""

_PYTHON = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64)}


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of one expression for n elements.

    Attributes:
        values: an array whose first axis counts the elements.
        is_python: whether each value is a Python number, which adapts to the dtype of arrays and of NumPy's numbers.
        is_array: whether each value is an array even if it has no axes; NumPy computes powers of these differently.
    """

    values: np.ndarray[Any, Any]
    is_python: bool = False
    is_array: bool = False

    @property
    def rank(self) -> int:
        """The number of axes of each value."""
        return self.values.ndim - 1

    @property
    def are_contiguous(self) -> bool:
        """Whether each value is contiguous in C order."""
        return self.values.flags.c_contiguous or self.rank == 0 or self.values[0].flags.c_contiguous

    def __array__(self, *_: Any) -> Any:
        raise TypeError("rows are given to NumPy as an operand that is the same for all elements")

    def each(self) -> Iterator[Any]:
        """Yield the values as objects."""
        if self.is_python:
            return map(np.generic.item, self.values)
        return (self.values[i, ...] for i in range(len(self.values))) if self.is_array else iter(self.values)


# The general path: one by one, with the first value as the pattern of the others


def _apply(
    single: Callable[..., Any],
    at_once: Callable[..., Any] | None,
    positional: Sequence[Any],
    keywords: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return what ``single`` gives for each element; ``at_once`` may compute it, or raise NotProvedError."""
    operands, names, count = [*positional, *keywords.values()], tuple(keywords), len(positional)
    n = _length(operands)
    streams = [_stream(operand, n) for operand in operands]
    if names:
        streams[count:] = [(dict(zip(names, values, strict=True)) for values in zip(*streams[count:], strict=True))]
        results: Iterator[Any] = (single(*values, **named) for *values, named in zip(*streams, strict=True))
    else:
        results = map(single, *streams)
    first = next(results)
    if at_once is not None and not any(rows.values.dtype in _COMPLEX for rows in _rows_in(operands)):
        with suppress(NotProvedError, TypeError):  # TypeError: it does not support a parameter
            values = at_once(*positional, **keywords)
            if _is_like(values, first, n):
                if any(values is rows.values for rows in _rows_in(operands)):
                    values = values.view()  # so that it does not own the memory
                is_scalar = values.ndim == 1
                return ColumnValues(
                    values, is_scalar and type(first) in _PYTHON, is_scalar and type(first) is np.ndarray
                )
    return _stacked([first, *results])


def _length(operands: Sequence[Any]) -> int:
    """Return the number of elements, after a check of all operands."""
    lengths = set()
    for rows in _rows_in(operands):
        if not _is_supported(rows.values.dtype):
            raise NotProvedError("it computes with values that are not numbers")
        if not rows.values.size:  # NumPy warns about some, by other means than np.errstate
            raise NotProvedError("it computes with empty arrays")
        lengths.add(len(rows.values))
    if len(lengths) != 1:
        raise NotProvedError
    return lengths.pop()


def _rows_in(operands: Sequence[Any]) -> Iterator[ColumnValues]:
    """Yield the rows among the operands and in them, after a check that the others are constants."""
    for operand in operands:
        kind = type(operand)
        if kind is ColumnValues:
            yield operand
        elif kind in {tuple, list}:
            yield from _rows_in(operand)
        elif kind is slice:
            yield from _rows_in([operand.start, operand.stop, operand.step])
        elif not _is_constant(operand):
            raise NotProvedError(f"it computes with a value of type {kind.__name__}")


def _is_supported(dtype: np.dtype[Any]) -> bool:
    """Return whether values may have the dtype. Which of two codes for the same numbers a result has varies."""
    return dtype in NUMBERS | _COMPLEX and dtype.char == np.dtype(dtype.str).char


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind is np.ndarray or kind in _SCALARS:
        return _is_supported(value.dtype)
    if kind is type:
        return value in _SCALARS or value in _PYTHON
    return kind in _PYTHON or kind in {str, EllipsisType, NoneType} or isinstance(value, np.dtype)


def _stream(operand: Any, n: int) -> Iterable[Any]:
    """Return the values of an operand, or of what it contains, for each element."""
    kind = type(operand)
    if kind is ColumnValues:
        return operand.each()  # type: ignore[no-any-return]  # they are ColumnValues
    if kind in {tuple, list} and operand:
        return map(kind, zip(*(_stream(item, n) for item in operand), strict=True))
    if kind is slice:
        return map(slice, *(_stream(item, n) for item in (operand.start, operand.stop, operand.step)))
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


def _stacked(results: list[Any]) -> Any:
    """Return the results for each element as a column, and tuples as a tuple of columns."""
    first, kind = results[0], type(results[0])
    if len(set(map(type, results))) > 1:
        raise NotProvedError("it computes values of several types")
    if kind is tuple:
        return tuple(_stacked(list(column)) for column in zip(*results, strict=True))
    if kind in _PYTHON:
        return ColumnValues(np.array(results, _PYTHON[kind]), is_python=True)
    if not issubclass(kind, np.ndarray | np.generic) or first.dtype not in NUMBERS | _COMPLEX:
        raise NotProvedError(f"it computes values of type {kind.__name__}, which are not numbers")
    if kind is not np.ndarray:
        return ColumnValues(np.array(results, first.dtype))
    order = sorted(range(first.ndim), key=lambda axis: -first.strides[axis])
    storage = np.empty((len(results), *(first.shape[axis] for axis in order)), first.dtype)
    values = storage.transpose(0, *(1 + order.index(axis) for axis in range(first.ndim)))
    if not first.size or _layout(values[0]) != _layout(first):
        raise NotProvedError("it computes arrays that are not contiguous")
    for i, result in enumerate(results):
        if result.shape != first.shape or result.dtype != first.dtype or result.strides != first.strides:
            raise NotProvedError("it computes arrays of several shapes or dtypes")
        values[i, ...] = result
    return ColumnValues(values, is_array=first.ndim == 0)


# Elementwise operations


def _elementwise(
    function: np.ufunc, single: Callable[..., Any], operands: Sequence[Any], *, reuse: bool = False
) -> Any:
    """Return the results of a function that computes each item of an array as it computes it alone."""
    if not all(map(_is_simple, operands)):
        adapts = function not in _LOGICAL  # these look at Python numbers as they are
        return _apply(single, (lambda *operands: function(*_aligned(operands))) if adapts else None, operands)
    _length(operands)
    arrays = _aligned(operands)
    target = arrays[0]
    if reuse and target.dtype.kind == "f" and target.flags.owndata and target.flags.writeable:
        shapes = [array.shape for array in arrays if type(array) is np.ndarray]
        if np.result_type(*arrays) == target.dtype and np.broadcast_shapes(*shapes) == target.shape:
            return ColumnValues(function(*arrays, out=target))
    result = function(*arrays)
    if result.dtype not in NUMBERS:
        raise NotProvedError("it computes values that are not numbers")
    return ColumnValues(result)


_LOGICAL = frozenset([np.logical_and, np.logical_or, np.logical_xor])


def _is_simple(operand: Any) -> bool:
    """Return whether arrays computed with it are contiguous, and their dtypes are those of single values."""
    if type(operand) is ColumnValues:
        return not operand.is_python and operand.are_contiguous and operand.values.dtype in NUMBERS
    return type(operand) is not np.ndarray or operand.flags.c_contiguous


def _aligned(operands: Sequence[Any], adapted: slice = slice(None)) -> list[Any]:
    """Return the operands with the axes of the elements aligned at the end, as NumPy aligns those of single values.

    Python numbers adapt to the dtype of the others in the slice ``adapted``.
    """
    rank = max(operand.rank if type(operand) is ColumnValues else np.ndim(operand) for operand in operands)
    dtype = _common_dtype(operands[adapted])
    arrays = []
    for position, operand in enumerate(operands):
        if type(operand) is not ColumnValues:
            arrays.append(operand)
            continue
        values = operand.values
        if operand.is_python and dtype is not None and position in range(*adapted.indices(len(operands))):
            values = _adapted(values, dtype)
        arrays.append(values[(slice(None), *[None] * (rank - operand.rank))] if operand.rank < rank else values)
    return arrays


def _common_dtype(operands: Sequence[Any]) -> np.dtype[Any] | None:
    """Return the dtype in which NumPy computes with Python numbers and others; None if there are none of both."""
    if not any(type(operand) is ColumnValues and operand.is_python for operand in operands):
        return None
    found = []
    for operand in operands:
        if type(operand) is ColumnValues:
            found.append(operand.values[0].item() if operand.is_python else operand.values.dtype)
        else:
            found.append(operand if type(operand) in _PYTHON else operand.dtype)
    return None if all(type(kind) in _PYTHON for kind in found) else np.result_type(*found)


def _adapted(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return Python numbers in another dtype."""
    if values.dtype.kind == "f" and dtype.kind == "f" and dtype.itemsize >= 4:  # rounded once
        return values.astype(dtype)
    with np.errstate(all="ignore"):
        converted = values.astype(dtype)
        same = (converted.astype(values.dtype) == values) & ((converted < 0) == (values < 0))
    if not same.all():
        raise NotProvedError
    return converted


def _extreme(function: np.ufunc, *operands: Any) -> Any:
    """Return the maxima or minima, unless two zeros or NaNs of different signs meet: either may be chosen."""
    arrays = _aligned(operands)
    result = function(*arrays)
    _check_choice(result.dtype, *arrays)
    return result


def _check_choice(dtype: np.dtype[Any], *sides: Any) -> None:
    """Check that no two zeros or NaNs of different signs meet."""
    if dtype.kind != "f":
        return
    left, right = sorted((np.asarray(side, dtype) for side in sides), key=np.ndim, reverse=True)
    if right.ndim or np.isnan(right):
        alike = (left == right) | (np.isnan(left) & np.isnan(right))
        found = (alike & (np.signbit(left) != np.signbit(right))).any()
    elif found := not right:  # a single zero
        integers = np.dtype(f"i{dtype.itemsize}")
        found = (left.view(integers) == (-right).view(integers)).any()
    if found:
        raise NotProvedError


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    """Return clipped values. Bounds that are single numbers have their own loop, also for a single value."""
    if a_min is None or a_max is None:
        lone, function = (a_max, np.minimum) if a_min is None else (a_min, np.maximum)
        return _extreme(function, a, lone)
    arrays = _aligned([a, a_min, a_max])
    result = np.clip(*arrays)
    if any(type(bound) is ColumnValues or np.ndim(bound) for bound in (a_min, a_max)):
        raised = np.maximum(*arrays[:2])
        _check_choice(result.dtype, *arrays[:2])
        _check_choice(result.dtype, raised, arrays[2])
    return result


def _where(condition: Any, x: Any, y: Any) -> Any:
    return np.where(*_aligned([condition, x, y], slice(1, None)))


def _cast(values: ColumnValues, dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers in another dtype, provided that they fit where that is not the same on all platforms."""
    array, dtype = values.values, np.dtype(dtype)
    if dtype not in NUMBERS:
        raise NotProvedError
    if dtype.kind in "iu" and (array.dtype.kind == "f" or (values.is_python and array.dtype.kind == "i")):
        limits = np.iinfo(dtype)
        # Python compares ints and floats exactly; NaN is not in any range.
        if not (limits.min - 1 < array.min().item() and array.max().item() < limits.max + 1):
            raise NotProvedError
    elif values.is_python:
        return _adapted(array, dtype)
    return array.astype(dtype, copy=False)


# Operators

_UFUNCS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_UNARY_UFUNCS = {"-": np.negative, "~": np.invert, "+": np.positive}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "**": operator.pow,
    "@": operator.matmul,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "~": operator.invert,
    "+": operator.pos,
    "not": operator.not_,
}
REUSING = frozenset("+-*/")
"""The operators that may write into the memory of an intermediate result."""


def operate(symbol: str, *operands: Any, reuse: bool = False) -> ColumnValues:
    """Return the results of an operator.

    Args:
        symbol: as in the source code, without the ``=`` of operators that assign.
        operands: one or two; at least one is ColumnValues, the others are constants: numbers or arrays of numbers.
        reuse: whether the first operand may be overwritten, if it owns its memory.
    """
    is_unary = len(operands) == 1
    single = (_UNARY if is_unary else _BINARY)[symbol]
    if all(operand.is_python if type(operand) is ColumnValues else type(operand) in _PYTHON for operand in operands):
        if symbol == "~" and operands[0].values.dtype == bool:  # deprecated
            raise NotProvedError
        return _apply(single, functools.partial(_among_python, symbol), operands)  # type: ignore[no-any-return]  # numbers
    if symbol == "not":
        return _apply(single, lambda value: ~_truth(value), operands)  # type: ignore[no-any-return]  # numbers
    ufunc = (_UNARY_UFUNCS if is_unary else _UFUNCS).get(symbol)
    if ufunc is None:
        return _apply(single, _power if symbol == "**" else None, operands)  # type: ignore[no-any-return]  # numbers
    return _elementwise(ufunc, single, operands, reuse=reuse and symbol in REUSING)  # type: ignore[no-any-return]  # numbers


def operate_on_constants(symbol: str, operands: Sequence[Any]) -> Any:
    """Return the result of an operator for constants."""
    return (_UNARY if len(operands) == 1 else _BINARY)[symbol](*operands)


def _power(base: Any, exponent: Any) -> Any:
    """Return powers of arrays for which NumPy has exact functions, and powers of integers."""
    if type(base) is ColumnValues and base.rank and exponent in _EXACT_POWERS.get(type(exponent), ()):
        return base.values**exponent
    arrays = _aligned([base, exponent])
    if all(
        (array.dtype.kind in "iu") if isinstance(array, np.ndarray | np.generic) else type(array) is int
        for array in arrays
    ):
        return np.power(*arrays)
    raise NotProvedError


_EXACT_POWERS = {int: (-1, 2), float: (0.5,)}
"""The exponents for which ``**`` calls reciprocal, square or sqrt for arrays."""


def _truth(value: ColumnValues) -> np.ndarray[Any, Any]:
    if value.rank:
        raise NotProvedError
    return value.values.astype(bool)


def _among_python(symbol: str, *operands: Any) -> np.ndarray[Any, Any]:
    """Return the results of an operator for Python numbers only, whose integers are unbounded."""
    arrays = [np.asarray(operand.values if type(operand) is ColumnValues else operand) for operand in operands]
    if symbol == "not":
        return arrays[0].astype(bool) ^ True
    kinds = {array.dtype.kind for array in arrays}
    if not kinds <= {"b", "i", "f"}:
        raise NotProvedError
    if symbol not in "&|^" or kinds != {"b"}:
        arrays = [array.astype(np.int64) if array.dtype == bool else array for array in arrays]
    is_order = symbol in _ORDER
    if "f" in kinds or symbol == "/":
        if symbol not in _FLOAT_OPERATORS and not is_order:
            raise NotProvedError
        if any(array.dtype.kind == "i" and max(-int(array.min()), int(array.max())) > _EXACT for array in arrays):
            raise NotProvedError
    elif not is_order and symbol not in "&|^~":
        _check_range(symbol, *([int(array.min()), int(array.max())] for array in arrays))
    if symbol in {"/", "//", "%"} and not arrays[1].all():
        raise ZeroDivisionError
    with np.errstate(all="ignore"):  # Python gives infinity without a warning
        return (_UFUNCS if len(arrays) == 2 else _UNARY_UFUNCS)[symbol](*arrays)  # type: ignore[no-any-return]  # no scalar


_ORDER = frozenset({"<", "<=", "==", "!=", ">", ">="})
_FLOAT_OPERATORS = frozenset("+-*/")
_EXACT = 2**53
"""Up to here each integer is a float."""


def _check_range(symbol: str, *ranges: list[int]) -> None:
    """Check that the results of an integer operator fit into 64 bits, given the ranges of its operands."""
    if symbol in {"<<", ">>"}:
        raise NotProvedError
    if symbol == "%":
        return
    ends = [ends for ends in itertools.product(*ranges) if symbol != "//" or ends[1]]
    if symbol == "//":  # the quotient is largest for 1 and -1
        ends += [(end, divisor) for end in ranges[0] for divisor in (1, -1)]
    single = (_UNARY if len(ranges) == 1 else _BINARY)[symbol]
    if not all(-(2**63) <= single(*operands) < 2**63 for operands in ends):
        raise NotProvedError


# Functions

_AT_ONCE: dict[Any, Callable[..., Any] | None] = {}
"""The known functions, and how the results for columns are computed at once; None if only one by one."""


def _computes(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(at_once: Callable[..., Any]) -> Callable[..., Any]:
        _AT_ONCE.update((function, functools.partial(at_once, function)) for function in functions)
        return at_once

    return register


_EXTREMES = frozenset([np.maximum, np.minimum, np.fmax, np.fmin])
_EXACT_UFUNCS = frozenset(
    (
        *_UFUNCS.values(),
        *_UNARY_UFUNCS.values(),
        *_LOGICAL,
        np.logical_not,
        np.absolute,
        np.fabs,
        np.sign,
        np.square,
        np.isfinite,
        np.isinf,
        np.isnan,
        np.signbit,
        np.fmod,
        np.sqrt,
        np.reciprocal,
        np.copysign,
        np.rint,
        np.floor,
        np.ceil,
        np.trunc,
    )
)
_AT_ONCE |= dict.fromkeys({value for value in vars(np).values() if type(value) is np.ufunc} - {np.isnat})
_AT_ONCE |= {function: functools.partial(_extreme, function) for function in _EXTREMES}
_AT_ONCE |= dict.fromkeys(value for value in vars(math).values() if type(value) is BuiltinFunctionType)
for _endless in (math.factorial, math.comb, math.perm):  # their results rarely fit into 64 bits
    del _AT_ONCE[_endless]
_AT_ONCE |= {np.clip: _clip, np.where: _where}


def _moved(axis: Any) -> Any:
    """Return an axis of elements, or several, as axes of their column."""
    if type(axis) in {tuple, list}:
        return tuple(map(_moved, axis))
    return operator.index(axis) + (axis >= 0)


def _array(operand: Any, rank: int = 1) -> np.ndarray[Any, Any]:
    """Return the column of arrays with at least ``rank`` axes."""
    if type(operand) is not ColumnValues or operand.rank < rank:
        raise NotProvedError
    return operand.values


_ROUNDING = frozenset([np.mean, np.std, np.var, np.sum, np.prod])


@_computes(np.mean, np.std, np.var, np.sum, np.prod)
@_computes(np.min, np.max, np.amin, np.amax, np.argmin, np.argmax, np.any, np.all)
def _reduced(function: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, **deltas: Any) -> Any:
    values = _array(a)
    if not a.are_contiguous or not deltas.keys() <= {"ddof", "correction"}:
        raise NotProvedError
    if function in _ROUNDING:
        values = _addable(function, values, dtype)
    elif dtype is not None:
        raise NotProvedError
    if axis is not None:
        return function(values, axis=_moved(axis), keepdims=keepdims, **deltas)
    result = function(values.reshape(len(values), -1), axis=1, **deltas)
    return result.reshape(len(values), *[1] * a.rank) if keepdims else result


def _addable(function: Any, values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return the values in the dtype in which NumPy adds them up, so that it need not convert them in parts."""
    is_sum = function in {np.sum, np.prod}
    kind = values.dtype.kind
    target = np.dtype(dtype) if dtype is not None else values.dtype if kind == "f" or is_sum else np.dtype(np.float64)
    if is_sum and kind != "f" and target.kind != "f":  # exact in any order
        return values.astype(target) if dtype is not None else values
    if dtype is not None and not (is_sum or function is np.mean):
        raise NotProvedError  # it subtracts the mean from the values as they are
    if target.kind != "f" or np.float16 in {target.type, values.dtype.type} or values[0].size > np.getbufsize():
        raise NotProvedError
    return values.astype(target, copy=False)


@_computes(np.reshape)
def _reshape(_: Any, a: Any, shape: Any) -> Any:
    return (values := _array(a, 0)).reshape(len(values), *(shape if type(shape) in {tuple, list} else (shape,)))


@_computes(np.ravel)
def _ravel(_: Any, a: Any) -> Any:
    return (values := _array(a, 0)).reshape(len(values), -1)


@_computes(np.expand_dims)
def _expand_dims(_: Any, a: Any, axis: Any) -> Any:
    return np.expand_dims(_array(a, 0), _moved(axis))


@_computes(np.squeeze)
def _squeeze(_: Any, a: Any, axis: Any = None) -> Any:
    values = _array(a)
    ones = tuple(i for i, size in enumerate(values.shape) if size == 1 and i)
    return np.squeeze(values, ones if axis is None else _moved(axis))


@_computes(np.transpose)
def _transpose(_: Any, a: Any, axes: Any = None) -> Any:
    values = _array(a)
    axes = range(a.rank)[::-1] if axes is None else [axis % a.rank for axis in axes]
    return values.transpose(0, *(axis + 1 for axis in axes))


@_computes(np.swapaxes, np.moveaxis)
def _exchange(function: Any, a: Any, source: Any, target: Any) -> Any:
    return function(_array(a), _moved(source), _moved(target))


@_computes(np.flip)
def _flip(_: Any, m: Any, axis: Any = None) -> Any:
    return np.flip(_array(m), tuple(range(1, m.rank + 1)) if axis is None else _moved(axis))


@_computes(np.flipud, np.fliplr)
def _flip_sides(function: Any, m: Any) -> Any:
    return np.flip(_array(m), 1 if function is np.flipud else 2)


@_computes(np.rot90)
def _rot90(_: Any, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    if type(k) is not int:
        raise NotProvedError
    return np.rot90(_array(m, 2), k, _moved(axes))


@_computes(np.roll)
def _roll(_: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    values = _array(a)
    if type(shift) not in {int, tuple}:
        raise NotProvedError
    if axis is not None:
        return np.roll(values, shift, _moved(axis))
    return np.roll(values.reshape(len(values), -1), shift, 1).reshape(values.shape)


@_computes(np.pad)
def _pad(_: Any, array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    widths = np.broadcast_to(pad_width, (array.rank, 2)).tolist()
    if mode != "constant" or np.ndim(constant_values):
        raise NotProvedError
    return np.pad(_array(array), [(0, 0), *widths], constant_values=constant_values)


@_computes(np.take)
def _take(_: Any, a: Any, indices: Any, axis: Any = None, **mode: Any) -> Any:
    if type(indices) is ColumnValues and not indices.is_python | (type(a) is ColumnValues) and axis in {None, 0}:
        return np.take(a, indices.values, axis, **mode)
    values = _array(a)
    if type(indices) is ColumnValues:
        raise NotProvedError
    if axis is None:
        return np.take(values.reshape(len(values), -1), indices, 1, **mode)
    return np.take(values, indices, _moved(axis), **mode)


@_computes(np.stack)
def _stack(_: Any, arrays: Any, axis: Any = 0) -> Any:
    return np.stack(_columns(arrays), _moved(axis))


@_computes(np.concatenate)
def _concatenate(_: Any, arrays: Any, axis: Any = 0) -> Any:
    return np.concatenate(_columns(arrays), _moved(axis))


def _columns(items: Any) -> list[np.ndarray[Any, Any]]:
    """Return operands as columns of the same length; Python numbers do not adapt to the others here."""
    if type(items) not in {tuple, list}:
        raise NotProvedError
    n = _length(items)
    columns = []
    for item in items:
        if type(item) in {tuple, list}:
            columns.append(_nested(item) if any(_rows_in(item)) else _repeated(np.array(item), n))
        else:
            columns.append(item.values if type(item) is ColumnValues else _repeated(np.asarray(item), n))
    return columns


def _repeated(value: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    return np.broadcast_to(value, (n, *value.shape))


def _nested(items: Any) -> np.ndarray[Any, Any]:
    return np.stack(_columns(items), 1)


@_computes(np.asarray, np.array, np.ascontiguousarray)
def _as_array(function: Any, a: Any, dtype: Any = None) -> Any:
    if type(a) is ColumnValues:
        values = a.values if dtype is None else _cast(a, dtype)
        return values if function is np.asarray else values.copy("K")
    values = _nested(a)
    if dtype is not None and not np.can_cast(values.dtype, dtype, "same_kind"):
        raise NotProvedError
    return values if dtype is None else values.astype(dtype)


@_computes(np.copy)
def _copy(_: Any, a: Any) -> Any:
    return _array(a, 0).copy()


@_computes(np.zeros_like, np.ones_like)
def _filled_like(function: Any, a: Any, dtype: Any = None) -> Any:
    return function(_array(a, 0), dtype)


@_computes(np.full_like)
def _full_like(_: Any, a: Any, fill_value: Any, dtype: Any = None) -> Any:
    return np.full_like(_array(a, 0), fill_value, dtype)


@_computes(*_SCALARS)
def _to_type(target: Any, value: Any) -> Any:
    return _cast(value, target)


@_computes(*_PYTHON)
def _to_python(target: Any, value: Any) -> Any:
    """Return Python numbers."""
    values = _array(value, 0)
    if value.rank:
        raise NotProvedError
    if target is int and values.dtype.kind == "u":
        _check_range("+", [0, int(values.max())])
    return _cast(ColumnValues(values), _PYTHON[target])


@_computes(abs)
def _absolute(_: Any, value: Any) -> Any:
    values = _array(value, 0)
    if value.is_python and values.dtype.kind != "f":
        values = values.astype(np.int64)
        _check_range("-", [int(values.min()), 0])
    return np.absolute(values)


_AT_ONCE |= dict.fromkeys([round, min, max, sum, pow, divmod])
_AT_ONCE |= dict.fromkeys([np.round, np.around, np.sort, np.argsort, np.cumsum, np.cumprod, np.diff, np.ptp])
_AT_ONCE |= dict.fromkeys([np.dot, np.vdot, np.inner, np.outer, np.tensordot, np.trace, np.diagonal, np.tril, np.triu])
_AT_ONCE |= dict.fromkeys([np.hstack, np.vstack, np.dstack, np.column_stack, np.tile, np.repeat, np.broadcast_to])
_AT_ONCE |= dict.fromkeys([np.median, np.percentile, np.quantile, np.nan_to_num, np.isclose, np.allclose])
_AT_ONCE |= dict.fromkeys([np.array_equal, np.count_nonzero, np.searchsorted, np.digitize, np.bincount, np.interp])
_AT_ONCE |= dict.fromkeys([np.convolve, np.correlate, np.linalg.norm, np.linalg.inv, np.linalg.det, np.linalg.solve])
_AT_ONCE |= dict.fromkeys([np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.atleast_1d, np.atleast_2d])
_AT_ONCE |= dict.fromkeys([np.real, np.imag, np.angle])

_SIZES: dict[Any, Callable[[ColumnValues], Any]] = {
    len: lambda a: a.values.shape[1],
    np.shape: lambda a: a.values.shape[1:],
    np.ndim: lambda a: a.rank,
    np.size: lambda a: math.prod(a.values.shape[1:]),
}
"""The functions whose result is the same for all elements."""

_PURE = frozenset(
    (
        np.zeros,
        np.ones,
        np.full,
        np.arange,
        np.linspace,
        np.logspace,
        np.eye,
        np.identity,
        np.tri,
        np.diag,
        np.meshgrid,
        np.indices,
        np.hanning,
        np.hamming,
        np.blackman,
        np.fft.rfftfreq,
        np.fft.fftfreq,
        np.dtype,
        np.finfo,
        np.iinfo,
    )
)
"""Functions that are only called with constants."""

_KINDS = frozenset({type, np.ufunc, FunctionType, BuiltinFunctionType, type(np.sum)})
"""The types of known functions, whose hashes run no user code."""


def is_known(function: Any) -> bool:
    """Return whether ``call`` takes the function."""
    return type(function) in _KINDS and (function in _AT_ONCE or function in _SIZES)


def is_one_by_one(function: Any) -> bool:
    """Return whether ``call`` always calls the function for each row."""
    return function in _AT_ONCE and _AT_ONCE[function] is None and function not in _EXACT_UFUNCS


def is_pure(function: Any) -> bool:
    """Return whether a call has no side effects if its operands are constants, as ``call`` takes them."""
    return is_known(function) or (type(function) in _KINDS and function in _PURE)


def why_unknown(function: Any) -> str | None:
    """Return the reason why ``call`` does not take a function, in words for users; None if there is none to tell."""
    if type(function) not in _KINDS or is_known(function):
        return None
    module = getattr(function, "__module__", None) or ""
    if module.partition(".")[0] != "numpy":
        return None
    return f"it calls {module.replace('numpy', 'np', 1)}.{function.__name__}, which is only called for single elements"


_REFUSED = frozenset({"out", "where", "overwrite_input", "like", "subok", "key"})


@functools.cache
def _positional_max(function: Any) -> float:
    """Return how many positional operands a function takes before ``out``."""
    if type(function) is np.ufunc:
        return function.nin
    if function in _POSITIONAL_MAX:
        return _POSITIONAL_MAX[function]
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:
        return math.inf
    return names.index("out") if "out" in names else math.inf


_POSITIONAL_MAX = {np.dot: 2, np.concatenate: 2, np.array: 2, np.asarray: 2, np.nan_to_num: 1}


def call(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return the results of a known function: columns, or a constant that is the same for each element.

    Operands are columns, constants, and tuples, lists and slices of both.
    """
    _require_new_results(function, positional, keywords)
    if function in _SIZES and len(positional) == 1 and not keywords and type(positional[0]) is ColumnValues:
        return _SIZES[function](_of_numpy(positional[0]) if function is not np.size else positional[0])
    if function in _EXACT_UFUNCS and not keywords:
        if len(positional) != function.nin:
            raise NotProvedError
        return _elementwise(function, function, positional)
    takes_numbers = function in _PYTHON or getattr(function, "__module__", None) == "math"
    if takes_numbers and any(rows.rank for rows in _rows_in(positional)):  # deprecated
        raise NotProvedError(f"it calls {function.__name__}() with an array, but it takes single numbers")
    if function is np.where and len(positional) != 3:
        raise NotProvedError
    _check_freedom(function, positional, keywords)
    return _apply(function, _AT_ONCE.get(function), positional, keywords)


def call_on_constants(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of a known or pure function of constants."""
    _require_new_results(function, positional, keywords)
    return function(*positional, **keywords)


def _require_new_results(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Check that a call writes into no array that it is given."""
    refused = _REFUSED | {"copy"} if function is np.nan_to_num else _REFUSED
    if len(positional) > _positional_max(function) or not refused.isdisjoint(keywords):
        raise NotProvedError("it calls a function with an array for its results")


def _of_numpy(rows: ColumnValues) -> ColumnValues:
    if rows.is_python:
        raise NotProvedError("it uses a Python number as an array")
    return rows


def _check_freedom(function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Check that variances exist, since NumPy warns about these by other means than np.errstate."""
    if function in {np.var, np.std} and (len(positional) > 3 or keywords.keys() & {"ddof", "correction"}):
        axis = positional[1] if len(positional) > 1 else keywords.get("axis")
        values = positional[0].values[0]
        axes = range(values.ndim) if axis is None else axis if type(axis) is tuple else (axis,)
        delta = keywords.get("ddof", keywords.get("correction", 0))
        if len(positional) > 3 or math.prod(values.shape[axis] for axis in axes) <= delta:
            raise NotProvedError


# Methods and attributes

_METHODS: dict[str, tuple[Any, int]] = {
    "astype": (None, 1),
    "item": (None, 0),
    "clip": (np.clip, 2),
    "reshape": (np.reshape, 9),
    "ravel": (np.ravel, 0),
    "flatten": (np.ravel, 0),
    "squeeze": (np.squeeze, 1),
    "transpose": (np.transpose, 9),
    "swapaxes": (np.swapaxes, 2),
    "copy": (np.copy, 0),
    "take": (np.take, 2),
    "mean": (np.mean, 1),
    "std": (np.std, 1),
    "var": (np.var, 1),
    "sum": (np.sum, 1),
    "prod": (np.prod, 1),
    "min": (np.min, 1),
    "max": (np.max, 1),
    "argmin": (np.argmin, 1),
    "argmax": (np.argmax, 1),
    "any": (np.any, 1),
    "all": (np.all, 1),
    "round": (np.round, 1),
    "cumsum": (np.cumsum, 1),
    "cumprod": (np.cumprod, 1),
    "argsort": (np.argsort, 1),
    "repeat": (np.repeat, 2),
    "dot": (np.dot, 1),
    "diagonal": (np.diagonal, 3),
    "trace": (np.trace, 3),
}
"""The methods of arrays: the function that computes them at once, and how many operands there are before ``out``."""

KNOWN_METHODS = frozenset(_METHODS)
KNOWN_ATTRIBUTES = frozenset({"shape", "ndim", "size", "dtype", "T", "real", "imag"})


def method(owner: Any, name: str, positional: Sequence[Any], keywords: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return the results of a method of arrays and NumPy numbers, as ``call`` does."""
    function, _ = _METHODS[name]
    if type(owner) is ColumnValues:
        _of_numpy(owner)
    elif type(owner) is not np.ndarray:
        raise NotProvedError
    _require_new_results_of_method(name, positional, keywords)
    _check_freedom(function, [owner, *positional], keywords)

    def single(owner: Any, *positional: Any, **keywords: Any) -> Any:
        return getattr(owner, name)(*positional, **keywords)

    def at_once(owner: Any, *positional: Any, **keywords: Any) -> Any:
        if name == "astype":
            return _cast(owner, *positional, **keywords)
        if name == "item":
            return _to_python(type(owner.values[0].item()), owner)
        if name in {"reshape", "transpose"} and positional and type(positional[0]) is not tuple:
            positional = (positional,)
        if name == "clip":
            keywords = {f"a_{end}": bound for end, bound in keywords.items()}
        values = (_AT_ONCE[function] or _refuse)(owner, *positional, **keywords)
        return values.copy() if name == "flatten" and values.base is not None else values

    return _apply(single, at_once, [owner, *positional], keywords)


def method_of_constant(owner: Any, name: str, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of a method of an array or a NumPy number that is the same for each element."""
    if name not in _METHODS:
        raise NotProvedError
    _require_new_results_of_method(name, positional, keywords)
    return getattr(owner, name)(*positional, **keywords)


def _require_new_results_of_method(name: str, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    _, positional_max = _METHODS[name]
    if len(positional) > positional_max or not _REFUSED.isdisjoint(keywords):
        raise NotProvedError("it calls a method with an array for its results")


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotProvedError


def attribute(owner: ColumnValues, name: str) -> Any:
    """Return an attribute of arrays and NumPy numbers: ColumnValues for ``T``, otherwise a constant."""
    values = _of_numpy(owner).values
    if name == "T":
        return _apply(operator.attrgetter(name), _AT_ONCE[np.transpose], [owner])
    if name in {"real", "imag"}:
        if values.dtype not in _COMPLEX:
            raise NotProvedError
        return ColumnValues(getattr(values, name), is_array=owner.is_array)
    return {"shape": values.shape[1:], "ndim": owner.rank, "size": values[0].size, "dtype": values.dtype}[name]


def subscript(owner: Any, key: Any) -> Any:
    """Return the items at a key; the owner, the key or parts of it are ColumnValues, the others are constants."""
    if type(owner) is ColumnValues:
        _of_numpy(owner)
    elif type(owner) is not np.ndarray:
        raise NotProvedError
    return _apply(operator.getitem, _items, [owner, key])


def _items(owner: Any, key: Any) -> Any:
    if type(owner) is not ColumnValues:
        return _take(None, owner, key, 0)
    values = _array(owner)
    keys = key if type(key) is tuple else (key,)
    if any(type(item) not in {int, slice, NoneType, EllipsisType} for item in keys):
        return _take(None, owner, key, 0) if type(key) in {list, np.ndarray} else _refuse()
    return values[(slice(None), *keys)]

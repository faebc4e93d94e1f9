"""Calls of a function of the library that a user function makes for each element, shared by the elements of a chunk.

If a user function passes a part of each element to a function of the library, the first of these calls can compute the
results for all elements at once. The later calls return them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, Generic, TypeVar

import numpy as np

from dataset.amounts import FEW_ELEMENTS
from dataset.world import threading

T = TypeVar("T")
R = TypeVar("R")


_UNUSED_MAX = 2048  # results computed in vain, before values are computed one by one for a while
_REST = 32  # how much sooner the next results are computed after a chunk of such values

_NOTHING: dict[int, Any] = {}  # the results if values are computed one by one


class _Current(threading.local):
    """The elements for which this thread calls a user function, one after the other."""

    def __init__(self) -> None:
        self.columns: Callable[[], Sequence[Any]] | None = None
        self.found: dict[SharedCalls[Any, Any], dict[int, Any]] = {}  # results by the ids of the values


_current = _Current()
_ALONE = contextlib.nullcontext()


def calling_for(length: int, columns: Callable[[], Sequence[Any]]) -> contextlib.AbstractContextManager[None]:
    """Declare that a user function is called for each of some elements; ``columns`` returns their components."""
    return _ALONE if length < FEW_ELEMENTS else CallingFor(length, columns, once=True)


class CallingFor:
    """Context in which the calls for some elements are shared.

    Unless it is entered ``once``, it may be entered again for other ones of the elements, in the same thread, and
    ``settle`` must be called after the last time.
    """

    def __init__(self, length: int, columns: Callable[[], Sequence[Any]], *, once: bool = False) -> None:
        self._length, self._columns, self._once = length, columns, once
        self._found: dict[SharedCalls[Any, Any], dict[int, Any]] = {}

    def __enter__(self) -> None:
        self._outer = _current.columns, _current.found
        _current.columns, _current.found = self._columns, self._found

    def __exit__(self, *_: object) -> None:
        _current.columns, _current.found = self._outer
        if self._once:
            self.settle()

    def settle(self) -> None:
        """Drop the results, and note how many no call has taken."""
        for calls, results in self._found.items():
            if results is not _NOTHING:
                calls.settle(self._length, len(results))
        self._found = {}


def shares_calls(function: Callable[..., Any]) -> bool:
    """Return whether a user function seems to make calls that can be shared, judging by the names in its code."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return "parse_single_example" in code.co_names or any(map(_is_sharing, _variables(function, code)))


def _variables(function: Any, code: CodeType) -> Iterator[Any]:
    """Yield the values of variables outside the function that its code names."""
    for name in code.co_names:
        yield function.__globals__.get(name)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # the cell is empty
            yield cell.cell_contents


def _is_sharing(value: Any) -> bool:
    return bool(getattr(type(value), "__dataset_shares_calls__", False))


class SharedCalls(Generic[T, R]):
    """Calls of a function without side effects that are made for many elements at once.

    Args:
        function: returns the results for a list of values. Each is handed out once.
    """

    def __init__(self, function: Callable[[list[T]], list[R]]) -> None:
        self._function = function
        self._unused = 0  # results that no call has taken, less those that were taken

    def result(self, value: T) -> R | None:
        """Return the result for a value that is a component of one of the current elements.

        It is None if the value is not one, if its result has been taken, or if the function fails for any of them.
        """
        found = _current.found.get(self)
        if found is None:
            if _current.columns is None:
                return None
            found = _current.found[self] = self._computed(_current.columns(), value)
        return found.pop(id(value), None)

    def _computed(self, columns: Sequence[Any], value: T) -> dict[int, R]:
        """Return the results by the ids of the values, which the current elements keep alive."""
        if self._unused >= _UNUSED_MAX:
            self._unused -= _REST
            return _NOTHING
        for column in columns:
            values = column.tolist() if isinstance(column, np.ndarray) and column.dtype.hasobject else column
            if type(values) is list and any(item is value for item in values):
                with contextlib.suppress(Exception):  # the call for the single value shows which one failed
                    return dict(zip(map(id, values), self._function(values), strict=True))
        return _NOTHING

    def settle(self, count: int, unused: int) -> None:
        """Note that the calls for ``count`` elements have ended, and left some results."""
        self._unused = max(0, self._unused + 2 * unused - count)

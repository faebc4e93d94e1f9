"""Calls of a function of the library that a user function makes for each element, shared by the elements of a chunk.

If a user function passes a part of each element to a function of the library, the first of these calls can compute the
results for all elements at once. The later calls return them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["SharedCalls", "calling_for"]

T = TypeVar("T")
R = TypeVar("R")

_LENGTH_MIN = 8  # fewer elements are faster one by one
_UNUSED_MAX = 2048  # results computed in vain, before elements are computed one by one for a while

# The values, kept so that no other object takes their ids; their places by id; and the result by place.
_Found = tuple[list[Any], dict[int, int], Callable[[int], Any]]
_NOTHING: _Found = [], {}, lambda _: None


class _Current(threading.local):
    """The elements for which this thread calls a user function, one after the other."""

    def __init__(self) -> None:
        self.columns: Callable[[], Sequence[Any]] | None = None
        self.found: dict[SharedCalls[Any, Any], _Found] = {}


_current = _Current()


def calling_for(length: int, columns: Callable[[], Sequence[Any]]) -> contextlib.AbstractContextManager[None]:
    """Declare that a user function is called for each of some elements, of which ``columns`` returns the components."""
    return _ALONE if length < _LENGTH_MIN else _calling_for(columns)


_ALONE = contextlib.nullcontext()


@contextlib.contextmanager
def _calling_for(columns: Callable[[], Sequence[Any]]) -> Iterator[None]:
    outer = _current.columns, _current.found
    _current.columns, _current.found = columns, {}
    try:
        yield
    finally:
        _current.columns, _current.found = outer


class SharedCalls(Generic[T, R]):
    """Calls of a function without side effects that are made for many elements at once.

    Args:
        function: takes a list of values, and returns a function from the place of a value to its result.
    """

    def __init__(self, function: Callable[[list[T]], Callable[[int], R]]) -> None:
        self._function = function
        self._unused = 0  # results that no call has returned yet

    def result(self, value: T) -> R | None:
        """Return the result for a value that is a component of one of the current elements.

        It is None if the value is not one, or if the function fails for any of them.
        """
        found = _current.found.get(self)
        if found is None:
            columns = _current.columns
            if columns is None:
                return None
            found = _current.found[self] = self._computed(columns(), value)
        self._unused -= 1
        place = found[1].get(id(value))
        return None if place is None else found[2](place)

    def _computed(self, columns: Sequence[Any], value: T) -> _Found:
        self._unused = max(0, self._unused)  # a result may be returned more than once
        if self._unused >= _UNUSED_MAX:
            return _NOTHING
        for column in columns:
            values = column.tolist() if isinstance(column, np.ndarray) and column.dtype.hasobject else column
            places = {id(item): place for place, item in enumerate(values)} if type(values) is list else {}
            if id(value) in places:
                self._unused += len(values)
                with contextlib.suppress(Exception):  # the call for the single value shows which one failed
                    return values, places, self._function(values)
        return _NOTHING

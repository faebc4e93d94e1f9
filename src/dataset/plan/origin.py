"""Origins: the source lines where users create operations, shown in error notes and plans."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType
from typing import Any, TypeVar

T = TypeVar("T")

_PACKAGE = __name__.partition(".")[0]
_WRAPPERS_MAX = 100  # stops at a function that wraps itself


@dataclass(frozen=True, slots=True)
class Origin:
    """Source line in a user's file or in a notebook cell, which is shown as ``In[3]:1``."""

    filename: str
    line: int

    def __str__(self) -> str:
        name = _cell(self.filename) or os.path.basename(self.filename)  # noqa: PTH119  # may be '<stdin>'
        return f"{name}:{self.line}"


def _cell(filename: str) -> str | None:
    """Return IPython's name of the cell with this source file name, as in its tracebacks: ``In[3]``."""
    ipython = sys.modules.get("IPython")  # if it is running, it is imported
    shell = None if ipython is None else ipython.get_ipython()
    found = None if shell is None else shell.compile.format_code_name(filename)
    return None if found is None else str(found[1])


def caller() -> Origin:
    """Return the innermost line on the stack that is not in the library's own code.

    If the library itself calls for the user, such as in ``interleave(TFRecordDataset)``, it is the line that says so.
    """
    frame = sys._getframe(1)  # noqa: SLF001  # inspect.stack() reads source files, a thousand times slower
    while frame.f_back is not None:
        if frame.f_code is call_for.__code__:
            origin: Origin = frame.f_locals["origin"]
            return origin
        if not _is_ours(frame.f_globals.get("__name__", "")):
            break
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def call_for(origin: Origin, function: Callable[..., T], *args: Any) -> T:  # noqa: ARG001  # caller() reads it from the stack
    """Call a function. Operations that it creates without code of the user have this origin.

    The stack alone would name the thread that calls, or the line that iterates.
    """
    return function(*args)


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of the library."""
    return _is_ours(frame.f_globals.get("__name__", ""))


@functools.cache  # called for each frame of the stack whenever a node is created
def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


def function_name(function: Callable[..., Any]) -> str:
    """Return a short name for a user's function: ``decode``, ``<lambda>``, ``ExampleParser``."""
    function = _innermost(function)
    # NumPy 2.0's ufuncs have only a __name__.
    name = _own(function, "__qualname__") or _own(function, "__name__") or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def defined_at(function: Callable[..., Any]) -> Origin | None:
    """Return the first source line of a function, of a class's ``__init__`` or of an object's ``__call__``.

    None for functions that are not written in Python and for the library's own.
    """
    function = _innermost(function)
    if not isinstance(function, FunctionType):
        cls, method = (function, "__init__") if isinstance(function, type) else (type(function), "__call__")
        function = _innermost(next((vars(base)[method] for base in cls.__mro__ if method in vars(base)), None))
    if not isinstance(function, FunctionType) or _is_ours(function.__module__ or ""):
        return None
    return Origin(function.__code__.co_filename, function.__code__.co_firstlineno)


def _innermost(function: Any) -> Any:
    """Return the function inside partials, bound methods and wrappers made with ``functools.wraps``."""
    for _ in range(_WRAPPERS_MAX):
        if isinstance(function, functools.partial):
            inner = function.func
        elif isinstance(function, MethodType):
            inner = function.__func__
        else:
            inner = _own(function, "__wrapped__")
        if not callable(inner):
            break
        function = inner
    return function


def _own(thing: Any, name: str) -> Any:
    """Return an attribute, or None, without calling a user's ``__getattr__``."""
    try:
        return object.__getattribute__(thing, name)
    except AttributeError:
        return None

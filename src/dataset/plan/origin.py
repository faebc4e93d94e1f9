"""Where a user made an operation: the source line that error notes and plans show."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of a user's source file."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.line}"  # noqa: PTH119  # it may be '<stdin>', not a path


def caller() -> Origin:
    """The innermost line on the stack that is not the library's own."""
    frame = sys._getframe(1)  # noqa: SLF001  # inspect.stack() reads source files, a thousand times slower
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module != _PACKAGE and not module.startswith(f"{_PACKAGE}."):
            break
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def function_name(function: Callable[..., Any]) -> str:
    """A short name for a user's function: ``decode``, ``<lambda>``, ``ExampleParser``."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return name.rpartition("<locals>.")[2]

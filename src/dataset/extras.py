"""Libraries that are loaded at the first call that needs one; those that the package does without are refused in words.

No module imports one at its top, so that ``import dataset`` works, and quickly, without them.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LazyModule", "load_extra"]


class LazyModule:
    """Stands for a module until something of it is asked for, which is found here from then on.

    For what is slow to import, and of no use to pipelines that do without: so it is where a file imports it, and not in
    the functions that need it.

    >>> fractions = LazyModule("fractions")
    >>> fractions.Fraction(2, 4)
    Fraction(1, 2)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


def load_extra(module: str, extra: str, need: str) -> Any:
    """Import a module of a library that an extra of this package brings.

    Args:
        module: its name, such as ``"pyarrow.parquet"``.
        extra: the extra, such as ``"parquet"``.
        need: what takes it, with its verb, such as ``"Parquet needs"``.

    Raises:
        ImportError: if it is not installed, with the command that installs it. What an installed library raises while
            it is imported comes out as it is.

    >>> load_extra("no_such_library", "polars", "from_polars() needs")
    Traceback (most recent call last):
        ...
    ImportError: from_polars() needs no_such_library, which is not installed: pip install "dataset-combinators[polars]"
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and misses something itself
        msg = f'{need} {module}, which is not installed: pip install "dataset-combinators[{extra}]"'
        raise ImportError(msg, name=module) from error

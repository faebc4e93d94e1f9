"""Lazy imports: ``from`` imports of a module that run when one of their names is first used.

They keep ``import dataset`` fast despite its many operators, formats and libraries. Names must be used as
``module.name``, since Python calls a module's ``__getattr__`` (PEP 562) only for attribute access. Type checkers and
the architecture test see ordinary imports. PEP 810 adds the same feature to Python 3.15.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from dataset.world import threading

_installing = threading.RLock()


class _Name:
    """Placeholder for a name that is not yet imported."""

    def __init__(self, module: str, attribute: str) -> None:
        self.module = module
        self.attribute = attribute


class _Names:
    """Placeholder for a module in an import statement of the block."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, attribute: str) -> _Name:
        return _Name(self._module, attribute)


@contextlib.contextmanager
def lazy_imports() -> Iterator[None]:
    r"""Defer the imports of a ``with`` block at the top of a module until the first use of each name.

    The block holds ``from module import name`` statements with absolute module names, and nothing else. A name becomes
    an attribute of the module that holds the block. The module itself must not use it as a global name.

    >>> from dataset import io
    >>> io.decode_raw(b"\x01\x02", "uint8")  # this imports dataset.io.raw
    array([1, 2], dtype=uint8)
    """
    namespace = sys._getframe(2).f_globals  # noqa: SLF001  # of the module, below contextlib's frame
    original = builtins.__import__

    def defer(
        name: str, importer: Any = None, scope: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        if importer is not namespace:  # an import of another thread
            return original(name, importer, scope, fromlist or (), level)
        if not fromlist or level:
            msg = f"lazy_imports() takes only 'from module import name' with an absolute name: {name!r}"
            raise ImportError(msg)
        return _Names(name)

    with _installing:  # nothing is imported while the lock is held, so it cannot meet a lock of the import system
        builtins.__import__ = defer  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = original
    names = {key: value for key, value in namespace.items() if isinstance(value, _Name)}
    for key in names:
        del namespace[key]

    def load(key: str) -> Any:
        if (name := names.get(key)) is None:
            msg = f"module {namespace['__name__']!r} has no attribute {key!r}"
            raise AttributeError(msg)
        held = vars(importlib.import_module(name.module))
        if name.attribute in held:
            value = held[name.attribute]
        else:
            value = importlib.import_module(f"{name.module}.{name.attribute}")
        namespace[key] = value
        return value

    namespace.update(__getattr__=load, __dir__=lambda: sorted({*namespace, *names} - {lazy_imports.__name__}))

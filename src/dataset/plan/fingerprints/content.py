"""Content digests: hashes of values, including their data and the code of functions, for fingerprints.

A function is represented by its bytecode, constants, defaults and captured values, and by the functions of its own
package that it names, so that an edit in any of them changes the digest. Functions of other packages and of this
library count by name: users do not edit them, and they are large. A node counts as its plan, without the results that
it caches. The digest is the same in every process with the same version of Python, also after an iteration.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import sys
import types
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, walk
from dataset.plan.spec import ComponentSpec
from dataset.plan.structure import LEAF, Structure, structure_of

Parts: TypeAlias = tuple[str, Iterable[Any]]
"""The kind of a value, and the values it consists of."""

_SERVICES = {"logging", "threading", "queue", "asyncio", "concurrent", "multiprocessing"}
"""The packages whose objects change while they are used, and determine no element."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class Content:
    """Digest of added values. It handles reference cycles; a function that is reached repeatedly is added once."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=8)
        self._open: set[int] = set()  # ids of the values that are being added
        self._functions: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused

    def digest(self) -> int:
        """Return a 64-bit hash of everything that was added."""
        return int.from_bytes(self._digest.digest(), "little")

    def add_plan(self, plan: Node) -> None:
        """Add a plan."""
        for part in _plan_parts(plan):
            self.add(part)

    def add(self, value: Any) -> None:
        """Add a value."""
        if isinstance(value, _PLAIN):
            self._put(f"{type(value).__name__}:{value!r}")
        elif isinstance(value, np.ndarray | np.generic):
            self._add_array(np.asarray(value))
        elif id(value) in self._open or id(value) in self._functions:
            self._put(f"again {full_name(value)}")
        else:
            self._open.add(id(value))
            if isinstance(value, types.FunctionType):
                self._functions[id(value)] = value
            kind, parts = self._parts(value)
            self._put(kind)
            for part in parts:
                self.add(part)
            self._put("end")
            self._open.remove(id(value))

    def _parts(self, value: Any) -> Parts:
        """Return the parts of a value that is neither plain nor an array."""
        if isinstance(value, set | frozenset) and not all(isinstance(item, _PLAIN) for item in value):
            return "set", sorted(map(self._digest_of, value))
        return _parts(value)

    def _digest_of(self, item: Any) -> int:
        """Return the digest of an item of a set, by which items are sorted: a repr may contain an address."""
        content = copy.copy(self)
        vars(content).update(_digest=hashlib.blake2b(digest_size=8), _functions=self._functions.copy())
        content.add(item)
        return content.digest()

    def _put(self, text: str) -> None:
        self._digest.update(f"{len(text)}:{text}".encode(errors="backslashreplace"))

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        self._put(f"array{array.dtype.str}{array.shape}")
        if array.dtype.hasobject:
            self.add(array.ravel().tolist())
        elif array.size:
            self._digest.update(np.ascontiguousarray(array).view(np.uint8).data)


def _plan_parts(plan: Node) -> list[Any]:
    return [[part.op, len(part.inputs), part.fingerprint_fields()] for part in walk(plan)]


@functools.singledispatch
def _parts(value: Any) -> Parts:
    """Return the parts of any other object: its class, its ``__call__``, and its components or fields."""
    if is_dataset(value) or isinstance(value, Node):
        return "dataset", _plan_parts(value if isinstance(value, Node) else value.plan)
    kind = type(value)
    if _is_own(kind) and "__reduce__" in vars(kind):
        return full_name(kind), value.__reduce__()[1]  # what it was made from, not what it has learned since
    if _package(kind) in _SERVICES:
        return full_name(kind), []
    if _is_value(value) and " at 0x" not in repr(value):
        return "value", [kind, repr(value), getattr(value, "pattern", None)]  # the repr of a regex is cut off
    structure = structure_of(value)
    fields = _fields(value) if structure is LEAF else structure.flatten(value)
    call = vars(kind).get("__call__")
    return full_name(kind), [call if isinstance(call, types.FunctionType) else None, fields]


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object, also those in ``__slots__``, without the results of cached properties."""
    state: Any = object.__getstate__(value)
    found, slots = state if isinstance(state, tuple) else (state, None)
    kind, items = type(value), (found or {}).items()
    return {
        **{name: item for name, item in items if not hasattr(getattr(kind, name, None), "__set_name__")},
        **(slots or {}),
    }


@_parts.register(list)
@_parts.register(tuple)
def _of_sequence(value: Any) -> Parts:
    return full_name(type(value)), value


@_parts.register
def _of_dict(value: dict) -> Parts:  # type: ignore[type-arg]
    return full_name(type(value)), [[key, item] for key, item in value.items()]


@_parts.register(set)
@_parts.register(frozenset)
def _of_set(value: Any) -> Parts:
    return "set", sorted(value, key=repr)


@_parts.register(Structure)
@_parts.register(ComponentSpec)
@_parts.register(np.dtype)
def _of_description(value: Any) -> Parts:
    return repr(value), []


@_parts.register
def _of_partial(value: functools.partial) -> Parts:  # type: ignore[type-arg]
    return "partial", [value.func, value.args, value.keywords]


@_parts.register
def _of_method(value: types.MethodType) -> Parts:
    return "method", [value.__func__, value.__self__]


@_parts.register(type)
@_parts.register(types.BuiltinFunctionType)
@_parts.register(types.ModuleType)
@_parts.register(np.ufunc)
def _of_name(value: Any) -> Parts:
    return full_name(value), []


@_parts.register
def _of_code(value: types.CodeType) -> Parts:
    names = [value.co_names, value.co_varnames, value.co_freevars]
    return "code", [value.co_code, value.co_consts, value.co_exceptiontable, value.co_argcount, value.co_flags, *names]


@_parts.register
def _of_function(value: types.FunctionType) -> Parts:
    own = _is_own(value)
    parts: list[Any] = [full_name(value) if own else value.__code__, value.__defaults__, value.__kwdefaults__]
    for cell in value.__closure__ or ():
        try:
            parts.append(cell.cell_contents)
        except ValueError:
            parts.append("empty cell")  # the function refers to itself before it is defined
    for name in [] if own else sorted(_names(value.__code__)):
        if name in value.__globals__:
            parts += [name, _global(value, value.__globals__[name])]
    return "function", parts


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that a function's code, and the functions inside it, may read."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _global(function: types.FunctionType, value: Any) -> Any:
    """Return a global, or only its name if it is another package's function."""
    foreign = isinstance(value, types.FunctionType) and _package(value) != _package(function)
    return full_name(value) if foreign else value


def _package(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def _is_value(value: Any) -> bool:
    """Return whether an object without fields is an immutable value of the standard library, such as a date."""
    kind: Any = type(value)
    is_hashed = kind.__hash__ not in (None, object.__hash__) and not hasattr(value, "__dict__")
    return is_hashed and _package(kind) in sys.stdlib_module_names


def _is_own(value: Any) -> bool:
    """Return whether a class or function is this library's: it counts by name, so that its code may change."""
    return _package(value) == "dataset"


def full_name(value: Any) -> str:
    """Return the qualified name of a class or function; for any other object, that of its class."""
    named = value if hasattr(value, "__qualname__") or isinstance(value, types.ModuleType) else type(value)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", "")
    return f"{'__main__' if module == '__mp_main__' else module}.{name}"  # __mp_main__: the script in a worker process

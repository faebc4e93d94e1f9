"""A long name for what a plan computes, by content: an edited function or another number in an array changes it.

``fingerprint`` guards a saved state, and must be quick. This guards files that are read in the place of running the
plan, so it looks at everything that can be looked at: arrays by their bytes, functions by their bytecode, constants,
defaults, the values that they close over and the global names that they use. It is the same in every process that runs
the same code under the same version of Python. Seeds that were drawn, rather than given, do not count, as in tf.data.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from typing import Any

import numpy as np

from dataset.plan.node import Node, walk
from dataset.plan.spec import ComponentSpec
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def content_fingerprint(plan: Node, *also: Any) -> str:
    """32 hexadecimal digits over a plan and the values given beside it."""
    content = _Content()
    for node in walk(plan):
        content.node(node)
    for value in also:
        content.value(value)
    return content.digest.hexdigest()


class _Content:
    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=16)
        self._within: dict[int, int] = {}  # what is being looked at: a function may refer to itself

    def text(self, *words: Any) -> None:
        for word in words:
            encoded = str(word).encode(errors="backslashreplace")
            self.digest.update(b"%d:" % len(encoded))
            self.digest.update(encoded)

    def node(self, node: Node) -> None:
        self.text(type(node).__qualname__, node.op, len(node.inputs))
        for name, value in node.contents().items():
            self.text(name)
            self.value(value)

    def value(self, value: Any) -> None:
        if id(value) in self._within:
            self.text("again", self._within[id(value)])
            return
        if isinstance(value, _PLAIN):
            self.text(type(value).__name__, repr(value))
            return
        self._within[id(value)] = len(self._within)
        try:
            self._look_into(value)
        finally:
            del self._within[id(value)]

    def _look_into(self, value: Any) -> None:
        self.text(type(value).__qualname__)
        if isinstance(value, np.ndarray | np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, tuple | list | dict | set | frozenset | RaggedTensor | SparseTensor):
            self._all(_parts(value))
        elif isinstance(value, Structure | ComponentSpec | np.dtype):
            self.text(repr(value))
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, Node):
            for node in walk(value):
                self.node(node)
        else:
            self._other(value)

    def _all(self, values: Any) -> None:
        self.text(len(values))
        for value in values:
            self.value(value)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        self.text(array.dtype.str, array.shape)
        if array.dtype == object:
            self._all(array.ravel().tolist())
        else:
            self.digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")

    def _other(self, value: Any) -> None:
        """Functions, classes and objects, as far as they can be looked into without running them."""
        if isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            self._all([value.__func__, value.__self__])
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.ModuleType):
            self.text(value.__name__)
        elif isinstance(value, type):
            self.text(value.__module__, value.__qualname__)
            methods = {key: part for key, part in vars(value).items() if isinstance(part, types.FunctionType)}
            self._all([methods] if _is_users(value) else [])
        elif callable(value) and hasattr(value, "__name__"):  # built in
            self.text(getattr(value, "__module__", ""), value.__name__)
        else:
            self.value(type(value))
            fields = getattr(value, "__dict__", None)
            if isinstance(fields, dict):
                self.value(fields)

    def _function(self, function: types.FunctionType) -> None:
        code: types.CodeType = function.__code__
        if not _is_users(function):  # a library's: its name will do
            self.text(function.__module__, function.__qualname__)
            return
        self._code(code)
        self._all([function.__defaults__, function.__kwdefaults__])
        self._all([_cell(cell) for cell in function.__closure__ or ()])
        used = function.__globals__
        self.value({name: used[name] for name in sorted(_names(code)) if name in used})

    def _code(self, code: types.CodeType) -> None:
        self.text(code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars)
        self._all(code.co_consts)


def _parts(value: Any) -> Any:
    match value:
        case RaggedTensor():
            return [value.flat_values, *value.nested_row_splits]
        case SparseTensor():
            return [value.indices, value.values, value.dense_shape]
        case dict():
            return [part for item in value.items() for part in item]
        case set() | frozenset():
            return sorted(map(repr, value))
    return value


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    """The global names that a function and those inside it may use."""
    inner = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_users(value: Any) -> bool:
    """Whether a function or class is the user's own, not of an installed package or of Python."""
    code = getattr(value, "__code__", None)
    file = code.co_filename if code is not None else getattr(_module(value), "__file__", None) or ""
    return "site-packages" not in file and "lib/python" not in file and not str(value.__module__).startswith("dataset.")


def _module(value: Any) -> Any:
    return sys.modules.get(value.__module__)

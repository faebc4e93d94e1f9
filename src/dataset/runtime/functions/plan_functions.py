"""Proof that a function which returns a dataset has no effects: it only combines datasets that it is given.

The result of such a function depends only on its arguments and on the values that it reads elsewhere. So one call
shows what it returns for other datasets, unless it looks into them, which their plans tell (see ``looked_into``).

A function is proved by a scan of its bytecode, which may contain loops, comprehensions and branches. It can reach only
datasets, numbers, text, and tuples, lists and dicts of its own. Everything that it reads from outside must be a
constant of these kinds, a builtin that is listed here, or a function that is proved in turn. An instruction, a method
or a value that is not listed ends the attempt.
"""

from __future__ import annotations

import dis
import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
)
from typing import Any, NamedTuple

import numpy as np

from dataset.plan.nested import dataset_class
from dataset.plan.node import Node
from dataset.runtime.functions.bytecode import UNBOUND, NotProvedError, Variable, unknown_python
from dataset.runtime.functions.places import attribute_of

_METHODS = frozenset({"batch", "zip", "items", "keys", "values", "get"})
"""Methods of datasets that only extend a plan, and of dicts."""

_BUILTINS = frozenset({dict, tuple, list, zip, map, range, enumerate, reversed, len, int, min, max, isinstance})
_SCALARS = frozenset({int, float, bool, str, bytes, type(None), *(np.dtype(code).type for code in np.typecodes["All"])})
_SCALARS -= {np.object_, np.void}  # they can be modified

_INSTRUCTIONS = frozenset(
    """
    RESUME CACHE PRECALL NOP EXTENDED_ARG NOT_TAKEN COPY_FREE_VARS MAKE_CELL PUSH_NULL POP_TOP POP_ITER COPY SWAP
    LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONSTANT LOAD_GLOBAL LOAD_DEREF LOAD_CLOSURE STORE_DEREF LOAD_ATTR LOAD_METHOD
    LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST
    LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST STORE_FAST_STORE_FAST STORE_FAST_LOAD_FAST
    KW_NAMES CALL CALL_KW CALL_FUNCTION_EX MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE RETURN_VALUE RETURN_CONST
    BUILD_TUPLE BUILD_LIST BUILD_MAP BUILD_CONST_KEY_MAP LIST_TO_TUPLE LIST_EXTEND LIST_APPEND MAP_ADD DICT_UPDATE
    DICT_MERGE UNPACK_SEQUENCE BINARY_OP BINARY_SUBSCR STORE_SUBSCR UNARY_NEGATIVE UNARY_NOT TO_BOOL COMPARE_OP IS_OP
    CONTAINS_OP GET_ITER FOR_ITER END_FOR JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_BACKWARD_IF_FALSE RETURN_GENERATOR YIELD_VALUE RERAISE
    """.split()  # noqa: SIM905  # a list would take a line each
)
"""The instructions of CPython 3.11 to 3.15 that change nothing outside the function, given what it can reach."""

_INTRINSICS = frozenset({"INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_STOPITERATION_ERROR", "INTRINSIC_UNARY_POSITIVE"})
"""The operands of CALL_INTRINSIC_1 that have no effect."""

_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_SILENT = frozenset({"CACHE", "EXTENDED_ARG", "PUSH_NULL", "NOP"})
_LOADS = frozenset(name for name in _INSTRUCTIONS if name.startswith(("LOAD_FAST", "LOAD_DEREF")))
_STORES = frozenset(name for name in _INSTRUCTIONS if name.startswith("STORE_") and name != "STORE_SUBSCR")


class _Read(NamedTuple):
    """What code reads from outside: a variable or the argument that is bound to an object, and attributes of it."""

    name: str
    is_global: bool
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanFunction:
    """Proof of a function, with everything outside its arguments that its result depends on.

    Attributes:
        known: what the function reads, each as a function that returns the current value, and the value found.
    """

    known: tuple[tuple[Callable[[], Any], Any], ...]

    def holds(self) -> bool:
        """Return whether nothing has changed: variables, attributes and code can be rebound at any time."""
        return all(current() is value for current, value in self.known)


def plan_function(function: Callable[..., Any]) -> PlanFunction | None:
    """Return the proof that a function only combines the datasets that it is given; None if there is none."""
    attempt = _Attempt()
    try:
        if unknown_python() is None and dataset_class() is not None:
            attempt.prove(function)
            return PlanFunction(tuple(attempt.known))
    except NotProvedError:
        pass
    return None


def looked_into(plans: Iterable[Node]) -> Callable[[], bool]:
    """Return a function that tells whether code has used any of these plans since, other than as an input.

    A node computes each property once, and keeps it among its attributes: its inputs, which every walk over a plan
    requests, its cardinality, its spec.
    """
    states = [vars(plan) for plan in plans]
    before = list(map(len, states))
    return lambda: list(map(len, states)) != before


class _Attempt:
    """Attempt to prove a function and those that it calls. ``known`` is that of ``PlanFunction``."""

    def __init__(self) -> None:
        self.known: list[tuple[Callable[[], Any], Any]] = []
        self._functions: list[FunctionType] = []

    def read(self, current: Callable[[], Any]) -> Any:
        value = current()
        self.known.append((current, value))
        return value

    def prove(self, function: Any) -> None:
        """Prove a function, a bound method or a partial.

        Raises:
            NotProvedError: if it may do something else.
        """
        while type(function) is functools.partial:
            for value in (*function.args, *function.keywords.values()):
                self.require_harmless(value)
            names = tuple(function.keywords)
            self.read(functools.partial(_keywords, function, names, tuple(function.keywords.values())))
            function = function.func
        owner: list[Any] = []
        if type(function) is MethodType:
            owner, function = [function.__self__], function.__func__
        if type(function) is not FunctionType:
            raise NotProvedError
        if function in _plan_methods() or function in self._functions:
            return
        if function.__kwdefaults__ or (owner and not function.__code__.co_argcount):
            raise NotProvedError
        self._functions.append(function)
        code: CodeType = self.read(lambda: function.__code__)
        self.require_harmless(self.read(lambda: function.__defaults__))
        bound = code.co_varnames[0] if owner else None
        reads = _reads_of(code, bound)
        if reads is None:
            raise NotProvedError
        for name, is_global, attributes in reads:
            if name == bound:
                root: Callable[[], Any] = functools.partial(operator.getitem, owner, 0)
            else:
                cell = 0 if is_global else code.co_freevars.index(name)
                root = functools.partial(Variable("global" if is_global else "closure", name, cell).value_in, function)
            self.require_harmless(self.read(functools.partial(_attribute, root, attributes)))

    def require_harmless(self, value: Any) -> None:
        """Check that a value cannot be modified, and that calling it has no effects."""
        if type(value) is tuple:
            for item in value:
                self.require_harmless(item)
        elif type(value) in _CALLABLES:
            self.prove(value)
        elif not (
            type(value) in _SCALARS
            or value is dataset_class()
            or (type(value) in {type, BuiltinFunctionType} and value in _BUILTINS)
        ):
            raise NotProvedError


_CALLABLES = frozenset({FunctionType, MethodType, functools.partial})


def _plan_methods() -> list[Any]:
    cls: Any = dataset_class()
    return [cls.batch, cls.zip]


def _keywords(function: functools.partial[Any], names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Return ``values`` as long as they are those of the keywords."""
    same = tuple(function.keywords) == names and all(map(operator.is_, function.keywords.values(), values))
    return values if same else UNBOUND


def _attribute(root: Callable[[], Any], names: tuple[str, ...]) -> Any:
    """Return an attribute of an attribute of a value; UNBOUND if there is none, or if user code could compute it."""
    value = root()
    for name in names:
        if value is dataset_class():
            value = getattr(value, name) if name in _METHODS else UNBOUND
        else:
            value = attribute_of(value, name)
    return value


@functools.lru_cache  # functions that create datasets for each element of another are new each time, their code is not
def _reads_of(code: CodeType, bound: str | None) -> tuple[_Read, ...] | None:
    """Return what code reads from outside; None if it contains anything that may have an effect.

    Args:
        code: the code of a function.
        bound: the argument that is bound to an object.
    """
    try:
        return tuple(_reads(code, frozenset(code.co_freevars), bound))
    except NotProvedError:
        return None


def _reads(code: CodeType, free: frozenset[str], bound: str | None) -> Iterator[_Read]:
    """Yield what code reads, also the code inside it."""
    read: _Read | None = None
    outside = free | {bound}
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in _SILENT:
            continue
        if name in _ATTRIBUTES and read is not None:
            read = read._replace(attributes=(*read.attributes, value))
            continue
        if read is not None:
            yield read
        if name != "CALL_INTRINSIC_1" or instruction.argrepr not in _INTRINSICS:
            _require_no_effect(name, value, outside)
        read = None
        if name == "LOAD_GLOBAL":
            read = _Read(value, is_global=True)
        elif name in _LOADS and _names(value)[-1] in outside:
            read = _Read(_names(value)[-1], is_global=False)
        if isinstance(value, CodeType):
            yield from _reads(value, free, bound)


def _require_no_effect(name: str, value: Any, outside: frozenset[str | None]) -> None:
    """Check an instruction and its operand, given the names of variables that others can reach."""
    if name not in _INSTRUCTIONS or (name in _ATTRIBUTES and value not in _METHODS):
        raise NotProvedError
    if name in _STORES and not outside.isdisjoint(_names(value)):
        raise NotProvedError
    if name in _LOADS and not outside.isdisjoint(_names(value)[:-1]):
        raise NotProvedError  # one of two variables that one instruction loads; the proof reads only the last


def _names(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)

"""Symbolic interpreter for the bytecode of user functions: executes code on abstract values.

It reduces the opcodes of CPython 3.11 to 3.15 to a few operations. A caller supplies a function
``evaluate(operation, *operands)``, which returns an abstract value for the result, or raises ``NotProvedError`` for
anything that it does not expect:

    "variable", variable                        a ``Variable``: a global or builtin, a closure variable or a default
    "attribute", value, name
    "subscript", value, key
    "slice", values                             of two or three values
    "store", target, key, value                 target[key] = value; the result is not used
    "delete", target, key
    "unary", symbol, value
    "binary", symbol, left, right               arithmetic, also in place, and comparisons
    "is", left, right, negated
    "contains", container, value, negated
    "call", function, positional, keywords      with a list and a dict
    "spread", function, positional, keywords    function(*positional, **keywords); the last is None if there is none
    "unpack", value, count                      returns a list of this length
    "tuple", values
    "list", values
    "extend", target, value                     [*target, *value]
    "append", target, value                     [*target, value]
    "as tuple", list
    "dict", keys, values
    "merge", target, value                      {**target, **value}
    "add", target, key, value                   {**target, key: value}
    "text", function, values                    part of an f-string, or all of it: what the function makes of the values
    "iterate", value                            what a loop takes items from; see expression.py
    "unknown", opname                           may raise the error with a reason; it is raised in any case

Constants are passed as ``Constant`` objects, functions that the code creates as ``LocalFunction`` objects. Operations
come in the order of execution, and also if their result is never used, so each may be checked for effects and errors.
Any other instruction ends the attempt, and so does any other version of Python: the meaning of an opcode may change
between versions. A frame executes straight-line code; expression.py executes frames with jumps, loops and calls.
"""

from __future__ import annotations

import copy
import dataclasses
import dis
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

Evaluate: TypeAlias = Callable[..., Any]


def joined(*texts: str) -> str:
    """Return the text of an f-string with these parts."""
    return "".join(texts)


UNBOUND = object()
"""The value of a variable that has none."""

VARIADIC, GENERATOR = 0x04, 0x20
"""Flags of code that takes any number of positional arguments, and of that of generators."""

_UNUSUAL = 0x08 | 0x80 | 0x100 | 0x200
_PYTHON = (sys.implementation.name, *sys.version_info[:2])
_OLDEST, _NEWEST = ("cpython", 3, 11), ("cpython", 3, 15)


class NotProvedError(Exception):
    """Internal error: the function does something else than what a rule can prove, or may do so.

    Attributes:
        reason: why, if that is useful to the user.
        line: the line of the instruction, if it is known.
    """

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line: int | None = None


@dataclass(frozen=True)
class Constant:
    """Abstract value of a constant in the code."""

    value: Any


@dataclass(frozen=True)
class LocalFunction:
    """Abstract value of a function that the code creates, also of a comprehension.

    Attributes:
        code: its code.
        evaluate: that of the frame which creates it.
        free: the values of its closure variables.
        defaults: an abstract tuple, or None.
    """

    code: CodeType
    evaluate: Evaluate
    free: dict[str, Any]
    defaults: Any = None


@dataclass(frozen=True)
class Variable:
    """Variable outside a function's frame.

    It may be rebound at any time. So a proof that depends on its value must be checked again before each use.

    Attributes:
        source: where it is: "global", "closure" or "default".
        name: its name.
        position: its index among the closure's cells or the defaults.
    """

    source: str
    name: str
    position: int = 0

    def value_in(self, function: FunctionType) -> Any:
        """Return its current value; UNBOUND if it has none, or if user code could run to compute it."""
        names, builtin = function.__globals__, function.__builtins__  # type: ignore[attr-defined, unused-ignore]  # newer versions of mypy know it
        if type(names) is not dict or type(builtin) is not dict:
            return UNBOUND
        try:
            if self.source == "closure":
                return function.__closure__[self.position].cell_contents  # type: ignore[index]
            if self.source == "default":
                return function.__defaults__[self.position]  # type: ignore[index]
            return names[self.name] if self.name in names else builtin[self.name]
        except (LookupError, TypeError, ValueError):  # ValueError: an empty cell
            return UNBOUND


def unknown_python() -> str | None:
    """Return why no function is proved on this interpreter; None if its bytecode is known."""
    if _OLDEST <= _PYTHON <= _NEWEST:
        return None
    name, major, minor = _PYTHON
    return (
        f"its bytecode is that of {name} {major}.{minor}, which this version of the library cannot read; it reads that "
        f"of CPython {_OLDEST[1]}.{_OLDEST[2]} to {_NEWEST[1]}.{_NEWEST[2]}"
    )


def arity_of(function: FunctionType) -> int:
    """Return the number of arguments without a default."""
    return function.__code__.co_argcount - len(function.__defaults__ or ())


def is_unusual(code: CodeType) -> bool:
    """Return whether code is that of a coroutine, or takes any keyword arguments."""
    return bool(code.co_flags & _UNUSUAL)


@functools.lru_cache  # functions that are created for each element share their code
def instructions_of(code: CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int]]:
    """Return the instructions of code, and the index of each by its offset, which jumps name."""
    found = tuple(dis.get_instructions(code))
    return found, {instruction.offset: index for index, instruction in enumerate(found)}


@functools.lru_cache
def names_in(code: CodeType, start: int, stop: int | None = None, *, stored: bool = False) -> frozenset[str]:
    """Return the local variables that instructions of code use, or only those that they store."""
    found = [one for one in instructions_of(code)[0][start:stop] if "_FAST" in one.opname or one.opname in _CELLS]
    names = [one.argval for one in found if "STORE" in one.opname or not stored]
    return frozenset(name for value in names for name in (value if type(value) is tuple else (value,)))


_CELLS = frozenset({"LOAD_DEREF", "STORE_DEREF", "LOAD_CLOSURE"})


@functools.lru_cache
def names_in_handlers(code: CodeType) -> frozenset[str]:
    """Return the local variables that code may use after it has caught an exception."""
    names = [one.opname for one in instructions_of(code)[0]]
    return names_in(code, names.index("PUSH_EXC_INFO")) if "PUSH_EXC_INFO" in names else frozenset()


class Frame:
    """Symbolic frame: abstract values of the stack and of the local variables.

    A callable takes one place on the stack. The second one, for NULL or ``self``, is left out, because the versions of
    Python order the two differently.

    Attributes:
        position: the index of the next instruction among those of ``instructions_of(code)``.
        handled: the variables that are used after an exception, if that matters.
        yielded: what a generator has yielded; None if that is unknown.
    """

    def __init__(self, code: CodeType, evaluate: Evaluate, arguments: dict[str, Any]) -> None:
        self.evaluate = evaluate
        self.code = code
        self.stack: list[Any] = []
        self.keywords: tuple[str, ...] = ()  # of the next call
        self.free = {name: Variable("closure", name, cell) for cell, name in enumerate(code.co_freevars)}
        self.locals = arguments
        self.position = 0
        self.yielded: tuple[Any, ...] | None = ()
        self.handled: frozenset[str] = frozenset()
        self.iterator: Any = UNBOUND  # the last one
        self.null = -1  # the height of the stack at the last NULL

    def copy(self) -> Frame:
        """Return a frame that is executed independently."""
        copied = copy.copy(self)
        copied.stack, copied.locals = self.stack.copy(), self.locals.copy()
        return copied

    def execute(self, instruction: dis.Instruction) -> None:
        step = _STEPS.get(instruction.opname)
        try:
            self.stack += self.unknown(instruction.opname) if step is None else step(self, instruction)
        except LookupError:  # the stack is empty or a variable undefined: the code was misinterpreted
            raise NotProvedError from None
        except NotProvedError as error:
            error.line = instruction.positions.lineno if instruction.positions else None
            raise

    def pop(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def load(self, name: str) -> Any:
        if name in self.code.co_cellvars or name in self.code.co_freevars:
            return Constant(None)  # part of the closure of a function, which knows its names
        value = self.locals[name]
        if value is UNBOUND:
            raise LookupError
        return value

    def dereference(self, name: str) -> Any:
        return self.locals[name] if name in self.locals else self.evaluate("variable", self.free[name])

    def store(self, *names: str) -> list[Any]:
        self.locals |= {name: self.stack.pop() for name in names}
        return []

    def make_function(self, instruction: dis.Instruction) -> list[Any]:
        """Create a function; up to Python 3.12, with attributes in the order of their flags."""
        code, flags = self.stack.pop().value, instruction.arg or 0
        free = {name: self.dereference(name) for name in code.co_freevars}
        self.require_same(code, instruction)
        below = self.pop(flags.bit_count())
        if flags & 2:
            self.unknown(instruction.opname)
        return [LocalFunction(code, self.evaluate, free, below[0] if flags & 1 else None)]

    def set_attribute(self, instruction: dis.Instruction) -> list[Any]:
        value, function = self.pop(2)
        if instruction.arg == 2:
            self.unknown(instruction.opname)
        return [dataclasses.replace(function, defaults=value) if instruction.arg == 1 else function]

    def require_same(self, code: CodeType, instruction: dis.Instruction) -> None:
        """Check that variables in a closure keep their values until the function is called."""
        if code.co_name in {"<listcomp>", "<dictcomp>"}:
            return  # they are called at once
        found, _ = instructions_of(self.code)
        stored = [one.offset for one in found if one.opname == "STORE_DEREF" and one.argval in code.co_freevars]
        loops = [(one.argval, one.offset) for one in found if "JUMP" in one.opname and one.argval < one.offset]
        if any(at > instruction.offset or any(first <= at <= last for first, last in loops) for at in stored):
            self.unknown(instruction.opname)

    def append(self, depth: int) -> list[Any]:
        value = self.stack.pop()
        self.stack[-depth] = self.evaluate("append", self.stack[-depth], value)
        return []

    def add_item(self, depth: int) -> list[Any]:
        key, value = self.pop(2)
        self.stack[-depth] = self.evaluate("add", self.stack[-depth], key, value)
        return []

    def give(self) -> list[Any]:
        if self.yielded is None:
            raise LookupError
        self.yielded += (self.stack.pop(),)
        return [Constant(None)]  # what is sent to the generator

    def iterate(self) -> list[Any]:
        self.iterator = self.evaluate("iterate", *self.pop(1))
        return [*[UNBOUND] * (_ITERATOR - 1), self.iterator]

    def push_null(self) -> list[Any]:
        self.null = len(self.stack)
        return []

    def spread(self, instruction: dis.Instruction) -> Any:
        """Call a function with a tuple and a dict of arguments; from Python 3.14 on, NULL may replace the dict."""
        has_keywords = self.null != len(self.stack) if _PYTHON >= ("cpython", 3, 14) else instruction.arg
        keywords = self.stack.pop() if has_keywords else None
        return self.evaluate("spread", *self.pop(2), keywords)

    def name_keywords(self, names: tuple[str, ...]) -> list[Any]:
        self.keywords = names
        return []

    def call(self, count: int, names: tuple[str, ...]) -> Any:
        self.keywords = ()
        named = dict(zip(names, self.pop(len(names)), strict=True))
        positional = self.pop(count - len(names))
        if self.stack[-1] is self.iterator:
            positional = [self.stack.pop()]  # the argument of a comprehension is in the place of ``self``
        return self.evaluate("call", *self.pop(1), positional, named)

    def build_dict(self, items: list[Any]) -> Any:
        return self.evaluate("dict", items[::2], items[1::2])

    def binary(self, symbol: str) -> Any:
        operation = ["subscript"] if symbol == "[]" else ["binary", symbol]
        return self.evaluate(*operation, *self.pop(2))

    def compare(self, symbol: str) -> Any:
        return self.binary(symbol.removeprefix("bool(").removesuffix(")"))  # what a jump tests, since Python 3.13

    def swap(self, depth: int) -> list[Any]:
        self.stack[-1], self.stack[-depth] = self.stack[-depth], self.stack[-1]
        return []

    def slice_of(self) -> tuple[Any, Any]:
        owner, *bounds = self.pop(3)
        return owner, self.evaluate("slice", bounds)

    def store_item(self) -> list[Any]:
        self.evaluate("store", *self.pop(2), *self.pop(1))
        return []

    def store_slice(self) -> list[Any]:
        owner, key = self.slice_of()
        self.evaluate("store", owner, key, *self.pop(1))
        return []

    def delete_item(self) -> list[Any]:
        self.evaluate("delete", *self.pop(2))
        return []

    def delete(self, name: str) -> list[Any]:
        del self.locals[name]
        return []

    def contains(self, negated: int) -> Any:
        value, container = self.pop(2)
        return self.evaluate("contains", container, value, bool(negated))

    def format_value(self, flags: int) -> list[Any]:
        """Format a value; up to Python 3.12, this also converts it."""
        spec = self.pop(flags >> 2)
        return [self.evaluate("text", format, [*self.convert(flags & 3), *spec])]

    def convert(self, conversion: int) -> list[Any]:
        value = self.pop(1)
        return [self.evaluate("text", (str, repr, ascii)[conversion - 1], value)] if conversion else value

    def intrinsic(self, instruction: dis.Instruction) -> Any:
        if instruction.argrepr != "INTRINSIC_LIST_TO_TUPLE":
            self.unknown(instruction.opname)
        return self.evaluate("as tuple", *self.pop(1))

    def unknown(self, opname: str) -> list[Any]:
        self.evaluate("unknown", opname)
        raise NotProvedError


_Step: TypeAlias = Callable[[Frame, Any], list[Any]]

ITERATOR_STAYS = _PYTHON >= ("cpython", 3, 13)
"""Whether an instruction after a loop removes the iterator from the stack."""

_ITERATOR = 1 if _PYTHON < ("cpython", 3, 15) else 2
"""How many places an iterator takes on the stack."""

_STEPS_BY_NAMES: dict[str, _Step] = {
    "RESUME CACHE PRECALL NOP EXTENDED_ARG COPY_FREE_VARS MAKE_CELL RETURN_VALUE": lambda _f, _i: [],
    "PUSH_NULL": lambda f, _: f.push_null(),
    "NOT_TAKEN TO_BOOL": lambda _f, _i: [],  # each use of the truth of a value tests it
    "POP_TOP": lambda f, _: f.pop(1)[1:],
    "POP_ITER": lambda f, _: f.pop(_ITERATOR)[_ITERATOR:],
    "COPY": lambda f, i: [f.stack[-i.arg]],
    "SWAP": lambda f, i: f.swap(i.arg),
    "DELETE_FAST": lambda f, i: f.delete(i.argval),
    "LOAD_CONST LOAD_SMALL_INT RETURN_CONST": lambda _, i: [Constant(i.argval)],
    # Functions, which dis gives as numbers before Python 3.15; since then also None, "", True, False and -1.
    "LOAD_COMMON_CONSTANT": lambda f, i: (
        f.unknown(i.opname) if callable(i.argval) or i.argval == i.arg else [Constant(i.argval)]
    ),
    "LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_CLOSURE": lambda f, i: [f.load(i.argval)],
    "LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW": lambda f, i: [f.load(name) for name in i.argval],
    "LOAD_FAST_AND_CLEAR": lambda f, i: [f.locals.pop(i.argval, UNBOUND)],
    "STORE_FAST": lambda f, i: f.store(i.argval),
    "STORE_FAST_STORE_FAST": lambda f, i: f.store(*i.argval),
    "STORE_FAST_LOAD_FAST": lambda f, i: [*f.store(i.argval[0]), f.load(i.argval[1])],
    "LOAD_GLOBAL": lambda f, i: [f.evaluate("variable", Variable("global", i.argval))],
    "LOAD_DEREF": lambda f, i: [f.dereference(i.argval)],
    "STORE_DEREF": lambda f, i: f.store(i.argval) if i.argval in f.code.co_cellvars else f.unknown(i.opname),
    "MAKE_FUNCTION": lambda f, i: f.make_function(i),
    "SET_FUNCTION_ATTRIBUTE": lambda f, i: f.set_attribute(i),
    "LOAD_ATTR LOAD_METHOD": lambda f, i: [f.evaluate("attribute", *f.pop(1), i.argval)],
    "UNARY_NEGATIVE": lambda f, _: [f.evaluate("unary", "-", *f.pop(1))],
    "UNARY_INVERT": lambda f, _: [f.evaluate("unary", "~", *f.pop(1))],
    "BINARY_OP": lambda f, i: [f.binary(i.argrepr)],
    "BINARY_SUBSCR": lambda f, _: [f.binary("[]")],
    "UNARY_NOT": lambda f, _: [f.evaluate("unary", "not", *f.pop(1))],
    "COMPARE_OP": lambda f, i: [f.compare(i.argrepr)],
    "IS_OP": lambda f, i: [f.evaluate("is", *f.pop(2), bool(i.argval))],
    "CONTAINS_OP": lambda f, i: [f.contains(i.argval)],
    "BUILD_SLICE": lambda f, i: [f.evaluate("slice", f.pop(i.argval))],
    "BINARY_SLICE": lambda f, _: [f.evaluate("subscript", *f.slice_of())],
    "STORE_SUBSCR": lambda f, _: f.store_item(),
    "STORE_SLICE": lambda f, _: f.store_slice(),
    "DELETE_SUBSCR": lambda f, _: f.delete_item(),
    "KW_NAMES": lambda f, i: f.name_keywords(f.code.co_consts[i.arg]),
    "CALL": lambda f, i: [f.call(i.argval, f.keywords)],
    "CALL_KW": lambda f, i: [f.call(i.argval, f.stack.pop().value)],
    "CALL_FUNCTION_EX": lambda f, i: [f.spread(i)],
    "CALL_INTRINSIC_1": lambda f, i: [f.intrinsic(i)],
    "LIST_TO_TUPLE": lambda f, _: [f.evaluate("as tuple", *f.pop(1))],
    "GET_ITER": lambda f, _: f.iterate(),
    "RETURN_GENERATOR": lambda _f, _i: [Constant(None)],
    "YIELD_VALUE": lambda f, _: f.give(),
    "UNPACK_SEQUENCE": lambda f, i: f.evaluate("unpack", *f.pop(1), i.argval)[::-1],
    "BUILD_TUPLE": lambda f, i: [f.evaluate("tuple", f.pop(i.argval))],
    "BUILD_LIST": lambda f, i: [f.evaluate("list", f.pop(i.argval))],
    "LIST_EXTEND": lambda f, i: [f.evaluate("extend", *f.pop(2))] if i.argval == 1 else f.unknown(i.opname),
    "LIST_APPEND": lambda f, i: f.append(i.arg),
    "MAP_ADD": lambda f, i: f.add_item(i.arg),
    "FORMAT_VALUE FORMAT_SIMPLE": lambda f, i: f.format_value(i.arg or 0),
    "FORMAT_WITH_SPEC": lambda f, _: [f.evaluate("text", format, f.pop(2))],
    "CONVERT_VALUE": lambda f, i: f.convert(i.arg),
    "BUILD_STRING": lambda f, i: [f.evaluate("text", joined, f.pop(i.arg))],
    "BUILD_MAP": lambda f, i: [f.build_dict(f.pop(2 * i.argval))],
    "BUILD_CONST_KEY_MAP": lambda f, i: [f.evaluate("dict", list(map(Constant, f.stack.pop().value)), f.pop(i.argval))],
    "DICT_UPDATE DICT_MERGE": lambda f, i: [f.evaluate("merge", *f.pop(2))] if i.argval == 1 else f.unknown(i.opname),
}
_STEPS = {opname: step for opnames, step in _STEPS_BY_NAMES.items() for opname in opnames.split()}
"""What each instruction of CPython 3.11 to 3.15 pushes; it first pops what it takes. All others are unknown."""

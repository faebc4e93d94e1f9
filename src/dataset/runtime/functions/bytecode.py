"""Symbolic interpreter for the bytecode of user functions: executes code on abstract values.

It reduces the opcodes of CPython 3.11 to 3.15 to a few operations. A caller supplies a function
``evaluate(operation, *operands)``, which returns an abstract value for the result, or raises ``NotProvedError`` for
anything that it does not expect:

    "argument", position                        an argument without a default
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
    "unpack", value, count                      returns a list of this length
    "tuple", values
    "list", values
    "extend", target, value                     [*target, *value]
    "dict", keys, values
    "merge", target, value                      {**target, **value}
    "unknown", opname                           may raise the error with a reason; it is raised in any case

Constants are passed as ``Constant`` objects. Operations come in the order of execution, and also if their result is
never used, so each may be checked for effects and errors. Any other instruction ends the attempt, and so does any
other version of Python: the meaning of an opcode may change between versions. ``interpret`` executes straight-line
code; expression.py executes frames with jumps and calls.
"""

from __future__ import annotations

import copy
import dis
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

Evaluate: TypeAlias = Callable[..., Any]

UNBOUND = object()
"""The value of a variable that has none."""

_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
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
class Variable:
    """Variable outside a function's frame, or an attribute of a module that it holds.

    It may be rebound at any time. So a proof that depends on its value must be checked again before each use.

    Attributes:
        source: where it is: "global", "closure" or "default".
        name: its name.
        position: its index among the closure's cells or the defaults.
        attributes: names that are looked up in modules, beginning with the variable's value.
    """

    source: str
    name: str
    position: int = 0
    attributes: tuple[str, ...] = ()

    def value_in(self, function: FunctionType) -> Any:
        """Return its current value; UNBOUND if it has none, or if user code could run to compute it."""
        names, builtin = function.__globals__, function.__builtins__  # type: ignore[attr-defined, unused-ignore]  # newer versions of mypy know it
        if type(names) is not dict or type(builtin) is not dict:
            return UNBOUND
        try:
            if self.source == "closure":
                value = function.__closure__[self.position].cell_contents  # type: ignore[index]
            elif self.source == "default":
                value = function.__defaults__[self.position]  # type: ignore[index]
            else:
                value = names[self.name] if self.name in names else builtin[self.name]
            for attribute in self.attributes:
                if type(value) is not ModuleType:
                    return UNBOUND
                members = vars(value)
                if attribute not in members and value.__name__.partition(".")[0] == "dataset":
                    getattr(value, attribute)  # it may import the attribute, but runs no user code
                value = members[attribute]
        except (AttributeError, LookupError, TypeError, ValueError):  # ValueError: an empty cell
            return UNBOUND
        return value


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


def takes_any_arguments(code: CodeType) -> bool:
    """Return whether code is that of a generator or coroutine, or takes any number of arguments."""
    return bool(code.co_flags & _GENERATOR_OR_VARIADIC)


def interpret(
    function: Callable[..., Any], evaluate: Evaluate, *, may_catch: bool = False, until_unused: str | None = None
) -> Any:
    """Execute a function symbolically and return the abstract value of its result.

    Args:
        function: the function; anything except plain Python functions is not proved.
        evaluate: returns the abstract value of the result of an operation.
        may_catch: whether the function may handle exceptions. The result is that of a run without exceptions.
        until_unused: an argument. The execution ends, with None as result, as soon as the rest of the code cannot use
            its value. So only the code before that is restricted.

    Raises:
        NotProvedError: if the code contains an unknown instruction, or ``evaluate`` raises it.
    """
    if type(function) is not FunctionType:
        raise NotProvedError
    if (reason := unknown_python()) is not None:
        raise NotProvedError(reason)
    code = function.__code__
    if takes_any_arguments(code) or code.co_kwonlyargcount or (code.co_exceptiontable and not may_catch):
        raise NotProvedError
    frame = Frame(code, evaluate, _arguments(function, evaluate))
    last_use, jump_targets = 0, list[int]()
    if until_unused is not None:
        last_use = _last_use(code, until_unused)
        jump_targets = dis.findlabels(code.co_code)  # type: ignore[arg-type]  # it takes only bytes
    for instruction in dis.get_instructions(code):
        if instruction.offset in jump_targets:
            raise NotProvedError  # a loop, which may run this code again with other values
        frame.execute(instruction)
        if until_unused is not None and not frame.needs(until_unused, named_later=instruction.offset < last_use):
            return None
        if instruction.opname in {"RETURN_VALUE", "RETURN_CONST"}:
            break
    if len(frame.stack) != 1 or until_unused is not None:
        raise NotProvedError
    return frame.stack[0]


def _arguments(function: FunctionType, evaluate: Evaluate) -> dict[str, Any]:
    found, arity = {}, arity_of(function)
    for position, name in enumerate(function.__code__.co_varnames[: function.__code__.co_argcount]):
        default = Variable("default", name, position - arity)
        found[name] = evaluate("variable", default) if position >= arity else evaluate("argument", position)
    return found


@functools.lru_cache  # functions that are created for each element share their code
def instructions_of(code: CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int]]:
    """Return the instructions of code, and the index of each by its offset, which jumps name."""
    found = tuple(dis.get_instructions(code))
    return found, {instruction.offset: index for index, instruction in enumerate(found)}


def _last_use(code: CodeType, name: str) -> int:
    """Return the offset of the last instruction that names a local variable; that of the end if there is none."""
    found = len(code.co_code)
    for instruction in dis.get_instructions(code):
        names = instruction.argval if type(instruction.argval) is tuple else (instruction.argval,)
        if "_FAST" in instruction.opname and name in names:
            found = instruction.offset
    return found


class Frame:
    """Symbolic frame: abstract values of the stack and of the local variables.

    A callable takes one place on the stack. The second one, for NULL or ``self``, is left out, because the versions of
    Python order the two differently.

    Attributes:
        position: the index of the next instruction among those of ``instructions_of(code)``.
    """

    def __init__(self, code: CodeType, evaluate: Evaluate, arguments: dict[str, Any]) -> None:
        self.evaluate = evaluate
        self.code = code
        self.stack: list[Any] = []
        self.keywords: tuple[str, ...] = ()  # of the next call
        self.free = {name: Variable("closure", name, cell) for cell, name in enumerate(code.co_freevars)}
        self.locals = arguments
        self.arguments = arguments.copy()
        self.position = 0

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

    def needs(self, name: str, *, named_later: bool) -> bool:
        """Return whether the code may still use the value that an argument had, given whether it names it later."""
        argument = self.arguments[name]
        # An exception handler may run before the argument is replaced.
        may_read = named_later and (self.locals.get(name) is argument or bool(self.code.co_exceptiontable))
        others = (value for other, value in self.locals.items() if other != name)
        return may_read or any(value is argument for value in [*self.stack, *others])

    def pop(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def store(self, *names: str) -> list[Any]:
        self.locals |= {name: self.stack.pop() for name in names}
        return []

    def name_keywords(self, names: tuple[str, ...]) -> list[Any]:
        self.keywords = names
        return []

    def call(self, count: int, names: tuple[str, ...]) -> Any:
        self.keywords = ()
        named = dict(zip(names, self.pop(len(names)), strict=True))
        positional = self.pop(count - len(names))
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

    def unknown(self, opname: str) -> list[Any]:
        self.evaluate("unknown", opname)
        raise NotProvedError


_Step: TypeAlias = Callable[[Frame, Any], list[Any]]

_STEPS_BY_NAMES: dict[str, _Step] = {
    "RESUME CACHE PRECALL NOP EXTENDED_ARG COPY_FREE_VARS PUSH_NULL RETURN_VALUE": lambda _f, _i: [],
    "NOT_TAKEN TO_BOOL": lambda _f, _i: [],  # each use of the truth of a value tests it
    "POP_TOP": lambda f, _: f.pop(1)[1:],
    "COPY": lambda f, i: [f.stack[-i.arg]],
    "SWAP": lambda f, i: f.swap(i.arg),
    "DELETE_FAST": lambda f, i: f.delete(i.argval),
    "LOAD_CONST LOAD_SMALL_INT RETURN_CONST": lambda _, i: [Constant(i.argval)],
    # Functions, which dis gives as numbers before Python 3.15; since then also None, "", True, False and -1.
    "LOAD_COMMON_CONSTANT": lambda f, i: (
        f.unknown(i.opname) if callable(i.argval) or i.argval == i.arg else [Constant(i.argval)]
    ),
    "LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK": lambda f, i: [f.locals[i.argval]],
    "LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW": lambda f, i: [f.locals[name] for name in i.argval],
    "STORE_FAST": lambda f, i: f.store(i.argval),
    "STORE_FAST_STORE_FAST": lambda f, i: f.store(*i.argval),
    "STORE_FAST_LOAD_FAST": lambda f, i: [*f.store(i.argval[0]), f.locals[i.argval[1]]],
    "LOAD_GLOBAL": lambda f, i: [f.evaluate("variable", Variable("global", i.argval))],
    "LOAD_DEREF": lambda f, i: [f.evaluate("variable", f.free[i.argval])],
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
    "UNPACK_SEQUENCE": lambda f, i: f.evaluate("unpack", *f.pop(1), i.argval)[::-1],
    "BUILD_TUPLE": lambda f, i: [f.evaluate("tuple", f.pop(i.argval))],
    "BUILD_LIST": lambda f, i: [f.evaluate("list", f.pop(i.argval))],
    "LIST_EXTEND": lambda f, i: [f.evaluate("extend", *f.pop(2))] if i.argval == 1 else f.unknown(i.opname),
    "BUILD_MAP": lambda f, i: [f.build_dict(f.pop(2 * i.argval))],
    "BUILD_CONST_KEY_MAP": lambda f, i: [f.evaluate("dict", list(map(Constant, f.stack.pop().value)), f.pop(i.argval))],
    "DICT_UPDATE": lambda f, i: [f.evaluate("merge", *f.pop(2))] if i.argval == 1 else f.unknown(i.opname),
}
_STEPS = {opname: step for opnames, step in _STEPS_BY_NAMES.items() for opname in opnames.split()}
"""What each instruction of CPython 3.11 to 3.15 pushes; it first pops what it takes. All others are unknown."""

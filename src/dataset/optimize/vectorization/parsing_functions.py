"""Detection of functions that only call parse_single_example and select features from its result.

The bytecode is interpreted in order, with a stack of descriptions instead of values. Any instruction that is not listed
here, such as a jump, ends the attempt without a proof. The listed instructions have no side effects: they look up
variables, call parse_single_example once, take features from its result, and put them into tuples and dicts. Exception
handling in the function does not matter: if parsing fails, the function itself is called.

A name refers to whatever it is bound to when the function runs. So names are looked up here in the same places, in the
function's module, in its closure and in the namespaces of modules, and the proof can check that they are unchanged.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dataset.io.example.features import FeatureSpec
from dataset.io.example.parse import ExampleParser, parse_single_example
from dataset.optimize.vectorization.column_parser import ColumnParser, Result
from dataset.runtime.functions.vectorized import is_vectorized

_RECORDS_MIN = 32
"""Fewer small records, such as an image and its label, are parsed faster one by one."""

_PARAMETERS = ("serialized", "features")  # of parse_single_example
_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200


class NotProvedError(Exception):
    """Internal error: the function does something else, or may do so."""


def parsing_function(function: Callable[..., Any]) -> ColumnParser | None:
    """Return a column parser to use instead of a function that only parses; None if that cannot be proved."""
    try:
        features_of, result = _proof(function)
        features = features_of()
        parser = ExampleParser(features)
    except (NotProvedError, TypeError, ValueError):  # TypeError, ValueError: parse_single_example rejects the features
        return None
    read = frozenset(features if result is None else _names_in(result))
    if not read <= set(features):
        return None
    items = list(features.items())

    def holds() -> bool:
        try:
            return list(features_of().items()) == items
        except NotProvedError:
            return False

    return ColumnParser(parser, holds, result, read, length_min=_RECORDS_MIN)


def calls_parser(function: Callable[..., Any]) -> bool:
    """Return whether a function calls parse_single_example, judging by the names in it."""
    return type(function) is FunctionType and parse_single_example.__name__ in function.__code__.co_names


def _proof(function: Callable[..., Any]) -> tuple[Callable[[], dict[str, FeatureSpec]], Result]:
    """Return a function that looks up the features and checks that nothing else changed, and the form of the result."""
    if type(function) is functools.partial:
        return functools.partial(_features_of_partial, function), None
    if type(function) is not FunctionType or type(function.__globals__) is not dict or is_vectorized(function):
        raise NotProvedError
    code = function.__code__
    parse, features, result = _Reading(code).result()

    def features_of() -> dict[str, FeatureSpec]:
        if function.__code__ is not code or parse.value_in(function) is not parse_single_example:
            raise NotProvedError
        return _plain(features.value_in(function))

    return features_of, result


def _features_of_partial(function: functools.partial[Any]) -> dict[str, FeatureSpec]:
    if function.func is not parse_single_example or function.args or list(function.keywords) != ["features"]:
        raise NotProvedError
    return _plain(function.keywords["features"])


def _plain(features: Any) -> dict[str, FeatureSpec]:
    """Return the features, if they are in a dict: another mapping is user code."""
    if type(features) is not dict or not all(type(name) is str for name in features):
        raise NotProvedError
    return features


# The descriptions on the stack.


@dataclass(frozen=True)
class _Variable:
    """Description of a global or closure variable, or of an attribute of a module that such a variable holds."""

    name: str
    cell: int | None = None
    attributes: tuple[str, ...] = ()

    def value_in(self, function: FunctionType) -> Any:
        """Return its current value."""
        try:
            if self.cell is None:
                value = function.__globals__[self.name]
            else:
                assert function.__closure__ is not None  # the code has free variables
                value = function.__closure__[self.cell].cell_contents
            for attribute in self.attributes:
                if type(value) is not ModuleType:
                    raise NotProvedError
                is_own = value.__name__.partition(".")[0] == "dataset"  # getattr() may import, but runs no user code
                value = getattr(value, attribute) if is_own else vars(value)[attribute]
        except (AttributeError, KeyError, ValueError):  # the variable is undefined; ValueError: an empty cell
            raise NotProvedError from None
        return value


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Feature:
    name: str


class _Other:
    """Description that is compared by identity."""


_NULL, _RECORD, _PARSED = _Other(), _Other(), _Other()


class _Reading:
    """Abstract interpreter for the bytecode of a function with one argument."""

    def __init__(self, code: CodeType) -> None:
        if code.co_flags & _GENERATOR_OR_VARIADIC or code.co_argcount != 1 or code.co_kwonlyargcount:
            raise NotProvedError
        self._code = code
        self._stack: list[Any] = []
        self._locals: dict[str, Any] = {code.co_varnames[0]: _RECORD}
        self._keywords: tuple[str, ...] = ()  # keyword names of the next call
        self._called: tuple[_Variable, _Variable] | None = None

    def result(self) -> tuple[_Variable, _Variable, Result]:
        """Return the variables of the called function and of its features, and the form of the result."""
        try:
            for instruction in dis.get_instructions(self._code):
                if instruction.opname == "RETURN_VALUE":
                    result = self._as_result(self._stack.pop())
                    assert self._called is not None  # otherwise there are no features
                    return *self._called, result
                self._read(instruction)
        except (IndexError, KeyError):  # the stack is empty or a variable undefined: the code was misinterpreted
            raise NotProvedError from None
        raise NotProvedError

    def _read(self, instruction: dis.Instruction) -> None:
        step = _STEPS.get(instruction.opname)
        if step is None:
            raise NotProvedError
        step(self, instruction)

    def skip(self, instruction: dis.Instruction) -> None:
        """Skip an instruction that does not affect the result."""

    def push_null(self, instruction: dis.Instruction) -> None:  # noqa: ARG002  # as in all of _STEPS
        self._stack.append(_NULL)

    def push_global(self, instruction: dis.Instruction) -> None:
        self.push_slot(instruction)
        self._stack.append(_Variable(instruction.argval))

    def push_slot(self, instruction: dis.Instruction) -> None:
        """Push the empty slot next to the callable if the lowest bit is set. Some versions of Python push it later."""
        if (instruction.arg or 0) & 1:
            self._stack.append(_NULL)

    def push_free(self, instruction: dis.Instruction) -> None:
        if instruction.argval not in self._code.co_freevars:
            raise NotProvedError
        self._stack.append(_Variable(instruction.argval, self._code.co_freevars.index(instruction.argval)))

    def push_attribute(self, instruction: dis.Instruction) -> None:
        value = self._stack.pop()
        if not isinstance(value, _Variable):
            raise NotProvedError
        if instruction.opname == "LOAD_METHOD":
            self._stack.append(_NULL)
        elif sys.version_info >= (3, 12):
            self.push_slot(instruction)
        self._stack.append(_Variable(value.name, value.cell, (*value.attributes, instruction.argval)))

    def push_constant(self, instruction: dis.Instruction) -> None:
        self._stack.append(_Constant(instruction.argval))

    def push_local(self, instruction: dis.Instruction) -> None:
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        self._stack.extend([self._locals[name] for name in names])

    def store_local(self, instruction: dis.Instruction) -> None:
        self._locals[instruction.argval] = self._stack.pop()

    def store_and_push_local(self, instruction: dis.Instruction) -> None:
        stored, pushed = instruction.argval
        self._locals[stored] = self._stack.pop()
        self._stack.append(self._locals[pushed])

    def note_keywords(self, instruction: dis.Instruction) -> None:
        self._keywords = self._code.co_consts[instruction.arg or 0]

    def call_with_keywords(self, instruction: dis.Instruction) -> None:
        self._keywords = self._constant(self._stack.pop())
        self.call(instruction)

    @staticmethod
    def _constant(value: Any) -> Any:
        if not isinstance(value, _Constant):
            raise NotProvedError
        return value.value

    def _pop(self, count: int) -> list[Any]:
        if count > len(self._stack):
            raise NotProvedError
        popped = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return popped

    def call(self, instruction: dis.Instruction) -> None:
        """Interpret a call, which must call a variable with the record and another variable."""
        keywords, self._keywords = self._keywords, ()
        given = self._pop(instruction.argval)
        positional = _PARAMETERS[: len(given) - len(keywords)]
        called = [slot for slot in self._pop(2) if slot is not _NULL]
        if self._called is not None or len(called) != 1 or len(given) != len(positional) + len(keywords):
            raise NotProvedError
        arguments = dict(zip((*positional, *keywords), given, strict=True))
        if len(given) != len(_PARAMETERS) or set(arguments) != set(_PARAMETERS):
            raise NotProvedError
        function, features = called[0], arguments["features"]
        if arguments["serialized"] is not _RECORD or not {type(function), type(features)} == {_Variable}:
            raise NotProvedError
        self._called = function, features
        self._stack.append(_PARSED)

    def subscribe(self, instruction: dis.Instruction) -> None:
        """Push one of the parsed features."""
        parsed, name = self._pop(2)
        is_subscription = instruction.opname == "BINARY_SUBSCR" or instruction.argrepr == "[]"
        if not is_subscription or parsed is not _PARSED or type(self._constant(name)) is not str:
            raise NotProvedError
        self._stack.append(_Feature(name.value))

    def build_tuple(self, instruction: dis.Instruction) -> None:
        self._stack.append(tuple(self._pop(instruction.argval)))

    def build_dict(self, instruction: dis.Instruction) -> None:
        items = self._pop(2 * instruction.argval)
        self._push_dict(list(map(self._constant, items[::2])), items[1::2])

    def build_dict_of_constant_keys(self, instruction: dis.Instruction) -> None:
        keys = self._constant(self._stack.pop())
        self._push_dict(list(keys), self._pop(instruction.argval))

    def _push_dict(self, keys: list[Any], values: list[Any]) -> None:
        if not all(type(key) is str for key in keys) or len(set(keys)) < len(keys):
            raise NotProvedError
        self._stack.append(dict(zip(keys, values, strict=True)))

    def _as_result(self, value: Any) -> Result:
        """Return the form of the result: all parsed features, or features in tuples and dicts, each at most once."""
        result = None if value is _PARSED else _picked(value)
        names = list(_names_in(result))
        if len(set(names)) < len(names):
            raise NotProvedError
        return result


_STEPS: dict[str, Callable[[_Reading, dis.Instruction], None]] = {
    **dict.fromkeys(["RESUME", "CACHE", "PRECALL", "NOP", "COPY_FREE_VARS"], _Reading.skip),
    "PUSH_NULL": _Reading.push_null,
    "LOAD_GLOBAL": _Reading.push_global,
    "LOAD_DEREF": _Reading.push_free,
    "LOAD_ATTR": _Reading.push_attribute,
    "LOAD_METHOD": _Reading.push_attribute,
    "LOAD_CONST": _Reading.push_constant,
    "LOAD_FAST": _Reading.push_local,
    "LOAD_FAST_BORROW": _Reading.push_local,
    "LOAD_FAST_CHECK": _Reading.push_local,
    "LOAD_FAST_LOAD_FAST": _Reading.push_local,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _Reading.push_local,
    "STORE_FAST": _Reading.store_local,
    "STORE_FAST_LOAD_FAST": _Reading.store_and_push_local,
    "KW_NAMES": _Reading.note_keywords,
    "CALL": _Reading.call,
    "CALL_KW": _Reading.call_with_keywords,
    "BINARY_SUBSCR": _Reading.subscribe,
    "BINARY_OP": _Reading.subscribe,
    "BUILD_TUPLE": _Reading.build_tuple,
    "BUILD_MAP": _Reading.build_dict,
    "BUILD_CONST_KEY_MAP": _Reading.build_dict_of_constant_keys,
}
"""The effect of each instruction on the stack, by its names in Python 3.11 and later."""


def _names_in(result: Result) -> Iterator[str]:
    if isinstance(result, str):
        yield result
    elif result is not None:
        for part in result.values() if isinstance(result, dict) else result:
            yield from _names_in(part)


def _picked(value: Any) -> Result:
    if isinstance(value, _Feature):
        return value.name
    if isinstance(value, tuple) and value:
        return tuple(map(_picked, value))
    if isinstance(value, dict) and value:
        return {key: _picked(part) for key, part in value.items()}
    raise NotProvedError

"""Which functions do nothing but call parse_single_example, and pick features of what it returns.

The bytecode tells. It is read in order, with a stack of descriptions in the place of values; anything that is not
listed here, a jump among them, ends the reading without a proof. What is allowed changes nothing outside of the
function: it looks up variables, calls parse_single_example once, takes features from its result, and puts them into
tuples and dicts. What the function does about an exception need not be known: where there is one, it is called.

Names mean whatever they are bound to when the function runs. So they are looked up here where the function would, in
its module, in its closure, in the namespaces of modules; and the proof can be asked whether they still mean the same.
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
from dataset.optimize.column_parser import ColumnParser, Result
from dataset.runtime.functions.vectorized import is_vectorized

_RECORDS_MIN = 32
"""Of small records, such as an image and its label, fewer are parsed faster one by one."""

_PARAMETERS = ("serialized", "features")  # of parse_single_example
_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200


class NotProvedError(Exception):
    """Internal: the function does something else, or might."""


def parsing_function(function: Callable[..., Any]) -> ColumnParser | None:
    """Return what parses whole columns in the place of a function that is proved to do nothing but parse."""
    try:
        features_of, result = _proof(function)
        features = features_of()
        parser = ExampleParser(features)
    except (NotProvedError, TypeError, ValueError):  # the latter two of features that parse_single_example refuses
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
    """Return whether a function, by the names in it, calls parse_single_example."""
    return type(function) is FunctionType and parse_single_example.__name__ in function.__code__.co_names


def _proof(function: Callable[..., Any]) -> tuple[Callable[[], dict[str, FeatureSpec]], Result]:
    """Return a function that looks up the features, as long as all else is as it was; and what is returned."""
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


# What stands on the stack in the place of values.


@dataclass(frozen=True)
class _Variable:
    """A global variable, or one of an enclosing function, or an attribute of a module that such a variable holds."""

    name: str
    cell: int | None = None
    attributes: tuple[str, ...] = ()

    def value_in(self, function: FunctionType) -> Any:
        """Return what it holds now."""
        try:
            if self.cell is None:
                value = function.__globals__[self.name]
            else:
                assert function.__closure__ is not None  # the code has free variables
                value = function.__closure__[self.cell].cell_contents
            for attribute in self.attributes:
                if type(value) is not ModuleType:
                    raise NotProvedError
                value = vars(value)[attribute]
        except (KeyError, ValueError):  # not there, or no longer; ValueError is that of an empty cell
            raise NotProvedError from None
        return value


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Feature:
    name: str


class _Other:
    """One of a kind."""


_NULL, _RECORD, _PARSED = _Other(), _Other(), _Other()


class _Reading:
    """Reads the code of a function of one argument, instruction by instruction."""

    def __init__(self, code: CodeType) -> None:
        if code.co_flags & _GENERATOR_OR_VARIADIC or code.co_argcount != 1 or code.co_kwonlyargcount:
            raise NotProvedError
        self._code = code
        self._stack: list[Any] = []
        self._locals: dict[str, Any] = {code.co_varnames[0]: _RECORD}
        self._keywords: tuple[str, ...] = ()  # of the next call
        self._called: tuple[_Variable, _Variable] | None = None

    def result(self) -> tuple[_Variable, _Variable, Result]:
        """Return the variables with the function that is called and its features, and what is returned."""
        try:
            for instruction in dis.get_instructions(self._code):
                if instruction.opname == "RETURN_VALUE":
                    result = self._as_result(self._stack.pop())
                    assert self._called is not None  # there would be no features
                    return *self._called, result
                self._read(instruction)
        except (IndexError, KeyError):  # nothing on the stack, or in a variable: it is not read as it runs
            raise NotProvedError from None
        raise NotProvedError

    def _read(self, instruction: dis.Instruction) -> None:
        step = _STEPS.get(instruction.opname)
        if step is None:
            raise NotProvedError
        step(self, instruction)

    def skip(self, instruction: dis.Instruction) -> None:
        """Nothing that matters to the result."""

    def push_null(self, instruction: dis.Instruction) -> None:  # noqa: ARG002  # as in all of _STEPS
        self._stack.append(_NULL)

    def push_global(self, instruction: dis.Instruction) -> None:
        self.push_slot(instruction)
        self._stack.append(_Variable(instruction.argval))

    def push_slot(self, instruction: dis.Instruction) -> None:
        """The empty slot beside what will be called, if the lowest bit tells of it. Some versions have it above."""
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
        """A call: it must be that of one variable, with the record and another variable."""
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
        """One of the parsed features."""
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
        """Return what is returned: all that was parsed, or features in tuples and dicts, each of them once."""
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
"""What each instruction does to the stack, under the names that they have in the versions of Python from 3.11 on."""


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

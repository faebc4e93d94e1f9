"""Detection of functions that only call parse_single_example and select features from its result.

The bytecode is interpreted (runtime/functions/bytecode.py) on descriptions instead of values. The operations that are
listed here have no side effects: they look up variables, call parse_single_example once, take features from its result,
and put them into tuples and dicts. Any other operation ends the attempt without a proof. Exception handling in the
function does not matter: if parsing fails, the function itself is called.

A name refers to whatever it is bound to when the function runs. So names are looked up here in the same places, in the
function's module, in its closure and in the namespaces of modules, and the proof can check that they are unchanged.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from dataset.io.example.features import FeatureSpec
from dataset.io.example.parse import ExampleParser, parse_single_example
from dataset.optimize.vectorization.column_parser import ColumnParser, Result
from dataset.runtime.functions.bytecode import UNBOUND, Constant, NotProvedError, Variable, interpret
from dataset.runtime.functions.vectorized import is_vectorized

_RECORDS_MIN = 32
"""Fewer small records, such as an image and its label, are parsed faster one by one."""

_PARAMETERS = ("serialized", "features")  # of parse_single_example


def parsing_function(function: Callable[..., Any]) -> ColumnParser | None:
    """Return a column parser to use instead of a function that only parses; None if that cannot be proved."""
    try:
        call, features_of = _proof(function)
        features = features_of()
        parser = ExampleParser(features)
    except (NotProvedError, TypeError, ValueError):  # TypeError, ValueError: parse_single_example rejects the features
        return None
    if not call.looked_up <= features.keys():
        return None
    items = list(features.items())

    def holds() -> bool:
        try:
            return list(features_of().items()) == items
        except NotProvedError:
            return False

    read = frozenset(features if call.result is None else call.returned)
    return ColumnParser(parser, holds, call.result, read, length_min=_RECORDS_MIN)


def calls_parser(function: Callable[..., Any]) -> bool:
    """Return whether a function calls parse_single_example, judging by the names in it."""
    return type(function) is FunctionType and parse_single_example.__name__ in function.__code__.co_names


def _proof(function: Callable[..., Any]) -> tuple[_ParserCall, Callable[[], dict[str, FeatureSpec]]]:
    """Return what a function does, and a function that looks up the features and checks that nothing else changed."""
    call = _ParserCall()
    if type(function) is functools.partial:
        return call, functools.partial(_features_of_partial, function)
    if is_vectorized(function):
        raise NotProvedError
    call.interpret(function)
    return call, functools.partial(call.features_in, function, function.__code__)


def _features_of_partial(function: functools.partial[Any]) -> dict[str, FeatureSpec]:
    if function.func is not parse_single_example or function.args or list(function.keywords) != ["features"]:
        raise NotProvedError
    return _plain(function.keywords["features"])


def _plain(features: Any) -> dict[str, FeatureSpec]:
    """Return the features, if they are in a dict: another mapping is user code."""
    if type(features) is not dict or not all(type(name) is str for name in features):
        raise NotProvedError
    return features


@dataclass(frozen=True)
class _Parsed:
    """Description of the dict of parsed features, or of the feature with a name."""

    name: str | None = None


_RECORD = object()


class _ParserCall:
    """Domain of parser calls: variables, the record, and what a function does with the parsed features.

    Attributes:
        result: the form of the function's result.
        returned: the names of the features in the result, unless these are all features.
        looked_up: the names that are looked up among the features.
    """

    def __init__(self) -> None:
        self.result: Result = None
        self.returned: list[str] = []
        self.looked_up: set[str] = set()
        self._variables: list[Variable] = []
        self._called: list[Variable] = []  # the function and the features

    def interpret(self, function: Callable[..., Any]) -> None:
        result = interpret(function, self._evaluate, may_catch=True)
        if function.__code__.co_argcount != 1:
            raise NotProvedError
        self.result = None if result == _Parsed() else self._form(result)

    def features_in(self, function: Any, code: CodeType) -> dict[str, FeatureSpec]:
        """Return the current features, unless anything has changed."""
        values = {variable: variable.value_in(function) for variable in self._variables}
        if function.__code__ is not code or any(value is UNBOUND for value in values.values()):
            raise NotProvedError
        parse, features = (values[variable] for variable in self._called)
        if parse is not parse_single_example:
            raise NotProvedError
        return _plain(features)

    def _evaluate(self, operation: str, *operands: Any) -> Any:
        match operation, *operands:
            case "argument", _:
                return _RECORD
            case "variable", variable:
                self._variables.append(variable)
                return variable
            case "attribute", Variable() as owner, name:
                return self._evaluate("variable", dataclasses.replace(owner, attributes=(*owner.attributes, name)))
            case "call", Variable() as function, positional, keywords if not self._called:
                return self._call(function, positional, keywords)
            case "subscript", _Parsed(None), Constant(str() as name):
                self.looked_up.add(name)
                return _Parsed(name)
            case "tuple", values:
                return tuple(values)
            case "dict", keys, values:
                return _dict_of(keys, values)
        raise NotProvedError

    def _call(self, function: Variable, positional: list[Any], keywords: dict[str, Any]) -> _Parsed:
        arguments = dict(zip(_PARAMETERS, positional, strict=False)) | keywords
        record, features = map(arguments.get, _PARAMETERS)
        if len(positional) + len(keywords) != 2 or record is not _RECORD or not isinstance(features, Variable):
            raise NotProvedError
        self._called = [function, features]
        return _Parsed()

    def _form(self, value: Any) -> Result:
        """Return the form of a result: features in tuples and dicts, each at most once."""
        match value:
            case _Parsed(str() as name) if name not in self.returned:
                self.returned.append(name)
                return name
            case tuple() if value:
                return tuple(map(self._form, value))
            case dict() if value:
                return {key: self._form(part) for key, part in value.items()}
        raise NotProvedError


def _dict_of(keys: list[Any], values: list[Any]) -> dict[str, Any]:
    names = [key.value for key in keys if isinstance(key, Constant) and type(key.value) is str]
    if len(set(names)) < len(keys):
        raise NotProvedError
    return dict(zip(names, values, strict=True))

"""The symbolic interpreter: what it does not execute. test_expression.py compares its results with single calls."""

import dis
import types

import pytest

from dataset.runtime.functions import bytecode
from dataset.runtime.functions.bytecode import (
    UNBOUND,
    Frame,
    LocalFunction,
    NotProvedError,
    Variable,
    names_in_handlers,
    unknown_python,
)

# These functions are what users write:
# ruff: noqa: F821, F841, FURB110, PLW0603, RET503, RET504, T201

SCALE = 3


def interpret(function, evaluate):
    """Execute straight-line code."""
    code = function.__code__
    frame = Frame(code, evaluate, dict.fromkeys(code.co_varnames[: code.co_argcount]))
    for instruction in dis.get_instructions(code):
        frame.execute(instruction)


def named(x, y):
    """With a docstring, and more than one line."""
    total = x + y
    halved, shifted = total / 2, total - 1
    both = halved, shifted
    return both, total


def caught(x):
    try:
        y = int(x)
        return y
    except ValueError:
        return 0


def creates_early(x):
    y = x
    inner = lambda: y
    y = 2
    return inner()


def creates_in_a_loop(x):
    y = x
    inner = lambda: y
    while x:
        y = 3
    return inner()


def rebinds(x):
    def inner():
        nonlocal x
        x = 2

    return inner()


def branches(x):
    if x:
        x = 1
    return x


def loops(x):
    for _ in x:
        pass
    return x


def unbound(x):
    return y
    y = 1


def asserts(x):
    assert x
    return x


def enters(x):
    with x:
        return 1


def imports(x):
    import sys

    return sys


def assigns(x):
    global assigned
    assigned = x
    return x


def handles_keywords(x):
    return lambda *, y=x: y


NEVER = [branches, loops, unbound, asserts, enters, imports, assigns, creates_early, creates_in_a_loop, rebinds]
NEVER += [
    lambda x: x if x else 1,
    lambda x: x and 1,
    lambda x: 1 < x < 3,
    lambda x: {x},
    handles_keywords,
]


@pytest.mark.parametrize("function", NEVER)
def test_other_instructions_are_not_executed(function):
    def anything(operation, *operands):
        if operation == "call" and isinstance(operands[0], LocalFunction):
            inner = operands[0]
            frame = Frame(inner.code, anything, inner.free.copy())
            for instruction in dis.get_instructions(inner.code):
                frame.execute(instruction)
        return [None] * operands[1] if operation == "unpack" else None

    with pytest.raises(NotProvedError):
        interpret(function, anything)


def handled(x):
    try:
        y = len(x)
    except TypeError:
        return [x]
    finally:
        print(y)
    return x


def test_the_variables_that_handlers_of_exceptions_use():
    assert names_in_handlers(handled.__code__) == {"x", "y"}
    assert names_in_handlers(caught.__code__) == set()
    assert names_in_handlers(named.__code__) == set()


def test_other_versions_of_python_prove_nothing(monkeypatch):
    for known in [("cpython", 3, 11), ("cpython", 3, 15)]:
        monkeypatch.setattr(bytecode, "_PYTHON", known)
        assert unknown_python() is None
    for other in [("cpython", 3, 10), ("cpython", 3, 16), ("cpython", 4, 0), ("pypy", 3, 11)]:
        monkeypatch.setattr(bytecode, "_PYTHON", other)
        assert unknown_python().startswith(f"its bytecode is that of {other[0]} {other[1]}.{other[2]}, which")


def test_an_error_tells_the_line_and_the_reason_that_the_rule_gives():
    def evaluate(operation, *operands):
        if operation == "binary" and operands[0] == "-":
            raise NotProvedError("why")
        return [operation, operation]

    with pytest.raises(NotProvedError, match="why") as caught:
        interpret(named, evaluate)
    assert caught.value.line == named.__code__.co_firstlineno + 3


# Variables


def scoped(value):
    if False:
        empty = 1
    return (lambda x, y=7: (value, empty, y)), Variable("closure", "value", 1), Variable("closure", "empty", 0)


def test_variables_have_the_value_that_the_function_would_read():
    function, value, empty = scoped(5)
    assert value.value_in(function) == 5
    assert empty.value_in(function) is UNBOUND
    assert Variable("default", "y", 0).value_in(function) == 7
    assert Variable("default", "z", 1).value_in(function) is UNBOUND
    assert Variable("closure", "value", 0).value_in(named) is UNBOUND
    assert Variable("global", "SCALE").value_in(function) == 3
    assert Variable("global", "len").value_in(function) is len
    assert Variable("global", "UNDEFINED").value_in(function) is UNBOUND


def test_namespaces_that_may_run_user_code_are_not_read():
    class Names(dict):
        def __getitem__(self, name):
            raise AssertionError(name)

    function = types.FunctionType(named.__code__, Names(SCALE=3))
    assert Variable("global", "SCALE").value_in(function) is UNBOUND

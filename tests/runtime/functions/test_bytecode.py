"""The symbolic interpreter: executed on real values it returns what the function returns; else it proves nothing."""

import dis
import operator
import sys
import types

import pytest

from dataset.runtime.functions import bytecode
from dataset.runtime.functions.bytecode import (
    UNBOUND,
    Constant,
    Frame,
    LocalFunction,
    NotProvedError,
    Variable,
    names_in_handlers,
    unknown_python,
)

# These functions are what users write:
# ruff: noqa: C408, F821, F841, FURB110, PIE800, PIE804, PLW0108, PLW0603, RET503, RET504, T201

SCALE = 3
SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul"}
SYMBOLS |= {"&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift"}
SYMBOLS |= {f"{symbol}=": f"i{name.rstrip('_')}" for symbol, name in SYMBOLS.items()}
SYMBOLS |= {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
UNARY = {"-": operator.neg, "~": operator.invert, "not": operator.not_}


def plain(value):
    if isinstance(value, Constant):
        return value.value
    return [plain(one) for one in value] if type(value) is list else value


def interpret(function, evaluate, arguments=()):
    """Execute straight-line code; return the abstract value of the result."""
    code = function.__code__
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    variables = [Variable("default", name, n) for n, name in enumerate(names[len(names) - len(defaults) :])]
    given = [*arguments, *(evaluate("variable", variable) for variable in variables)]
    frame = Frame(code, evaluate, dict(zip(names, given, strict=True)))
    for instruction in dis.get_instructions(code):
        frame.execute(instruction)
        if instruction.opname in {"RETURN_VALUE", "RETURN_CONST"}:
            (result,) = frame.stack
            return result
    return frame.yielded


def concrete(function, trace):
    """The domain of real values: does what each operation says."""

    def evaluate(operation, *operands):  # noqa: PLR0912  # a table of operations
        trace.append(operation)
        match operation, *map(plain, operands):
            case "variable", variable:
                return variable.value_in(function)
            case "attribute", value, name:
                return getattr(value, name)
            case "subscript", value, key:
                return value[key]
            case "unary", symbol, value:
                return UNARY[symbol](value)
            case "binary", symbol, left, right:
                return getattr(operator, SYMBOLS[symbol])(left, right)
            case "call", called, positional, keywords:
                if isinstance(called, LocalFunction):
                    free = tuple(map(types.CellType, called.free.values()))
                    called = types.FunctionType(called.code, function.__globals__, "local", called.defaults, free)
                return called(*positional, **{name: plain(value) for name, value in keywords.items()})
            case "spread", called, positional, keywords:
                return called(*positional, **(keywords or {}))
            case "unpack", value, count:
                assert len(value) == count
                return list(value)
            case "tuple", values:
                return tuple(values)
            case "dict", keys, values:
                return dict(zip(keys, values, strict=True))
            case "merge", target, value:
                return {**target, **value}
            case "append", target, value:
                return [*target, value]
            case "as tuple", values:
                return tuple(values)
            case "format", values:
                return "".join(map(str, values))
            case "iterate", values:
                return iter(values)
            case "list", values:
                return list(map(plain, values))
            case "extend", target, values:
                return [*target, *values]
            case "slice", bounds:
                return slice(*map(plain, bounds))
            case "store", target, key, value:
                target[key] = value
                return None
            case "delete", target, key:
                del target[key]
                return None
            case "is", left, right, negated:
                return (left is right) != negated
            case "contains", container, value, negated:
                return (value in container) != negated
        raise AssertionError(operation)

    return evaluate


def run(function, *arguments):
    trace = []
    return plain(interpret(function, concrete(function, trace), arguments)), trace


def named(x, y):
    """With a docstring, and more than one line."""
    total = x + y
    halved, shifted = total / 2, total - 1
    both = halved, shifted
    return both, total


def swapped(pair):
    a, (b, c) = pair
    d, a = a, b + c
    return a, b, c, d


def in_place(x):
    x -= 1
    x *= 2
    x //= 3
    x <<= 2
    return x


def unused(x):
    ignored = str(x)
    return x


def called_often(x):
    first = max(x, 3)
    return divmod(first, SCALE)[0] + sum((first, x), start=1) * int("7", base=8)


def caught(x):
    try:
        y = int(x)
        return y
    except ValueError:
        return 0


def changed(x):
    row = {"a": x, "b": 1}
    row["c"], row["a"] = row["a"], 2
    del row["b"]
    values = bytearray(9)
    values[1:3] = b"ab"
    unread = row
    del unread
    str(x)
    return row, values, values[:2], values[1:-1], values[::2], values[x:]


def enclosed(value, other):
    return lambda x: (x + value, other)


def nothing(x):
    pass


def creates(x, y):
    both = x, y
    z = y * 2
    scaled = lambda a, b=y: (a * z, b)
    return scaled(2), scaled(3, 4), both


def takes(*args, **names):
    return args, names


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


SCOPE = {}
exec("def on_one_line(x): y = x; return y", SCOPE)
LONG = eval("lambda x: x" + "".join(f" + {i}.5" for i in range(300)))  # noqa: S307  # arguments of more than a byte


PROVED = [
    (lambda x: x, (5,)),
    (lambda: 5, ()),
    (lambda: 10**9, ()),
    (lambda: (1, "a"), ()),
    (lambda x: (x, None, True, False, -1, ""), (1,)),
    (lambda x, y: (y, x), (1, 2)),
    (lambda x, y=4, z=5: (x, y, z), (1,)),
    (lambda x: (-x, ~x, x * 2 - 1, x / 4, x // 4 % 3, x**2), (7,)),
    (lambda x: ((x & 3) | (x ^ 5), x << 2 >> 1), (7,)),
    (lambda x, y: (x < y, x <= y, x == y, x != y, x > y, x >= y), (1, 2)),
    (lambda x: x["a"][1][-1], ({"a": (0, [1, 2])},)),
    (lambda x: {"a": x, "b": {"c": (x, 1)}}, (1,)),
    (lambda x: {}, (1,)),
    (lambda x: {x: 1}, (1,)),
    (lambda x: {**x, "b": 2, **{"a": 3}}, ({"a": 1},)),
    (lambda x: {"z": 0, **x}, ({"a": 1},)),
    (lambda x: x.real + x.bit_length(), (9,)),
    (lambda x: x.to_bytes(4, byteorder="big").hex("-", bytes_per_sep=2), (9,)),
    (lambda x: operator.itemgetter(1)(x), ((1, 2),)),
    (lambda x: sorted(x, key=operator.neg, reverse=True), ((1, 3, 2),)),
    (lambda x: dict(a=len(x))["a"] * SCALE, ((1, 2),)),
    (named, (1, 2)),
    (swapped, ((1, (2, 3)),)),
    (in_place, (70,)),
    (unused, (1,)),
    (called_often, (5,)),
    (caught, ("5",)),
    (enclosed(2, "b"), (1,)),
    (nothing, (1,)),
    (SCOPE["on_one_line"], (1,)),
    (LONG, (1,)),
    (changed, (2,)),
    (lambda x: (not x, x is None, x is not None, x in (1, 2), x not in (1, 2)), (1,)),
    (lambda x: [x, [x, 1], [1, 2, 3]], (1,)),
    (lambda x: (y := x) + y, (1,)),
    (lambda x: sum(y * SCALE for y in x), ([1, 2],)),
    (lambda x: [(*x, 1), [*x, 2, *x], [1, *x]], ((1, 2),)),
    (lambda x: (takes(*x), takes(0, *x, 1), takes(*x, a=1), takes(1, **{"b": x})), ((1, 2),)),
    (lambda x: f"a{x}" + f"{x}", (1,)),
    (creates, (1, 2)),
]


@pytest.mark.parametrize(("function", "arguments"), PROVED)
def test_gives_on_real_values_what_the_function_returns(function, arguments):
    result, _ = run(function, *arguments)
    assert result == function(*arguments)


@pytest.mark.parametrize(("function", "arguments"), PROVED)
def test_without_any_of_its_instructions_nothing_is_proved(function, arguments, monkeypatch):
    instructions = list(dis.get_instructions(function))
    end = next(i for i, one in enumerate(instructions) if one.opname.startswith("RETURN_"))
    for opname in {one.opname for one in instructions[: end + 1]}:
        with monkeypatch.context() as without:
            without.delitem(bytecode._STEPS, opname)
            with pytest.raises((NotProvedError, AssertionError)):
                run(function, *arguments)


def test_each_opcode_of_this_version_is_tried():
    used = {one.opname for function, _ in PROVED for one in dis.get_instructions(function)}
    left = {opname for opname in bytecode._STEPS if dis.opmap.get(opname, 256) < 256} - used  # others are never run
    if sys.version_info < (3, 15):
        left.discard("LOAD_COMMON_CONSTANT")  # loads only functions, where nothing is proved
    in_loops = {"YIELD_VALUE", "RETURN_GENERATOR", "MAP_ADD", "POP_ITER", "LOAD_FAST_AND_CLEAR"}  # test_expression.py
    assert left <= {"CACHE", "NOP", "LOAD_FAST_CHECK"} | in_loops, "add a function that uses it"


def test_operations_are_the_same_in_every_version_and_in_the_order_of_execution():
    assert run(unused, 1)[1] == ["variable", "call"]  # although its result is not used
    operations = ["variable", "variable", "subscript", "call", "attribute", "call", "dict", "merge"]
    assert run(lambda x, y=2: {"a": str(x["b"], "ascii").upper(), **x}, {"b": b"c"})[1] == operations


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
    lambda x: f"{x:3}",
    lambda x: f"{x!r}",
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
        interpret(function, anything, [None] * function.__code__.co_argcount)


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
        interpret(named, evaluate, [0, 0])
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

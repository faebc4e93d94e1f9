"""Elementwise proofs: proves from a function's bytecode that it computes each element independently, without effects.

The bytecode is interpreted on abstract values: arguments and their parts, numbers and arrays, and known functions of
NumPy. Each abstract value records the components of the element from which it is computed. An instruction, a callable
or a method that is not listed here ends the attempt, and so does any jump: unknown behaviour is never guessed.

Each listed operation gives for an array, bit for bit, what it gives for each scalar or row in it, at any position:

- Operators and functions whose results are exact or correctly rounded according to IEEE 754: + - * /, comparisons,
  sqrt, rint, floor and similar ones; // and %, which use the same C code for both. Not exp, sin, ** and similar ones:
  NumPy has several loops for these, which may differ in the last bit, and chooses one by an element's position.
- maximum, minimum and clip of numbers that may both be zero: the sign of zero depends on the loop. So they are only
  allowed for integers, or with a bound that excludes this case.
- Casts of integers to integers, which wrap. Casts of floats to integers are platform-dependent if the value does not
  fit, so they are not allowed.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from dataset.runtime.functions.columnwise import NUMBERS, ElementwiseProof, Path, Read, kind_of, stays_integer

_GENERATOR_OR_VARIADIC = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
_NULL_IS_ABOVE = sys.version_info >= (3, 13)
_HAS_METHOD_BIT = sys.version_info >= (3, 12)

_INTEGER_OPERATORS = frozenset({"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"})
_COMPARISONS = frozenset({"<", "<=", "==", "!=", ">", ">="})
_PLAIN = frozenset({"RESUME", "CACHE", "PRECALL", "NOP", "EXTENDED_ARG", "COPY_FREE_VARS"})

_STAYS_INTEGER: frozenset[np.ufunc] = frozenset(
    {
        *(np.add, np.subtract, np.multiply, np.floor_divide, np.remainder),
        *(np.negative, np.positive, np.absolute, np.sign, np.square),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift),
    }
)
_IS_BOOL: frozenset[np.ufunc] = frozenset(
    {
        *(np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal),
        *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
        *(np.isfinite, np.isinf, np.isnan, np.signbit),
    }
)
_IS_FLOAT = frozenset(
    [np.divide, np.fmod, np.fabs, np.sqrt, np.reciprocal, np.rint, np.floor, np.ceil, np.trunc, np.copysign]
)
_EXTREMES = frozenset([np.maximum, np.minimum, np.fmax, np.fmin])
_DTYPES = frozenset({*(dtype.type for dtype in NUMBERS), float, int, bool})
_FUNCTIONS = frozenset({np.where, np.clip, abs})


class _Obstacle(Exception):  # noqa: N818  # not an error
    """Internal exception that ends a proof, with a reason if it is useful to the user."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class _Part:
    """Abstract value of an argument or a part of it: a component or a nested element."""

    path: Path


@dataclass(frozen=True)
class _Array:
    """Abstract value of a number or an array of numbers.

    Attributes:
        components: the components from which it is computed; empty for a constant.
        rank: the rank of a constant.
        floats: it is an integer or a bool if these components are; None if its type is unknown.
        literal: the value of a literal in the code.
        is_python: whether it is a Python number.
    """

    components: frozenset[Path] = frozenset()
    rank: int = 0
    floats: frozenset[Path] | None = frozenset()
    literal: float | None = None
    is_python: bool = False


@dataclass(frozen=True)
class _Known:
    """Known value: NumPy, one of its functions or types, or a text."""

    value: Any


@dataclass(frozen=True)
class _Method:
    name: str
    owner: _Array


@dataclass(frozen=True)
class _Built:
    """Abstract value of a tuple or a dict of results."""

    values: tuple[Any, ...]


_NULL = _Known(None)  # the interpreter pushes it next to a callable that is not a method

_Value: TypeAlias = _Part | _Array | _Known | _Method | _Built


def prove_elementwise(function: Callable[..., Any]) -> ElementwiseProof | str | None:
    """Return the proof; or the reason why there is none; or None for other kinds of functions."""
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    if code.co_flags & _GENERATOR_OR_VARIADIC or code.co_kwonlyargcount or code.co_exceptiontable:
        return None
    if type(function.__globals__) is not dict or type(function.__builtins__) is not dict:  # type: ignore[attr-defined, unused-ignore]
        return None
    arity = code.co_argcount - len(function.__defaults__ or ())
    known = _FOUND.get(code)
    if known is None or known.arity != arity or not all(read.holds(function) for read in known.reads):
        known = _Attempt(function, arity).outcome()
        if known.lasts:
            _FOUND[code] = known
    return (
        ElementwiseProof(function, code, known.reads, arity, **known.facts) if known.facts is not None else known.reason
    )


@dataclass(frozen=True)
class _Outcome:
    """Result of an attempt: facts or a reason. It holds for all functions with this code and equivalent reads.

    If a dataset is created for each element of another, its function objects are new each time, but not their code.
    """

    arity: int
    reads: tuple[Read, ...]
    facts: dict[str, Any] | None = None
    reason: str | None = None
    lasts: bool = True
    """Whether it depends on nothing other than ``reads``."""


_FOUND: weakref.WeakKeyDictionary[CodeType, _Outcome] = weakref.WeakKeyDictionary()


class _Attempt:
    """Abstract interpretation of a function's bytecode."""

    def __init__(self, function: FunctionType, arity: int) -> None:
        self.function = function
        self.code = function.__code__
        self.arity = arity
        self.stack: list[_Value] = []
        self.locals: dict[str, _Value] = {}
        self.reads: dict[Read, None] = {}
        self.reads_all = True
        self.numbers: set[Path] = set()
        self.together: set[tuple[frozenset[Path], int]] = set()
        self.integers: set[Path] = set()
        self.tuples: set[tuple[Path, int]] = set()
        self.dicts: set[Path] = set()
        self.passed: set[Path] = set()

    def outcome(self) -> _Outcome:
        try:
            self._run()
        except _Obstacle as obstacle:
            return _Outcome(self.arity, tuple(self.reads), reason=obstacle.reason, lasts=self.reads_all)
        names = ("numbers", "together", "integers", "tuples", "dicts", "passed")
        facts = {name: frozenset(getattr(self, name)) for name in names}
        return _Outcome(self.arity, tuple(self.reads), facts)

    def _run(self) -> None:
        for position, name in enumerate(self.code.co_varnames[: self.code.co_argcount]):
            after = position - self.arity
            self.locals[name] = _Part((position,)) if after < 0 else self._read("default", name, after)
        for instruction in dis.get_instructions(self.code):
            if instruction.opname == "RETURN_CONST":
                self.constant(instruction)
            if instruction.opname in {"RETURN_VALUE", "RETURN_CONST"}:
                self._pass_on(self._pop())
                return
            self._step(instruction)

    def _step(self, instruction: dis.Instruction) -> None:
        name = instruction.opname
        if name in _PLAIN:
            return
        try:
            _STEPS.get(name, _Attempt.unknown)(self, instruction)
        except _Obstacle as obstacle:
            line = instruction.positions.lineno if instruction.positions else None
            if obstacle.reason is None or line is None or line == self.code.co_firstlineno:
                raise
            raise _Obstacle(f"{obstacle.reason} (line {line})") from None

    def unknown(self, instruction: dis.Instruction) -> None:
        """Stop at an instruction that is not listed."""
        raise _Obstacle(self._what_is_unknown(instruction.opname))

    def _what_is_unknown(self, opname: str) -> str | None:
        names = {instruction.opname for instruction in dis.get_instructions(self.code)}
        if any("JUMP" in name or name == "FOR_ITER" for name in names) and not any("CALL" in name for name in names):
            return "it branches; use np.where() instead"
        if "UNARY_NOT" in names:
            return "it uses not; use np.logical_not(), which also takes arrays"
        return "it uses keyword arguments in a call" if opname in {"KW_NAMES", "CALL_KW"} else None

    # The stack

    def _push(self, *values: _Value) -> None:
        self.stack.extend(values)

    def _pop(self) -> _Value:
        return self.stack.pop()

    def _pop_many(self, count: int) -> list[_Value]:
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    # Constants, local and other variables

    def constant(self, instruction: dis.Instruction) -> None:
        value = instruction.argval
        if type(value) in {str, tuple}:
            self._push(_Known(value))
            return
        if type(value) not in {int, float, bool} or kind_of(value) is None:
            raise _Obstacle
        self._push(dataclasses.replace(_constant_like(value), literal=value))

    def load(self, instruction: dis.Instruction) -> None:
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        for name in names:
            self._push(self._local(name))

    def _local(self, name: str) -> _Value:
        if name not in self.locals:
            raise _Obstacle
        return self.locals[name]

    def store(self, instruction: dis.Instruction) -> None:
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        for name in names:
            self.locals[name] = self._pop()

    def store_and_load(self, instruction: dis.Instruction) -> None:
        stored, loaded = instruction.argval
        self.locals[stored] = self._pop()
        self._push(self._local(loaded))

    def load_global(self, instruction: dis.Instruction) -> None:
        found = self._read("global", instruction.argval, 0)
        pair = (found, _NULL) if _NULL_IS_ABOVE else (_NULL, found)
        self._push(*pair) if (instruction.arg or 0) & 1 else self._push(found)

    def load_closure(self, instruction: dis.Instruction) -> None:
        name = instruction.argval
        if name not in self.code.co_freevars:
            raise _Obstacle
        self._push(self._read("closure", name, self.code.co_freevars.index(name)))

    def push_null(self, _: dis.Instruction) -> None:
        self._push(_NULL)

    def load_attribute(self, instruction: dis.Instruction) -> None:
        is_method = instruction.opname == "LOAD_METHOD" or (_HAS_METHOD_BIT and (instruction.arg or 0) & 1)
        owner, name = self._pop(), instruction.argval
        if isinstance(owner, _Known) and owner.value is np:
            found = self._read("numpy", name, 0)
        elif isinstance(owner, _Part | _Array) and name in {"astype", "clip"} and is_method:
            found = _Method(name, self._array(owner))
        else:
            raise _Obstacle
        self._push(found, _NULL) if is_method else self._push(found)  # the following call accepts them in any order

    def _read(self, source: str, name: str, position: int) -> _Value:
        unbound = Read(source, name, position, None)
        self.reads_all = False  # until the value is found to be usable and added to the reads
        try:
            value = unbound.find(self.function)
        except (LookupError, ValueError, TypeError):
            raise _Obstacle from None
        kind = kind_of(value)
        read = dataclasses.replace(unbound, expected=value if kind is None else kind)
        if value is np:
            found: _Value = _Known(np)
        elif kind is not None:
            found = _constant_like(value)
        elif _is_known(value):
            found = _Known(value)
        else:
            raise _Obstacle(_what_was_read(value, source, name))
        self.reads[read] = None
        self.reads_all = True
        return found

    # Taking apart and building elements

    def subscript(self, _: dis.Instruction) -> None:
        owner, key = self._pop_many(2)
        looked_up = key.value if isinstance(key, _Known) else key.literal if isinstance(key, _Array) else None
        if not isinstance(owner, _Part):
            raise _Obstacle("it indexes an array" if isinstance(owner, _Array) else None)
        if type(looked_up) is not str and (type(looked_up) is not int or looked_up < 0):
            raise _Obstacle
        self._push(_Part((*owner.path, looked_up)))

    def unpack(self, instruction: dis.Instruction) -> None:
        owner, size = self._pop(), instruction.argval
        if not isinstance(owner, _Part):
            raise _Obstacle
        self.tuples.add((owner.path, size))
        self._push(*(_Part((*owner.path, index)) for index in reversed(range(size))))

    def build_tuple(self, instruction: dis.Instruction) -> None:
        self._push(_Built(tuple(self._pop_many(instruction.argval))))

    def build_dict(self, instruction: dis.Instruction) -> None:
        items = self._pop_many(2 * instruction.argval)
        self._push(_dict_of(items[::2], items[1::2]))

    def build_dict_of_keys(self, instruction: dis.Instruction) -> None:
        keys = self._pop()
        values = self._pop_many(instruction.argval)
        self._push(_dict_of([_Known(key) for key in keys.value] if isinstance(keys, _Known) else [keys], values))

    def update_dict(self, instruction: dis.Instruction) -> None:
        other = self._pop()
        target = self.stack[-instruction.argval]
        assert isinstance(target, _Built)  # {**other} begins with an empty dict
        if isinstance(other, _Part):
            self.dicts.add(other.path)
        elif not isinstance(other, _Built):
            raise _Obstacle
        self.stack[-instruction.argval] = _Built((*target.values, other))

    def _pass_on(self, value: _Value) -> None:
        """Record a returned value."""
        if isinstance(value, _Built):
            if not value.values:
                raise _Obstacle
            for part in value.values:
                self._pass_on(part)
        elif isinstance(value, _Part):
            self.passed.add(value.path)
        elif not isinstance(value, _Array):
            raise _Obstacle
        elif not value.components:
            raise _Obstacle("it returns a constant, which would have to be repeated for each element")

    # Arithmetic

    def binary(self, instruction: dis.Instruction) -> None:
        operator = instruction.argrepr
        if operator == "[]":
            self.subscript(instruction)
            return
        operands = self._pop_many(2)
        if operator in _INTEGER_OPERATORS:
            self._push(self._combine(operands))
        elif operator == "/":
            self._push(self._float(operands))
        elif operator == "**":
            raise _Obstacle(f"it uses **, {_LAST_BIT}")
        elif operator.removesuffix("=") in _INTEGER_OPERATORS | {"/"}:
            raise _Obstacle(f"it uses {operator}, which modifies arrays in place; use x = x {operator[:-1]} y")
        else:
            raise _Obstacle

    def compare(self, instruction: dis.Instruction) -> None:
        if instruction.argrepr not in _COMPARISONS:
            self.unknown(instruction)
        self._push(self._bool(self._pop_many(2)))

    def unary(self, _: dis.Instruction) -> None:
        self._push(self._combine([self._pop()]))

    def _combine(self, operands: Sequence[_Value]) -> _Array:
        """Return the result of an elementwise operation, which is an integer if all operands are."""
        arrays = list(map(self._array, operands))
        components = frozenset[Path]().union(*(array.components for array in arrays))
        rank = max(array.rank for array in arrays)
        if components and (rank or len(components) > 1):
            self.together.add((components, rank))
        floats: frozenset[Path] | None = frozenset()
        for array in arrays:
            floats = None if floats is None or array.floats is None else floats | array.floats
        return _Array(components, 0 if components else rank, floats)

    def _float(self, operands: Sequence[_Value]) -> _Array:
        return dataclasses.replace(self._combine(operands), floats=None)

    def _bool(self, operands: Sequence[_Value]) -> _Array:
        return dataclasses.replace(self._combine(operands), floats=frozenset())

    def _array(self, value: _Value) -> _Array:
        if isinstance(value, _Part):
            self.numbers.add(value.path)
            return _Array(frozenset({value.path}), floats=frozenset({value.path}))
        if not isinstance(value, _Array):
            raise _Obstacle
        return value

    def _of_integers(self, result: _Array, what: str) -> _Array:
        """Return the result, on the condition that the components from which it is computed are integers."""
        if result.floats is None:
            raise _Obstacle(what)
        self.integers |= result.floats
        return dataclasses.replace(result, floats=frozenset())

    # Calls

    def call(self, instruction: dis.Instruction) -> None:
        arguments = self._pop_many(instruction.argval)
        callables = [value for value in self._pop_many(2) if value is not _NULL]
        if len(callables) != 1:
            raise _Obstacle
        self._push(self._result(callables[0], arguments))

    def _result(self, called: _Value, arguments: list[_Value]) -> _Array:
        if isinstance(called, _Method):
            arguments = [called.owner, *arguments]
            return self._cast(arguments) if called.name == "astype" else self._clip(arguments)
        function = called.value if isinstance(called, _Known) else None
        if isinstance(function, np.ufunc):
            return self._ufunc(function, arguments)
        if isinstance(function, type) and issubclass(function, np.generic):
            return self._cast([*arguments, called])
        if function is np.where and len(arguments) == 3:
            return dataclasses.replace(self._combine(arguments), floats=self._combine(arguments[1:]).floats)
        if function is np.clip:
            return self._clip(arguments)
        if function is abs and len(arguments) == 1:
            return self._combine(arguments)
        if function in {int, float, bool}:
            raise _Obstacle(
                f"it calls {function.__name__}(), which takes single numbers; NumPy's types also take arrays"
            )
        raise _Obstacle

    def _ufunc(self, function: np.ufunc, arguments: list[_Value]) -> _Array:
        if len(arguments) != function.nin:  # further arguments would be outputs
            raise _Obstacle
        if function in _STAYS_INTEGER:
            return self._combine(arguments)
        if function in _IS_BOOL:
            return self._bool(arguments)
        if function in _IS_FLOAT:
            return self._float(arguments)
        assert function in _EXTREMES  # _is_known allows no others
        result = self._combine(arguments)
        literals = [value.literal for value in arguments if isinstance(value, _Array) and value.literal is not None]
        if any(abs(literal) >= _NO_ZERO for literal in literals):  # zero is never compared with zero
            return result
        return self._of_integers(result, f"it calls np.{function.__name__}, {_SIGN_OF_ZERO}")

    def _clip(self, arguments: list[_Value]) -> _Array:
        if len(arguments) != 3:
            raise _Obstacle
        result = self._combine(arguments)
        # Scalar bounds have their own loop, which is also used for a single number.
        if all(isinstance(bound, _Array) and bound.is_python for bound in arguments[1:]):
            return result
        return self._of_integers(result, f"it clips to bounds that are not Python numbers, {_SIGN_OF_ZERO}")

    def _cast(self, arguments: list[_Value]) -> _Array:
        if len(arguments) != 2 or not isinstance(arguments[1], _Known):
            raise _Obstacle
        value, target = self._array(arguments[0]), arguments[1].value
        try:
            dtype = np.dtype(target)
        except (TypeError, ValueError):
            raise _Obstacle from None
        if dtype not in NUMBERS:
            raise _Obstacle
        if dtype.kind == "f":
            return dataclasses.replace(self._combine([value]), floats=None)
        if dtype.kind == "b":
            return dataclasses.replace(self._combine([value]), floats=frozenset())
        cast = self._of_integers(value, "it casts floats to integers, whose results may differ where they do not fit")
        return dataclasses.replace(
            cast, literal=None, is_python=False, floats=cast.floats if stays_integer(dtype) else None
        )


_Step: TypeAlias = Callable[[_Attempt, dis.Instruction], None]
_NO_ZERO = 2.0**-14  # the smallest normal float16; much smaller numbers are rounded to zero
_LAST_BIT = "whose results for arrays and for single numbers may differ in the last bit"
_SIGN_OF_ZERO = "which may choose a different sign of zero for arrays"

_STEPS: dict[str, _Step] = {
    "LOAD_CONST": _Attempt.constant,
    "LOAD_SMALL_INT": _Attempt.constant,
    "LOAD_FAST": _Attempt.load,
    "LOAD_FAST_BORROW": _Attempt.load,
    "LOAD_FAST_LOAD_FAST": _Attempt.load,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _Attempt.load,
    "STORE_FAST": _Attempt.store,
    "STORE_FAST_STORE_FAST": _Attempt.store,
    "STORE_FAST_LOAD_FAST": _Attempt.store_and_load,
    "LOAD_GLOBAL": _Attempt.load_global,
    "LOAD_DEREF": _Attempt.load_closure,
    "PUSH_NULL": _Attempt.push_null,
    "LOAD_ATTR": _Attempt.load_attribute,
    "LOAD_METHOD": _Attempt.load_attribute,
    "CALL": _Attempt.call,
    "BINARY_SUBSCR": _Attempt.subscript,
    "UNPACK_SEQUENCE": _Attempt.unpack,
    "BUILD_TUPLE": _Attempt.build_tuple,
    "BUILD_MAP": _Attempt.build_dict,
    "BUILD_CONST_KEY_MAP": _Attempt.build_dict_of_keys,
    "DICT_UPDATE": _Attempt.update_dict,
    "BINARY_OP": _Attempt.binary,
    "COMPARE_OP": _Attempt.compare,
    "UNARY_NEGATIVE": _Attempt.unary,
    "UNARY_INVERT": _Attempt.unary,
}


def _constant_like(value: Any) -> _Array:
    """Return the abstract value of a number or an array of numbers that is the same for all elements."""
    if type(value) in {int, float, bool}:
        return _Array(floats=None if type(value) is float else frozenset(), is_python=True)
    return _Array(rank=value.ndim, floats=frozenset() if stays_integer(value.dtype) else None)


def _dict_of(keys: Sequence[Any], values: Sequence[_Value]) -> _Built:
    if not all(isinstance(key, _Known) and type(key.value) is str for key in keys):
        raise _Obstacle
    return _Built(tuple(values))


def _is_known(value: Any) -> bool:
    """Return whether it is a supported function or type."""
    if isinstance(value, np.ufunc):
        return value in _STAYS_INTEGER or value in _IS_BOOL or value in _IS_FLOAT or value in _EXTREMES
    if isinstance(value, type):
        return any(value is known for known in _DTYPES)
    return any(value is known for known in _FUNCTIONS)


def _what_was_read(value: Any, source: str, name: str) -> str | None:
    """Return the reason why a value that the function reads is not supported; None for other kinds of functions."""
    if isinstance(value, np.ufunc):
        mine = vars(np).get(value.__name__) is value
        return f"it calls np.{value.__name__}, {_LAST_BIT}" if mine else None
    if source == "numpy" or callable(value) or isinstance(value, type(builtins)):
        return None
    what = {"global": "the global", "closure": "the variable", "default": "the default of"}[source]
    return f"it reads {what} {name}, of type {type(value).__name__}; only numbers and arrays of numbers are safe"

"""Elementwise proofs: proves from a function's bytecode that it computes each element independently, without effects.

The bytecode is interpreted (runtime/functions/bytecode.py) on abstract values: arguments and their parts, numbers and
arrays, and known functions of NumPy. Each abstract value records the components of the element from which it is
computed. An operation, a callable or a method that is not listed here ends the attempt: unknown behaviour is never
guessed.

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

import dataclasses
import dis
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from dataset.runtime.functions.bytecode import UNBOUND, Constant, NotProvedError, Variable, arity_of, interpret
from dataset.runtime.functions.columnwise import NUMBERS, ElementwiseProof, Path, Read, kind_of, stays_integer

_INTEGER_OPERATORS = frozenset({"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"})
_COMPARISONS = frozenset({"<", "<=", "==", "!=", ">", ">="})

# Whether the result of a function is an integer or a bool: if all arguments are, always, or not to be known.
_IF_ALL, _ALWAYS, _UNKNOWN = range(3)
_EXTREMES = frozenset([np.maximum, np.minimum, np.fmax, np.fmin])
_UFUNCS: dict[np.ufunc, int] = {
    **dict.fromkeys([np.add, np.subtract, np.multiply, np.floor_divide, np.remainder], _IF_ALL),
    **dict.fromkeys([np.negative, np.positive, np.absolute, np.sign, np.square, *_EXTREMES], _IF_ALL),
    **dict.fromkeys([np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift], _IF_ALL),
    **dict.fromkeys([np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal], _ALWAYS),
    **dict.fromkeys([np.logical_and, np.logical_or, np.logical_xor, np.logical_not], _ALWAYS),
    **dict.fromkeys([np.isfinite, np.isinf, np.isnan, np.signbit], _ALWAYS),
    **dict.fromkeys([np.divide, np.fmod, np.fabs, np.sqrt, np.reciprocal, np.copysign], _UNKNOWN),
    **dict.fromkeys([np.rint, np.floor, np.ceil, np.trunc], _UNKNOWN),
}
_DTYPES = frozenset({*(dtype.type for dtype in NUMBERS), float, int, bool})
_FUNCTIONS = frozenset({np.where, np.clip, abs})


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
        is_python: whether it is a Python number.
    """

    components: frozenset[Path] = frozenset()
    rank: int = 0
    floats: frozenset[Path] | None = frozenset()
    is_python: bool = False


@dataclass(frozen=True)
class _Known:
    """Known value of a variable: NumPy, or one of its functions or types."""

    value: Any
    variable: Variable


@dataclass(frozen=True)
class _Method:
    name: str
    owner: _Array


@dataclass(frozen=True)
class _Built:
    """Abstract value of a tuple or a dict of results."""

    values: tuple[Any, ...]


_Value: TypeAlias = Constant | _Part | _Array | _Known | _Method | _Built


def prove_elementwise(function: Callable[..., Any]) -> ElementwiseProof | str | None:
    """Return the proof; or the reason why there is none; or None for other kinds of functions."""
    if type(function) is not FunctionType:
        return None
    code, arity = function.__code__, arity_of(function)
    known = _FOUND.get(code)
    if known is None or known.arity != arity or not all(read.holds(function) for read in known.reads):
        known = _outcome(function, arity)
        if known.lasts:
            _FOUND[code] = known
    return known.reason if known.facts is None else ElementwiseProof(function, code, known.reads, arity, **known.facts)


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


def _outcome(function: FunctionType, arity: int) -> _Outcome:
    domain = _Arithmetic(function)
    try:
        domain.pass_on(interpret(function, domain.evaluate))
    except NotProvedError as error:
        reason = error.reason
        if reason is not None and error.line not in {None, function.__code__.co_firstlineno}:
            reason = f"{reason} (line {error.line})"
        return _Outcome(arity, tuple(domain.reads), reason=reason, lasts=domain.is_reusable)
    facts = {name: frozenset(found) for name, found in domain.facts.items()}
    return _Outcome(arity, tuple(domain.reads), facts)


class _Arithmetic:
    """Domain of arithmetic on columns: the abstract result of each operation, and what is found about a function."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.reads: dict[Read, None] = {}
        self.is_reusable = True  # a failure depends only on the code and the reads
        names = ("numbers", "together", "integers", "tuples", "dicts", "passed")
        self.facts: dict[str, set[Any]] = {name: set() for name in names}

    def evaluate(self, operation: str, *operands: Any) -> Any:  # noqa: C901, PLR0912  # a table of operations
        match operation, *operands:
            case "argument", position:
                return _Part((position,))
            case "variable", Variable() as variable:
                return self._read(variable)
            case "attribute", _Known(value, variable), name if value is np:
                return self._read(dataclasses.replace(variable, attributes=(name,)))
            case "attribute", (_Part() | _Array()) as owner, ("astype" | "clip") as name:
                return _Method(name, self._array(owner))
            case "subscript", _Part(path), Constant(key) if type(key) is str or (type(key) is int and key >= 0):
                return _Part((*path, key))
            case "subscript", _Array(), _:
                raise NotProvedError("it indexes an array")
            case "unary", _, value:
                return self._combine([value])
            case "binary", symbol, left, right:
                return self._binary(symbol, [left, right])
            case "call", called, arguments, keywords:
                if keywords:
                    raise NotProvedError("it uses keyword arguments in a call")
                return self._call(called, arguments)
            case "unpack", _Part(path), size:
                self.facts["tuples"].add((path, size))
                return [_Part((*path, index)) for index in range(size)]
            case "tuple", values:
                return _Built(tuple(values))
            case "dict", keys, values if all(isinstance(key, Constant) and type(key.value) is str for key in keys):
                return _Built(tuple(values))
            case "merge", _Built(values), (_Part() | _Built()) as other:
                if isinstance(other, _Part):
                    self.facts["dicts"].add(other.path)
                return _Built((*values, other))
            case "unknown", _:
                raise NotProvedError(_what_is_unknown(self.function.__code__))
        raise NotProvedError

    def _read(self, variable: Variable) -> _Value:
        value = variable.value_in(self.function)
        kind = kind_of(value)
        if kind is None and not _is_known(value):
            self.is_reusable = False
            raise NotProvedError(_what_was_read(value, variable))
        self.reads[Read(variable, value if kind is None else kind)] = None
        return _Known(value, variable) if kind is None or value is np else _constant_like(value)

    def pass_on(self, value: _Value) -> None:
        """Record a returned value."""
        if isinstance(value, _Part):
            self.facts["passed"].add(value.path)
        elif isinstance(value, _Built) and value.values:
            for part in value.values:
                self.pass_on(part)
        elif not self._array(value).components:
            raise NotProvedError("it returns a constant, which would have to be repeated for each element")

    # Arithmetic

    def _binary(self, symbol: str, operands: Sequence[_Value]) -> _Array:
        if symbol in _INTEGER_OPERATORS:
            return self._combine(operands)
        if symbol in _COMPARISONS or symbol == "/":
            return self._combine(operands, _UNKNOWN if symbol == "/" else _ALWAYS)
        if symbol == "**":
            raise NotProvedError(f"it uses **, {_LAST_BIT}")
        if symbol.removesuffix("=") in _INTEGER_OPERATORS | {"/"}:
            raise NotProvedError(f"it uses {symbol}, which modifies arrays in place; use x = x {symbol[:-1]} y")
        raise NotProvedError

    def _combine(self, operands: Sequence[_Value], is_integer: int = _IF_ALL) -> _Array:
        """Return the result of an elementwise operation; ``is_integer`` says when it is an integer or a bool."""
        arrays = list(map(self._array, operands))
        components = frozenset[Path]().union(*(array.components for array in arrays))
        rank = max(array.rank for array in arrays)
        if components and (rank or len(components) > 1):
            self.facts["together"].add((components, rank))
        floats: frozenset[Path] | None = None if is_integer == _UNKNOWN else frozenset()
        for array in arrays if is_integer == _IF_ALL else ():
            floats = None if floats is None or array.floats is None else floats | array.floats
        return _Array(components, 0 if components else rank, floats)

    def _array(self, value: _Value) -> _Array:
        if isinstance(value, _Part):
            self.facts["numbers"].add(value.path)
            return _Array(frozenset({value.path}), floats=frozenset({value.path}))
        if isinstance(value, Constant) and type(value.value) in {int, float, bool} and kind_of(value.value) is not None:
            return _constant_like(value.value)
        if not isinstance(value, _Array):
            raise NotProvedError
        return value

    def _of_integers(self, result: _Array, what: str) -> _Array:
        """Return the result, on the condition that the components from which it is computed are integers."""
        if result.floats is None:
            raise NotProvedError(what)
        self.facts["integers"] |= result.floats
        return dataclasses.replace(result, floats=frozenset())

    # Calls

    def _call(self, called: _Value, arguments: list[_Value]) -> _Array:
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
        if isinstance(function, type):
            raise NotProvedError(
                f"it calls {function.__name__}(), which takes single numbers; NumPy's types also take arrays"
            )
        raise NotProvedError

    def _ufunc(self, function: np.ufunc, arguments: list[_Value]) -> _Array:
        if len(arguments) != function.nin:  # further arguments would be outputs
            raise NotProvedError
        result = self._combine(arguments, _UFUNCS[function])
        literals = [value.value for value in arguments if isinstance(value, Constant)]
        # Zero is never compared with zero if one of them is another number.
        if function not in _EXTREMES or any(abs(literal) >= _NO_ZERO for literal in literals):
            return result
        return self._of_integers(result, f"it calls np.{function.__name__}, {_SIGN_OF_ZERO}")

    def _clip(self, arguments: list[_Value]) -> _Array:
        if len(arguments) != 3:
            raise NotProvedError
        result = self._combine(arguments)
        # Scalar bounds have their own loop, which is also used for a single number.
        if all(self._array(bound).is_python for bound in arguments[1:]):
            return result
        return self._of_integers(result, f"it clips to bounds that are not Python numbers, {_SIGN_OF_ZERO}")

    def _cast(self, arguments: list[_Value]) -> _Array:
        if len(arguments) != 2 or not isinstance(arguments[1], _Known | Constant):
            raise NotProvedError
        value, target = self._array(arguments[0]), arguments[1].value
        try:
            dtype = np.dtype(target if isinstance(target, str | type) else object)
        except (TypeError, ValueError):
            raise NotProvedError from None
        if dtype not in NUMBERS:
            raise NotProvedError
        if dtype.kind not in "fb":
            self._of_integers(value, "it casts floats to integers, whose results may differ where they do not fit")
        return self._combine([value], _ALWAYS if stays_integer(dtype) else _UNKNOWN)


_NO_ZERO = 2.0**-14  # the smallest normal float16; much smaller numbers are rounded to zero
_LAST_BIT = "whose results for arrays and for single numbers may differ in the last bit"
_SIGN_OF_ZERO = "which may choose a different sign of zero for arrays"


def _constant_like(value: Any) -> _Array:
    """Return the abstract value of a number or an array of numbers that is the same for all elements."""
    if type(value) in {int, float, bool}:
        return _Array(floats=None if type(value) is float else frozenset(), is_python=True)
    return _Array(rank=value.ndim, floats=frozenset() if stays_integer(value.dtype) else None)


def _is_known(value: Any) -> bool:
    """Return whether it is a supported function or type."""
    return any(value is known for known in (*_UFUNCS, *_DTYPES, *_FUNCTIONS))


def _what_is_unknown(code: CodeType) -> str | None:
    """Return the reason why an instruction is not supported; None for other kinds of functions."""
    names = {instruction.opname for instruction in dis.get_instructions(code)}
    if any("JUMP" in name or name == "FOR_ITER" for name in names) and not any("CALL" in name for name in names):
        return "it branches; use np.where() instead"
    return "it uses not; use np.logical_not(), which also takes arrays" if "UNARY_NOT" in names else None


def _what_was_read(value: Any, variable: Variable) -> str | None:
    """Return the reason why a value that the function reads is not supported; None for other kinds of functions."""
    if isinstance(value, np.ufunc):
        mine = vars(np).get(value.__name__) is value
        return f"it calls np.{value.__name__}, {_LAST_BIT}" if mine else None
    if variable.attributes or value is UNBOUND or callable(value) or isinstance(value, ModuleType):
        return None
    what = {"global": "the global", "closure": "the variable", "default": "the default of"}[variable.source]
    kind = type(value).__name__
    return f"it reads {what} {variable.name}, of type {kind}; only numbers and arrays of numbers are safe"

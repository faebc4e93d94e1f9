"""Elementwise proofs: proves from a function's bytecode that it computes each element independently, without effects.

The bytecode is interpreted (runtime/functions/bytecode.py) on abstract values: arguments and their parts, numbers and
arrays, and known functions of NumPy. Each abstract value records the components of the element from which it is
computed. An operation, a callable or a method that is not listed here ends the attempt: unknown behaviour is never
guessed. The operations are recorded, to be applied to columns later.

Functions of the library that parse or decode bytes may declare a twin for columns (``__dataset_column_twin__``). The
result of a call of such a function is treated like a further argument.

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

import collections
import dataclasses
import dis
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dataset import io
from dataset.runtime.functions.bytecode import UNBOUND, Constant, NotProvedError, Variable, arity_of, interpret
from dataset.runtime.functions.columnwise import (
    NUMBERS,
    Derived,
    ElementPart,
    ElementwiseProof,
    Operation,
    Path,
    Read,
    Slot,
    kind_of,
    stays_integer,
)

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
_FUNCTIONS = frozenset({np.where, np.clip, np.reshape, np.frombuffer, abs})

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "~": operator.invert}


@dataclass(frozen=True)
class _Array:
    """Abstract value of a number or an array of numbers.

    Attributes:
        components: the components from which it is computed; empty for a constant.
        rank: the rank of a constant.
        floats: it is an integer or a bool if these components are; None if its type is unknown.
        is_python: whether it is a Python number.
        reshaped: its rank, if it was reshaped; otherwise it has the rank of its components.
        slot: where the operation is that computes it; None for a component and for a literal.
    """

    components: frozenset[Path] = frozenset()
    rank: int = 0
    floats: frozenset[Path] | None = frozenset()
    is_python: bool = False
    reshaped: int | None = None
    slot: Slot | None = None


@dataclass(frozen=True)
class _Known:
    """Known value of a variable: a module, a function, a type, a shape, or a dict, which may only be passed on."""

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
    slot: Slot | None = None


_Result = TypeVar("_Result", "_Array", "_Built")
_Value: TypeAlias = Constant | ElementPart | _Array | _Known | _Method | _Built


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
        result = interpret(function, domain.evaluate)
        domain.pass_on(result)
    except NotProvedError as error:
        reason = error.reason
        if reason is not None and error.line not in {None, function.__code__.co_firstlineno}:
            reason = f"{reason} (line {error.line})"
        return _Outcome(arity, tuple(domain.reads), reason=reason, lasts=domain.is_reusable)
    returned = _operand(result)
    facts: dict[str, Any] = {name: frozenset(found) for name, found in domain.facts.items()}
    facts |= {"derived": domain.final_derived(), "result": returned}
    facts["operations"] = tuple(_with_reuse(domain.operations, returned))
    return _Outcome(arity, tuple(domain.reads), facts)


class _Arithmetic:
    """Domain of arithmetic on columns: the abstract result of each operation, and what is found about a function."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.reads: dict[Read, None] = {}
        self.derived: list[Derived] = []
        self.operations: list[Operation] = []
        self.is_reusable = True  # a failure depends only on the code and the reads
        names = ("parts", "numbers", "together", "integers", "tuples", "dicts", "passed")
        self.facts: dict[str, set[Any]] = {name: set() for name in names}

    def evaluate(self, operation: str, *operands: Any) -> Any:  # noqa: C901, PLR0912  # a table of operations
        match operation, *operands:
            case "argument", position:
                return ElementPart((position,))
            case "variable", Variable() as variable:
                return self._read(variable)
            case "attribute", _Known(ModuleType(), variable), name:
                return self._read(dataclasses.replace(variable, attributes=(*variable.attributes, name)))
            case "attribute", (ElementPart() | _Array()) as owner, name if name in _METHODS:
                return _Method(name, self._array(owner))
            case "subscript", ElementPart(path), Constant(key) if self._is_lookup(path, key):
                self.facts["parts"].add((*path, key))
                return ElementPart((*path, key))
            case "subscript", _Array() | ElementPart(), _:
                raise NotProvedError("it indexes an array")
            case "unary", symbol, value:
                return self._record(self._combine([value]), _UNARY[symbol], value)
            case "binary", symbol, left, right:
                return self._record(self._binary(symbol, [left, right]), _OPERATORS[symbol], left, right)
            case "call", called, arguments, keywords:
                return self._call(called, arguments, keywords)
            case "unpack", ElementPart(path), size if path[0] < arity_of(self.function):
                self.facts["tuples"].add((path, size))
                return [ElementPart((*path, index)) for index in range(size)]
            case "tuple", values:
                return self._record(_Built(tuple(values)), _tuple_of, *values)
            case "dict", keys, values if all(isinstance(key, Constant) and type(key.value) is str for key in keys):
                return self._record(_Built(tuple(values)), _dict_of, tuple(key.value for key in keys), *values)
            case "merge", _Built(values) as target, (ElementPart() | _Built()) as other:
                if isinstance(other, ElementPart):
                    self.facts["dicts"].add(other.path)
                return self._record(_Built((*values, other)), operator.or_, target, other)
            case "unknown", _:
                raise NotProvedError(_what_is_unknown(self.function.__code__))
        for operand in operands:
            if isinstance(operand, _Known):
                raise NotProvedError(_what_was_read(operand.value, operand.variable))
        raise NotProvedError

    def _is_lookup(self, path: Path, key: Any) -> bool:
        """Return whether a subscript can only look up a part of an element; those of derived arguments are columns."""
        number = path[0] - arity_of(self.function)
        if number >= 0:
            return type(key) is str and len(path) == 1 and self.derived[number].gives_dict
        return type(key) is str or (type(key) is int and key >= 0)

    def _record(self, value: _Result, operate: Callable[..., Any], *operands: Any) -> _Result:
        """Record the operation that computes a value."""
        self.operations.append((operate, tuple(map(_operand, operands))))
        return dataclasses.replace(value, slot=Slot(len(self.operations) - 1))

    def _read(self, variable: Variable) -> _Value:
        value = variable.value_in(self.function)
        kind = kind_of(value)
        if kind is None and not _is_known(value):
            self.is_reusable = False
            raise NotProvedError(_what_was_read(value, variable))
        if type(value) is not ModuleType:  # or its attributes are read
            self.reads[Read(variable, value if kind is None else kind)] = None
        if kind is None or type(value) in {dict, tuple, ModuleType}:
            return _Known(value, variable)
        return self._record(_constant_like(value), Variable.value_in, variable, Slot(-1))

    def pass_on(self, value: _Value) -> None:
        """Record a returned value."""
        if isinstance(value, ElementPart):
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
        reshaped = {array.reshaped for array in arrays if array.components} or {None}
        if len(reshaped) > 1 or ((known := reshaped.pop()) is not None and rank > known):
            raise NotProvedError("it combines arrays of different ranks")
        if known is None and components and (rank or len(components) > 1):
            self.facts["together"].add((components, rank))
        floats: frozenset[Path] | None = None if is_integer == _UNKNOWN else frozenset()
        for array in arrays if is_integer == _IF_ALL else ():
            floats = None if floats is None or array.floats is None else floats | array.floats
        return _Array(components, 0 if components else rank, floats, reshaped=known)

    def _array(self, value: _Value) -> _Array:
        if isinstance(value, ElementPart):
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

    def _call(self, called: _Value, arguments: list[_Value], keywords: dict[str, _Value]) -> _Array | ElementPart:
        if isinstance(called, _Method):
            function, arguments = _METHODS[called.name], [called.owner, *arguments]
        elif isinstance(called, _Known) and callable(called.value):
            function = called.value
        else:
            raise NotProvedError
        if (found := _twin_of(function)) is not None:
            return self._derive(*found, arguments, keywords)
        if keywords:
            raise NotProvedError("it uses keyword arguments in a call")
        if function is _reshaped or (function is np.reshape and len(arguments) == 2):
            return self._reshape(arguments)
        return self._record(self._result(function, called, arguments), function, *arguments)

    def _result(self, function: Any, called: _Value, arguments: list[_Value]) -> _Array:
        if isinstance(function, np.ufunc):
            return self._ufunc(function, arguments)
        if function is _astype:
            return self._cast(arguments)
        if isinstance(function, type) and issubclass(function, np.generic):
            return self._cast([*arguments, called])
        if function is np.where and len(arguments) == 3:
            return dataclasses.replace(self._combine(arguments), floats=self._combine(arguments[1:]).floats)
        if function is np.clip or function is _clip:
            return self._clip(arguments)
        if function is abs and len(arguments) == 1:
            return self._combine(arguments)
        if isinstance(function, type):
            raise NotProvedError(
                f"it calls {function.__name__}(), which takes single numbers; NumPy's types also take arrays"
            )
        raise NotProvedError

    def _derive(
        self, twin: Any, names: tuple[str, ...], arguments: list[_Value], keywords: dict[str, _Value]
    ) -> ElementPart:
        """Return the result of a function with a twin, as a further argument."""
        given = dict(zip(names, arguments, strict=False)) | keywords
        if len(arguments) + len(keywords) != 2 or given.keys() != set(names):
            raise NotProvedError
        part, argument = map(given.__getitem__, names)
        if not isinstance(part, ElementPart) or not isinstance(argument, _Known | Constant):
            raise NotProvedError
        is_dict = isinstance(argument, _Known) and type(argument.value) is dict
        self.derived.append(Derived(twin, part.path, argument.variable if is_dict else argument.value, is_dict))  # type: ignore[union-attr]  # it is _Known
        return ElementPart((arity_of(self.function) + len(self.derived) - 1,))

    def final_derived(self) -> tuple[Derived, ...]:
        """Return the calls of functions with twins, and for those that return dicts what is used of these."""
        returned, looked_up = self.facts["dicts"] | self.facts["passed"], self.facts["parts"]
        decoded = {derived.path for derived in self.derived} - self.facts["numbers"] - returned
        found = []
        for number, derived in enumerate(self.derived, arity_of(self.function)):
            uses = None if (number,) in returned else _keys(number, looked_up)
            octets = frozenset() if uses is None else _keys(number, decoded)
            found.append(dataclasses.replace(derived, uses=uses, octets=octets))
        return tuple(found)

    def _reshape(self, arguments: list[_Value]) -> _Array:
        owner, *sizes = arguments
        array, shape = self._array(owner), sizes[0] if len(sizes) == 1 else None
        if isinstance(shape, Constant | _Known) and type(shape.value) is tuple:
            sizes = list(map(Constant, shape.value))
        elif isinstance(shape, _Built):
            sizes = list(shape.values)
        are_known = all(isinstance(size, Constant) and type(size.value) is int for size in sizes)
        if not array.components or not sizes or not are_known:
            raise NotProvedError("it reshapes an array to a shape that is not constant")
        place = _operand(owner)
        is_given = isinstance(place, ElementPart) and place.path[0] < arity_of(self.function)
        reshaped = dataclasses.replace(array, reshaped=len(sizes))
        return self._record(reshaped, _reshaped_copy if is_given else _reshaped, place, *sizes)

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


# Operations whose arguments are arrays or columns.


def _astype(array: Any, dtype: Any) -> Any:
    return array.astype(dtype)


def _clip(array: Any, *bounds: Any) -> Any:
    return array.clip(*bounds)


def _reshaped(column: Any, *shape: int) -> Any:
    return column.reshape(len(column), *shape)


def _reshaped_copy(column: Any, *shape: int) -> Any:
    return _reshaped(column.copy(), *shape)  # the column belongs to the input


def _reusing(function: np.ufunc, array: Any, other: Any) -> Any:
    """Call the function, and write the result into the array if it is of the same dtype and shape."""
    if type(array) is not np.ndarray or array.dtype.kind != "f":
        return function(array, other)
    is_alike = type(other) is np.ndarray and other.dtype == array.dtype and other.shape == array.shape
    return function(array, other, out=array) if is_alike or type(other) in {int, float} else function(array, other)


_IN_PLACE = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
}


def _with_reuse(operations: list[Operation], returned: Any) -> Iterator[Operation]:
    """Yield the operations; those that are the only use of an intermediate result may write into its memory."""
    used = [returned, *(operand for _, operands in operations for operand in operands)]
    uses = collections.Counter(operand for operand in used if type(operand) is Slot)
    for operate, operands in operations:
        found, target = _IN_PLACE.get(operate), operands[0] if operands else None
        if found is not None and type(target) is Slot and uses[target] == 1:
            producer = operations[target.index][0]
            if producer is _astype or producer in _IN_PLACE:
                yield _reusing, (found, *operands)
                continue
        yield operate, operands


def _tuple_of(*values: Any) -> tuple[Any, ...]:
    return values


def _dict_of(keys: Iterable[str], *values: Any) -> dict[str, Any]:
    return dict(zip(keys, values, strict=True))


_METHODS: dict[str, Callable[..., Any]] = {"astype": _astype, "clip": _clip, "reshape": _reshaped}


def _keys(number: int, paths: Iterable[Path]) -> frozenset[str]:
    """Return the keys that ``paths`` look up in an argument."""
    return frozenset(path[1] for path in paths if path[0] == number and len(path) > 1)


def _operand(value: Any) -> Any:
    """Return how an operation finds the value when it runs."""
    if isinstance(value, _Array) and value.slot is None:
        (path,) = value.components
        return ElementPart(path)
    if isinstance(value, _Array | _Built):
        return value.slot
    return value.value if isinstance(value, Constant | _Known) else value


def _twin_of(function: Any) -> tuple[Callable[..., Any], tuple[str, ...]] | None:
    """Return the twin of a function for columns and the names of its two parameters, or None."""
    if function is np.frombuffer:
        return io.decode_raw.__dataset_column_twin__, ("buffer", "dtype")  # type: ignore[attr-defined]  # as below
    twin = vars(function).get("__dataset_column_twin__") if type(function) is FunctionType else None
    return None if twin is None else (twin, function.__code__.co_varnames[:2])


_NO_ZERO = 2.0**-14  # the smallest normal float16; much smaller numbers are rounded to zero
_LAST_BIT = "whose results for arrays and for single numbers may differ in the last bit"
_SIGN_OF_ZERO = "which may choose a different sign of zero for arrays"


def _constant_like(value: Any) -> _Array:
    """Return the abstract value of a number or an array of numbers that is the same for all elements."""
    if type(value) in {int, float, bool}:
        return _Array(floats=None if type(value) is float else frozenset(), is_python=True)
    return _Array(rank=value.ndim, floats=frozenset() if stays_integer(value.dtype) else None)


def _is_known(value: Any) -> bool:
    """Return whether it is a supported function or type, or a module that may have some."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in {"numpy", "dataset"}
    return any(value is known for known in (*_UFUNCS, *_DTYPES, *_FUNCTIONS)) or _twin_of(value) is not None


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

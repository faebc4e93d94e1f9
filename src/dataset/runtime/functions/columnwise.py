"""Elementwise functions: proved to process each element independently, and when they may run on columns.

optimize/vectorization/elementwise_proof.py derives the proof from a function's bytecode, before anything runs. The
checks here, done for each chunk, cover what it cannot know: the structure of the elements, the dtypes and ranks of the
columns, and whether the globals that the function reads are still of the same kind. Then the function's operations are
applied to the columns. None of this calls user code.
"""

from __future__ import annotations

import dataclasses
import marshal
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from dataset.plan.lazy import lazy_property
from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple, to_plain
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.bytecode import Variable

Path: TypeAlias = tuple[Any, ...]
"""The path of a part of an element: the position of the argument, then the keys that the function looks up.

The results of library functions that the function calls are numbered like further arguments (``Derived``).
"""

NUMBERS = frozenset(np.dtype(code) for code in "?bBhHiIlLqQefd")
"""The dtypes that NumPy computes with alike in scalars and in arrays; larger floats contain unused bits."""

ELEMENT_BYTES_MAX = 8192
"""Larger elements are expensive by themselves, and a column of them does not stay in the cache for the next step."""

# Below these measured lengths, calling the function for each element is faster.
LENGTH_MIN = 8  # for arrays
COSTLY_MIN = 32  # for numbers, if a call is expensive: NumPy's functions are called, or elements are dicts
SCALARS_MIN = 64  # for numbers

TRIED_FROM = 512
"""From which position on columns are tried: a trial costs as much as a few hundred elements."""

TRIAL = 64
"""How many elements are computed both ways before columns are trusted."""


@dataclass(frozen=True)
class Read:
    """Something that a function reads when called: a variable outside of it, or an attribute of NumPy.

    It may be rebound at any time, so the proof depends on its kind: a number may become any other number. A function
    that is called, such as ``np.sqrt``, must be the same object.
    """

    variable: Variable
    expected: Any
    """The result of ``kind_of`` for a number or an array; otherwise the object itself."""

    @property
    def is_function_of_module(self) -> bool:
        """Whether it is an attribute of NumPy or of this package."""
        return bool(self.variable.attributes)

    def holds(self, function: FunctionType) -> bool:
        """Return whether the function would still read what the proof expects."""
        value = self.variable.value_in(function)
        kind = kind_of(value)
        return value is self.expected if kind is None else kind == self.expected


def kind_of(value: Any) -> Any:
    """Return the kind of a number or array of numbers: values of one kind are interchangeable. None for all else.

    A shape is its own kind. A dict has its type, since it is only passed on.
    """
    kind = type(value)
    if kind is tuple:
        return value if all(type(size) is int for size in value) else None
    if kind is dict:
        return dict
    if kind is int:
        return int if -(2**63) <= value < 2**64 else None  # NumPy converts larger ints to objects
    if kind is float or kind is bool:
        return kind
    if kind is np.ndarray or issubclass(kind, np.generic):
        return (kind, value.dtype, value.ndim) if value.dtype in NUMBERS else None
    return None


def stays_integer(dtype: np.dtype[Any]) -> bool:
    """Return whether integer arithmetic with such dtypes yields integers; uint64 with int64 yields floats."""
    return dtype.kind in "bi" or (dtype.kind == "u" and dtype.itemsize < 8)


@dataclass(frozen=True)
class Slot:
    """Operand of an operation: the result of the operation at ``index``, or the function itself at -1."""

    index: int


@dataclass(frozen=True)
class ElementPart:
    """The part of an element at ``path``, or its columns: an operand, and in a proof its abstract value."""

    path: Path

    def of(self, arguments: Sequence[Any]) -> Any:
        """Return the part."""
        value: Any = arguments
        for key in self.path:
            value = value[key]
        return value


Operation: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of NumPy or Python, and its operands: slots, parts, or other values as they are."""


@dataclass(frozen=True)
class Derived:
    """A call of a library function that has a twin for columns.

    Attributes:
        twin: returns the results for a column as a column, or as a dict of columns.
        path: the part of an element that the function is called with.
        argument: the second argument; a variable, if it has to be read again.
        gives_dict: whether the result is a dict.
        uses: the keys of the dict that the function looks up, or None for all.
        octets: those whose values are only passed to functions that decode raw bytes.
    """

    twin: Callable[..., Any]
    path: Path
    argument: Any
    gives_dict: bool
    uses: frozenset[str] | None = None
    octets: frozenset[str] = frozenset()

    def __call__(self, function: FunctionType, arguments: Sequence[Any]) -> Any:
        """Return the results for the columns of the arguments.

        Raises:
            Exception: if there are none, or the function would fail for an element.
        """
        column, argument = ElementPart(self.path).of(arguments), self.argument
        if isinstance(argument, Variable):
            argument = argument.value_in(function)
        return self.twin(column, argument, self.uses, self.octets) if self.gives_dict else self.twin(column, argument)


@dataclass(frozen=True, eq=False)
class ElementwiseProof:
    """Proof that a function has no side effects, and that its result for columns is the columns of its results.

    It holds for chunks that it ``fits``: the function computes only with numbers and arrays of numbers. For these,
    calls are unobservable, whether they are early, late, repeated or omitted, with two exceptions: what the function
    ``reads`` may be rebound between two calls, and a failure belongs to an element and must be raised in its place. If
    other components are involved, which may be objects with operators of their own, the function is called for each
    element.

    Attributes:
        function: the function examined.
        code: its code at that time.
        reads: what it reads apart from its arguments.
        arity: the number of its arguments.
        derived: the calls of library functions whose results are further arguments, in order.
        operations: what it computes, in order.
        result: the operand that it returns.
        parts: the parts that it looks up.
        numbers: the components that it computes with.
        together: sets of components combined in one operation, with the rank of the constants in that operation.
        integers: the components that must be integers or bools.
        tuples: parts that are unpacked, and into how many.
        dicts: parts that must be dicts.
        passed: parts that are returned unchanged.
    """

    function: FunctionType
    code: CodeType
    reads: tuple[Read, ...]
    arity: int
    derived: tuple[Derived, ...]
    operations: tuple[Operation, ...]
    result: Any
    parts: frozenset[Path]
    numbers: frozenset[Path]
    together: frozenset[tuple[frozenset[Path], int]]
    integers: frozenset[Path]
    tuples: frozenset[tuple[Path, int]]
    dicts: frozenset[Path]
    passed: frozenset[Path]

    @property
    def reads_nothing(self) -> bool:
        """Whether nothing can be rebound between two calls except the function itself and NumPy's own functions."""
        return all(read.is_function_of_module for read in self.reads)

    @lazy_property
    def reads_arrays(self) -> bool:
        """Whether it reads arrays, which can be written to."""
        return any(type(read.expected) is tuple and read.expected[:1] == (np.ndarray,) for read in self.reads)

    def holds(self) -> bool:
        """Return whether the function is unchanged and still reads what the proof expects."""
        code = self.function.__code__
        return (code is self.code or code == self.code) and all(read.holds(self.function) for read in self.reads)

    def takes(self, structure: Structure) -> bool:
        """Return whether elements of this structure fit the function's arguments, and run no user code themselves."""
        arguments = structure.children if is_tuple(structure) else (structure,)
        if to_plain(structure) is None or len(arguments) != self.arity:  # constructors of user classes are user code
            return False
        paths = [path for path in self.parts | self.numbers | self.dicts | self.passed if path[0] < self.arity]
        try:
            parts = {path: _part(arguments, path) for path in paths}
            unpacked = [(_part(arguments, path), size) for path, size in self.tuples]
        except LookupError:
            return False
        return (
            all(is_tuple(part) and len(part.children) == size for part, size in unpacked)
            and all(is_dict(part) for path, part in parts.items() if path in self.dicts)
            and all(part is LEAF for path, part in parts.items() if path in self.numbers)
        )

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Return whether the columns in these arguments meet the requirements."""
        if not all(path[1] in arguments[path[0]] for path in self.parts if path[0] >= self.arity):
            return False
        element_bytes = 0
        columns = {path: ElementPart(path).of(arguments) for path in self.numbers}
        for column in columns.values():
            if type(column) is not np.ndarray or column.dtype not in NUMBERS:
                return False
            if column.ndim > 1:
                if not column.flags.c_contiguous:  # the results would have the same memory layout
                    return False
                element_bytes += column.nbytes // len(column)
        if element_bytes > ELEMENT_BYTES_MAX:
            return False
        for paths, rank in self.together:
            ndims = {columns[path].ndim for path in paths}
            if len(ndims) > 1 or ndims.pop() <= rank:  # broadcasting would align other axes than for single elements
                return False
        if not all(_is_passed_on(ElementPart(path).of(arguments)) for path in self.passed):
            return False
        return all(stays_integer(columns[path].dtype) for path in self.integers)

    def length_min(self, arguments: Sequence[Any], structure: Structure) -> int:
        """Return the length from which on it is faster to run the function on these columns."""
        if any(ElementPart(path).of(arguments).ndim > 1 for path in self.numbers) or self.derived:
            return LENGTH_MIN
        is_costly = not structure.is_immutable or any(read.is_function_of_module for read in self.reads)
        return COSTLY_MIN if is_costly else SCALARS_MIN

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle does not support code objects. The marshalled code is only compared in the other process, never run.
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _received, (fields | {"code": marshal.dumps(self.code)},)


def _received(fields: dict[str, Any]) -> ElementwiseProof:
    """Rebuild a proof in another process."""
    return ElementwiseProof(**fields | {"code": marshal.loads(fields["code"])})  # noqa: S302  # sent by our own process


class Columns:
    """Decides for an operator on which chunks its function runs on columns, and computes the results.

    The checks have a cost per chunk, and a trial has a cost once. So a chunk must be long enough, and a minimum number
    of elements must have been seen. After chunks that do not qualify, an increasing number of chunks is not checked.
    """

    def __init__(self, proof: ElementwiseProof) -> None:
        self._proof = proof
        self._seen: tuple[Structure, bool] | None = None
        self.length_min = LENGTH_MIN  # until elements have been seen
        self._failures = 0
        self._resting = 0  # how many more chunks to skip without a check
        self._refused = False
        self._compared = 0
        self.trusted = False
        """Whether columns and single elements gave the same results when both were computed."""

    def may_fit(self, length: int, position: int) -> bool:
        """Return whether to look at a chunk of this length, whose first element has this position."""
        if length < self.length_min or self._refused:
            return False
        if not self.trusted and position + length < TRIED_FROM:
            return False
        if self._resting:
            self._resting -= 1
            return False
        return True

    def call(self, function: Any, inputs: Chunk) -> Any:
        """Return the results for whole columns; None if it is not proved that they are the same, or not worthwhile.

        Raises:
            Exception: if the function may raise or warn for an element.
        """
        proof, structure = self._proof, inputs.structure
        if self._takes(structure) and proof.holds() and not _overflow_raises():
            element = structure.unflatten(list(map(_stacked, inputs.columns())))
            arguments = element if is_tuple(structure) else (element,)
            for derived in proof.derived:
                arguments = (*arguments, derived(function, arguments))
            if proof.fits(arguments):
                self.length_min = proof.length_min(arguments, structure)
                return _run(proof, function, arguments) if inputs.length >= self.length_min else None
        self.rest()
        return None

    def values_read(self) -> tuple[Any, ...] | None:
        """Return what the function reads now, with the items of dicts; None if part of it may change in place."""
        if self._proof.reads_arrays:
            return None
        values = [read.variable.value_in(self._proof.function) for read in self._proof.reads]
        items = [item for value in values if type(value) is dict for item in (*value, *value.values())]
        return (self._proof.function.__code__, *np.geterr().values(), *warnings.filters, *values, *items)

    def rest(self) -> None:
        """Note a chunk that did not qualify for columns."""
        self._failures += 1
        self._resting = 32 << min(self._failures, 30)

    def judge(self, length: int, *, same: bool) -> None:
        """Note whether some elements were the same both ways. Trust columns after enough; otherwise never use them."""
        self._compared += length
        if not same:
            self._refused = True  # never taken back: another worker may judge at the same time
        self.trusted = not self._refused and self._compared >= TRIAL

    def _takes(self, structure: Structure) -> bool:
        seen = self._seen
        if seen is None or (seen[0] is not structure and seen[0] != structure):
            self._seen = seen = structure, self._proof.takes(structure)
        return seen[1]


def are_same(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two sequences contain the same objects."""
    return len(values) == len(others) and all(map(operator.is_, values, others))


def _stacked(column: Column) -> Column:
    """Return arrays of one shape and dtype as one array, and other columns as they are."""
    if not isinstance(column, list) or type(column[0]) is not np.ndarray:
        return column
    if column[0].nbytes > ELEMENT_BYTES_MAX or column[0].dtype not in NUMBERS:
        return column
    if not all(array.flags.c_contiguous for array in column):  # the results would have the same memory layout
        return column
    try:
        return stack_column(column)  # type: ignore[no-any-return]  # they are arrays
    except ColumnMismatchError:
        return column


def _is_passed_on(part: Any) -> bool:
    """Return whether values passed through unchanged equal those of the columns; scalars may lose a byte order."""
    if isinstance(part, tuple | dict):
        return all(map(_is_passed_on, part.values() if isinstance(part, dict) else part))
    return isinstance(part, list) or part.ndim > 1 or part.dtype in NUMBERS or part.dtype == object


def _run(proof: ElementwiseProof, function: Any, arguments: Sequence[Any]) -> Any:
    """Apply the function's operations to columns, and return its result.

    Raises:
        FloatingPointError: where NumPy would warn. For single elements, the warning differs in text and location.
    """
    results: list[Any] = []

    def value_of(operand: Any) -> Any:
        if type(operand) is Slot:
            return results[operand.index] if operand.index >= 0 else function
        return operand.of(arguments) if type(operand) is ElementPart else operand

    with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
        for operate, operands in proof.operations:
            results.append(operate(*map(value_of, operands)))
    return value_of(proof.result)


def _part(arguments: Sequence[Structure], path: Path) -> Structure:
    """Return the part at ``path``.

    Raises:
        LookupError: if it does not exist.
    """
    part, children, keys = arguments[0], arguments, tuple(range(len(arguments)))
    for key in path:
        if key not in keys:
            raise LookupError(key)
        part = children[keys.index(key)]
        children, keys = part.children, part.child_keys()
    return part


def _overflow_raises() -> bool:
    """Return whether an integer overflow may raise; NumPy detects it in single numbers but not in arrays."""
    return not _QUIET.issuperset(np.geterr().values()) or _warning_raises()


_QUIET = frozenset({"ignore", "warn"})


def _warning_raises() -> bool:
    """Return whether the filters may turn a RuntimeWarning into an error. The first matching filter decides."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False

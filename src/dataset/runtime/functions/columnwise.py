"""Elementwise functions: proved to process each element independently, and when they may run on columns.

optimize/vectorization/elementwise_proof.py derives the proof from a function's bytecode, before anything runs. The
checks here, done for each chunk, cover what it cannot know: the structure of the elements, the dtypes and ranks of the
columns, and whether the globals that the function reads are still of the same kind. None of this calls user code.
"""

from __future__ import annotations

import dataclasses
import marshal
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple, to_plain
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.bytecode import Variable
from dataset.runtime.resources.interrupts import call

Path: TypeAlias = tuple[Any, ...]
"""The path of a part of an element: the position of the argument, then the keys that the function looks up."""

NUMBERS = frozenset(np.dtype(code) for code in "?bBhHiIlLqQefd")
"""The dtypes that NumPy computes with alike in scalars and in arrays.

Scalars lose a non-native byte order, and larger floats contain unused bits.
"""

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
    def is_function_of_numpy(self) -> bool:
        """Whether it is an attribute of NumPy."""
        return bool(self.variable.attributes)

    def holds(self, function: FunctionType) -> bool:
        """Return whether the function would still read what the proof expects."""
        value = self.variable.value_in(function)
        kind = kind_of(value)
        return value is self.expected if kind is None else kind == self.expected


def kind_of(value: Any) -> Any:
    """Return the kind of a number or array of numbers: values of one kind are interchangeable. None for all else.

    NumPy itself has its name as kind, since modules cannot be sent to other processes.
    """
    if value is np:
        return "numpy"
    kind = type(value)
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
    numbers: frozenset[Path]
    together: frozenset[tuple[frozenset[Path], int]]
    integers: frozenset[Path]
    tuples: frozenset[tuple[Path, int]]
    dicts: frozenset[Path]
    passed: frozenset[Path]

    @property
    def reads_nothing(self) -> bool:
        """Whether nothing can be rebound between two calls except the function itself and NumPy's own functions."""
        return all(read.is_function_of_numpy or read.expected == "numpy" for read in self.reads)

    def holds(self) -> bool:
        """Return whether the function is unchanged and still reads what the proof expects."""
        code = self.function.__code__
        return (code is self.code or code == self.code) and all(read.holds(self.function) for read in self.reads)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle does not support code objects. The marshalled code is only compared in the other process, never run.
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _received, (fields | {"code": marshal.dumps(self.code)},)


def _received(fields: dict[str, Any]) -> ElementwiseProof:
    """Rebuild a proof in another process."""
    return ElementwiseProof(**fields | {"code": marshal.loads(fields["code"])})  # noqa: S302  # sent by our own process


class Columns:
    """Decides for an operator on which chunks its function runs on columns, and calls it.

    The checks have a cost per chunk, and a trial has a cost once. So a chunk must be long enough, and a minimum number
    of elements must have been seen. After chunks that do not qualify, an increasing number of chunks is not checked.
    """

    def __init__(self, proof: ElementwiseProof) -> None:
        self._proof = proof
        self._seen: tuple[Structure, ColumnLayout | None] | None = None
        self._length_min = LENGTH_MIN  # until elements have been seen
        self._failures = 0
        self._resting = 0  # how many more chunks to skip without a check
        self._refused = False
        self.trusted = False
        """Whether columns and single elements gave the same results when both were computed."""

    def fit(self, inputs: Chunk, position: int) -> bool:
        """Return whether the function is proved to give the same results on these columns, and this is worthwhile."""
        if inputs.length < self._length_min or self._refused:
            return False
        if not self.trusted and position + inputs.length < TRIED_FROM:
            return False
        if self._resting:
            self._resting -= 1
            return False
        layout = self._layout(inputs.structure)
        if layout is None or not layout.fits(inputs.columns()) or not self._proof.holds() or _overflow_raises():
            self.rest()
            return False
        self._length_min = layout.length_min(inputs.columns())
        return inputs.length >= self._length_min

    def call(self, function: Callable[..., Any], inputs: Chunk) -> Any:
        """Call the function on whole columns.

        Raises:
            FloatingPointError: where NumPy would warn. For single elements, the warning differs in text and location.
        """
        element = inputs.structure.unflatten(inputs.columns())
        given = element if is_tuple(inputs.structure) else (element,)
        with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
            return call(function, *given)

    def rest(self) -> None:
        """Note a chunk that did not qualify for columns."""
        self._failures += 1
        self._resting = 32 << min(self._failures, 30)

    def judge(self, *, same: bool) -> None:
        """Trust columns from now on, or never use them again."""
        self.trusted, self._refused = same, not same

    def _layout(self, structure: Structure) -> ColumnLayout | None:
        seen = self._seen
        if seen is None or (seen[0] is not structure and seen[0] != structure):
            self._seen = seen = structure, layout_of(self._proof, structure)
        return seen[1]


@dataclass(frozen=True)
class ColumnLayout:
    """Requirements of a proof for the columns of elements of one structure."""

    numbers: tuple[int, ...]
    together: tuple[tuple[tuple[int, ...], int], ...]
    integers: tuple[int, ...]
    passed: tuple[int, ...]
    scalars_min: int

    def fits(self, columns: Sequence[Column]) -> bool:
        """Return whether these columns meet the requirements."""
        element_bytes = 0
        for index in self.numbers:
            column = columns[index]
            if type(column) is not np.ndarray or column.dtype not in NUMBERS:
                return False
            if column.ndim > 1:
                if not column.flags.c_contiguous:  # the results would have the same memory layout
                    return False
                element_bytes += column.nbytes // len(column)
        if element_bytes > ELEMENT_BYTES_MAX:
            return False
        for indices, rank in self.together:
            ndims = {columns[index].ndim for index in indices}  # type: ignore[union-attr]  # they are among the numbers
            if len(ndims) > 1 or ndims.pop() <= rank:  # broadcasting would align other axes than for single elements
                return False
        if not all(map(_is_passed_on, [columns[index] for index in self.passed])):
            return False
        return all(stays_integer(columns[index].dtype) for index in self.integers)  # type: ignore[union-attr]

    def length_min(self, columns: Sequence[Column]) -> int:
        """Return the length from which on it is faster to run the function on such columns."""
        holds_arrays = any(columns[index].ndim > 1 for index in self.numbers)  # type: ignore[union-attr]
        return LENGTH_MIN if holds_arrays else self.scalars_min


def _is_passed_on(column: Column) -> bool:
    """Return whether values passed through unchanged equal those of the column; scalars may lose a byte order."""
    return isinstance(column, list) or column.ndim > 1 or column.dtype in NUMBERS or column.dtype == object


def layout_of(proof: ElementwiseProof, structure: Structure) -> ColumnLayout | None:
    """Return the requirements for columns; None if elements of this structure do not fit the function's arguments."""
    arguments = structure.children if is_tuple(structure) else (structure,)
    if to_plain(structure) is None or len(arguments) != proof.arity:  # constructors of user classes are user code
        return None
    try:
        parts = {path: _part(arguments, path) for path in proof.numbers | proof.dicts | proof.passed}
        sizes = [(_part(arguments, path)[0], size) for path, size in proof.tuples]
    except LookupError:
        return None
    taken_apart = all(is_tuple(part) and len(part.children) == size for part, size in sizes)
    if not taken_apart or not all(is_dict(parts[path][0]) for path in proof.dicts):
        return None
    if any(parts[path][0] is not LEAF for path in proof.numbers):
        return None
    column = {path: parts[path][1] for path in proof.numbers}
    together = tuple((tuple(column[path] for path in paths), rank) for paths, rank in proof.together)
    passed = {
        start + index for part, start in (parts[path] for path in proof.passed) for index in range(part.num_components)
    }
    integers = tuple(column[path] for path in proof.integers)
    is_costly = not structure.is_immutable or any(read.is_function_of_numpy for read in proof.reads)
    scalars_min = COSTLY_MIN if is_costly else SCALARS_MIN
    return ColumnLayout(tuple(column.values()), together, integers, tuple(passed), scalars_min)


def _part(arguments: Sequence[Structure], path: Path) -> tuple[Structure, int]:
    """Return the part at ``path``, and the index of its first column.

    Raises:
        LookupError: if it does not exist.
    """
    children, keys, start = arguments, tuple(range(len(arguments))), 0
    part = arguments[0]
    for key in path:
        if key not in keys:
            raise LookupError(key)
        index = keys.index(key)
        start += sum(child.num_components for child in children[:index])
        part = children[index]
        children, keys = part.children, part.child_keys()
    return part, start


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

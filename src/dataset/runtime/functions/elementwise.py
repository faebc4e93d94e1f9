"""Functions that are proved to compute each element for itself, and when such a function may be run on columns.

optimize/elementwise.py makes the proof from a function's bytecode, before anything runs. What it cannot know is looked
at here, for each chunk: the structure of the elements, the dtypes and ranks of the columns, and whether the globals
that the function reads are still of the kind that was found. Nothing of this calls user code.
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
from dataset.runtime.resources.interrupts import call

Path: TypeAlias = tuple[Any, ...]
"""Where a part of an element stands: the position of the argument, then the keys that the function looks up."""

NUMBERS = frozenset(np.dtype(code) for code in "?bBhHiIlLqQefd")
"""The dtypes that NumPy computes with alike in scalars and in arrays.

Scalars do not keep another byte order, and the bits of larger floats are not all theirs.
"""

ELEMENT_BYTES_MAX = 8192
"""Larger elements keep the processor busy by themselves, and a column of them is not in its cache for the next step."""

# Below these lengths it takes less time to call for each element. The numbers were found by trying.
LENGTH_MIN = 8  # of arrays
COSTLY_MIN = 32  # of numbers, where a call takes long: it calls NumPy's functions, or elements are dicts
SCALARS_MIN = 64  # of numbers

TRIED_FROM = 512
"""From which position on columns are tried: a trial costs as much as some hundred elements."""

TRIAL = 64
"""How many elements are run both ways before columns are trusted."""


@dataclass(frozen=True)
class Read:
    """Something that a function reads when it is called: a global, a cell of its closure, a default, or one of NumPy's.

    It may be bound to something else at any time. So what counts is its kind: any other number will do for a number.
    What is called, such as ``np.sqrt``, must be the very same.
    """

    source: str
    name: str
    position: int
    expected: Any
    """What ``kind_of`` says of a number or an array; of all else the object itself."""

    def holds(self, function: FunctionType) -> bool:
        """Whether the function would now read what was found."""
        try:
            value = self.find(function)
        except (LookupError, ValueError, TypeError):  # ValueError: an empty cell
            return False
        kind = kind_of(value)
        return value is self.expected if kind is None else kind == self.expected

    def find(self, function: FunctionType) -> Any:
        """What the function would now read."""
        match self.source:
            case "global":
                names = function.__globals__
                return names[self.name] if self.name in names else function.__builtins__[self.name]  # type: ignore[attr-defined, unused-ignore]  # newer versions of mypy know it
            case "closure":
                return function.__closure__[self.position].cell_contents  # type: ignore[index]
            case "default":
                return function.__defaults__[self.position]  # type: ignore[index]
        return vars(np)[self.name]


def kind_of(value: Any) -> Any:
    """What tells whether another number, or array of numbers, may take the place of this one. None for all else.

    NumPy itself is told by its name, since modules do not go to other processes.
    """
    if value is np:
        return "numpy"
    kind = type(value)
    if kind is int:
        return int if -(2**63) <= value < 2**64 else None  # beyond, NumPy makes objects of them
    if kind is float or kind is bool:
        return kind
    if kind is np.ndarray or issubclass(kind, np.generic):
        return (kind, value.dtype, value.ndim) if value.dtype in NUMBERS else None
    return None


def stays_integer(dtype: np.dtype[Any]) -> bool:
    """Whether integer arithmetic with other such dtypes gives integers; uint64 and int64 give floats."""
    return dtype.kind in "bi" or (dtype.kind == "u" and dtype.itemsize < 8)


@dataclass(frozen=True, eq=False)
class ElementwiseProof:
    """The proof that a function has no effects, and gives for columns the columns of what it gives for single elements.

    That holds for chunks that it ``fits``: all that the function computes with is numbers and arrays of numbers. For
    these, a call cannot be seen, be it early, late, or made more or less often, but for two things: what the function
    ``reads`` may be bound anew between two calls, and a failure is one of the element, to be raised in its place. Other
    components, which may be objects with operators of their own, are called for one by one like those of any function.

    Attributes:
        function: what was looked at.
        code: its code at that time.
        reads: what it reads apart from its arguments.
        arity: how many arguments it must be given.
        numbers: the components that it computes with.
        together: sets of components that meet in one operation, with the rank of the constants that they meet there.
        integers: the components that must be integers or bools.
        tuples: parts that are taken apart, and into how many.
        dicts: parts that must be dicts.
        passed: parts that are passed on as they are.
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
        """Whether nothing can be bound anew between two calls but the function itself and NumPy's own functions."""
        return all(read.source == "numpy" or read.expected == "numpy" for read in self.reads)

    def holds(self) -> bool:
        """Whether the function still is what was looked at, and reads what was found."""
        code = self.function.__code__
        return (code is self.code or code == self.code) and all(read.holds(self.function) for read in self.reads)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle has no form for code. What marshal makes of it is compared at the other end, and never run.
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _received, (fields | {"code": marshal.dumps(self.code)},)


def _received(fields: dict[str, Any]) -> ElementwiseProof:
    """A proof in another process."""
    return ElementwiseProof(**fields | {"code": marshal.loads(fields["code"])})  # noqa: S302  # from a process of our own


class Columns:
    """Decides for an operator which chunks its function is run on as columns, and runs it.

    That has a price for each chunk, and one for a trial. So a chunk must be long enough, and there must have been some
    elements. After chunks that were no good as columns, ever more of those that follow are not looked at.
    """

    def __init__(self, proof: ElementwiseProof) -> None:
        self._proof = proof
        self._seen: tuple[Structure, ColumnLayout | None] | None = None
        self._length_min = LENGTH_MIN  # until elements were seen
        self._failures = 0
        self._resting = 0  # for how many chunks no more are tried
        self._refused = False
        self.trusted = False
        """Whether columns and single elements gave the same when both were run."""

    def fit(self, inputs: Chunk, position: int) -> bool:
        """Whether the function gives for the columns what it gives for the elements, and is worth being run on them."""
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
        """What the function returns for all elements.

        Raises:
            FloatingPointError: where NumPy would warn. It words it otherwise for single elements, and at another place.
        """
        element = inputs.structure.unflatten(inputs.columns())
        given = element if is_tuple(inputs.structure) else (element,)
        with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
            return call(function, *given)

    def rest(self) -> None:
        """Take note of a chunk that was no good as columns."""
        self._failures += 1
        self._resting = 32 << min(self._failures, 30)

    def judge(self, *, same: bool) -> None:
        """Trust columns from now on, or never more."""
        self.trusted, self._refused = same, not same

    def _layout(self, structure: Structure) -> ColumnLayout | None:
        seen = self._seen
        if seen is None or (seen[0] is not structure and seen[0] != structure):
            self._seen = seen = structure, layout_of(self._proof, structure)
        return seen[1]


@dataclass(frozen=True)
class ColumnLayout:
    """What a proof asks of the columns of elements of one structure."""

    numbers: tuple[int, ...]
    together: tuple[tuple[tuple[int, ...], int], ...]
    integers: tuple[int, ...]
    passed: tuple[int, ...]
    scalars_min: int

    def fits(self, columns: Sequence[Column]) -> bool:
        """Whether these columns are what was asked for."""
        element_bytes = 0
        for index in self.numbers:
            column = columns[index]
            if type(column) is not np.ndarray or column.dtype not in NUMBERS:
                return False
            if column.ndim > 1:
                if not column.flags.c_contiguous:  # what is made of them would be laid out like them
                    return False
                element_bytes += column.nbytes // len(column)
        if element_bytes > ELEMENT_BYTES_MAX:
            return False
        for indices, rank in self.together:
            ndims = {columns[index].ndim for index in indices}  # type: ignore[union-attr]  # they are among the numbers
            if len(ndims) > 1 or ndims.pop() <= rank:  # they would be aligned along other axes than single elements
                return False
        if not all(map(_is_passed_on, [columns[index] for index in self.passed])):
            return False
        return all(stays_integer(columns[index].dtype) for index in self.integers)  # type: ignore[union-attr]

    def length_min(self, columns: Sequence[Column]) -> int:
        """From which length on it is faster to run the function on such columns."""
        holds_arrays = any(columns[index].ndim > 1 for index in self.numbers)  # type: ignore[union-attr]
        return LENGTH_MIN if holds_arrays else self.scalars_min


def _is_passed_on(column: Column) -> bool:
    """Whether the values of a column are what a function returns that passes them on; scalars may lose a byte order."""
    return isinstance(column, list) or column.ndim > 1 or column.dtype in NUMBERS or column.dtype == object


def layout_of(proof: ElementwiseProof, structure: Structure) -> ColumnLayout | None:
    """What to ask of the columns; None where elements of this structure are no arguments for the proved function."""
    arguments = structure.children if is_tuple(structure) else (structure,)
    if to_plain(structure) is None or len(arguments) != proof.arity:  # classes of the user run user code when made
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
    is_costly = not structure.is_immutable or any(read.source == "numpy" for read in proof.reads)
    scalars_min = COSTLY_MIN if is_costly else SCALARS_MIN
    return ColumnLayout(tuple(column.values()), together, integers, tuple(passed), scalars_min)


def _part(arguments: Sequence[Structure], path: Path) -> tuple[Structure, int]:
    """What stands at ``path``, and the first of its columns.

    Raises:
        LookupError: if there is nothing.
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
    """Whether an overflow of integers may raise, which NumPy finds in single numbers, but not in arrays."""
    return not _QUIET.issuperset(np.geterr().values()) or _warning_raises()


_QUIET = frozenset({"ignore", "warn"})


def _warning_raises() -> bool:
    """Whether the filters may turn a RuntimeWarning into an error. The first filter that matches decides."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False

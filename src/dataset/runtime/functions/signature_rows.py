"""Signature rows: converts values of a user's source to chunks, checked against a declared or the first structure."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec, component_spec, flatten_spec
from dataset.plan.structure import Structure, StructureMismatchError, structure_of
from dataset.runtime.chunks.chunk import Array, Chunk, Outcome
from dataset.runtime.chunks.normalization import canonical_array, canonical_component, chunk_of_rows


class SignatureRows:
    """Converts values to chunks.

    Args:
        gave: the beginning of messages, such as ``"from_generator(count) yielded"``.
        signature: specs in the structure of an element; None if nothing was declared.
        parameter: the user's name for the signature.

    Attributes:
        specs: the declared specs of the components; empty if nothing was declared.
    """

    def __init__(self, gave: str, signature: Any, parameter: str = "output_signature") -> None:
        self._parameter = parameter
        self._gave = gave
        self._structure: Structure | None = None
        self.specs: list[ComponentSpec] = []
        if signature is not None:
            self._structure, specs = flatten_spec(signature)
            self.specs = list(specs)

    def learn(self, rows: list[Any]) -> list[Any]:
        """Return the values. Without a signature, the first value determines the structure of all."""
        if self._structure is None:
            self._structure = structure_of(rows[0])
        return rows

    def chunk(self, rows: list[Any]) -> Chunk:
        """Return the chunk of at least one value.

        Raises:
            StructureMismatchError: if a value has another structure; ``mismatch`` returns the error for the user.
            SpecError: if a value does not match the signature.
        """
        if self._structure is None:
            self._structure = structure_of(rows[0])
        if not self.specs:
            return chunk_of_rows(rows, self._structure)
        columns = self._structure.columns(rows)
        declared = [
            self._declared(index, spec, column)
            for index, (spec, column) in enumerate(zip(self.specs, columns, strict=True))
        ]
        if not all(map(operator.is_, declared, columns)):
            rows = self._structure.rows(declared, len(rows))
        return chunk_of_rows(rows, self._structure)

    def outcomes(self, rows: list[Any]) -> list[Outcome]:
        """Return the chunk of at least one value; if some are invalid, chunks and exceptions in their places."""
        middle = len(rows) // 2
        try:
            return [self.chunk(rows)]
        except StructureMismatchError:
            if not middle:
                return [self.mismatch(rows[0])]
        except (SpecError, TypeError, ValueError) as error:  # no variable may keep it, see runtime/contract.py
            if not middle:
                return [error]
        return [*self.outcomes(rows[:middle]), *self.outcomes(rows[middle:])]

    def _declared(self, index: int, spec: ComponentSpec, column: Sequence[Any]) -> Sequence[Any]:
        """Convert a column to the declared spec; return the same object if no conversion is needed."""
        declared = _all_as_declared(spec, column)
        return [self._cast(index, spec, value) for value in column] if declared is None else declared

    def _cast(self, index: int, spec: ComponentSpec, value: Any) -> Any:
        """Convert ``value`` to the declared spec. Ints are converted to declared floats, but not floats to ints."""
        if isinstance(value, tuple) and isinstance(spec, TensorSpec):
            value = list(value)  # if an array is declared, a tuple is data
        component = canonical_component(value)
        got = component_spec(component)
        if isinstance(spec, TensorSpec) and isinstance(got, TensorSpec) and got.dtype != spec.dtype:
            empty = isinstance(value, list) and not np.size(value)  # [] has no dtype of its own
            if empty or _may_cast(component, got.dtype, spec.dtype):
                component = np.asarray(component).astype(object if spec.dtype == BYTES else spec.dtype)[()]
                got = component_spec(component)
        if not spec.allows(got):
            name = self._structure.component_name(index) if self._structure else "the element"
            raise SpecError(f"{self._gave} {got!r} for {name}, {self._parameter} declares {spec!r}: {value!r:.200}")
        return component

    def mismatch(self, row: Any) -> SpecError:
        """Return the error for a value of another structure."""
        declared = f"the {self._parameter} has" if self.specs else "earlier values had"
        return SpecError(
            f"{self._gave} {structure_of(row)!r}, but {declared} the structure "
            f"{self._structure!r} (a list is data, a tuple is structure): {row!r:.200}"
        )


def _all_as_declared(spec: ComponentSpec, column: Sequence[Any]) -> Sequence[Any] | None:
    """Convert a column of arrays or numbers of one type to the declared spec; None if each value must be checked.

    Comparing a spec of each value would cost more than everything else.
    """
    kinds = set(map(type, column))
    if type(spec) is not TensorSpec or len(kinds) != 1:
        return None
    kind: Any = kinds.pop()
    if kind is list or kind is tuple:
        column, kind = [canonical_array(value if kind is list else list(value)) for value in column], np.ndarray
    if kind is np.ndarray:
        return _arrays_as_declared(spec, column)
    return _numbers_as_declared(spec, column, kind) if spec.shape == () else None


def _numbers_as_declared(spec: TensorSpec, column: Sequence[Any], kind: Any) -> Sequence[Any] | None:
    wanted = spec.dtype
    if kind is bytes or kind is str:
        return column if wanted == BYTES else None
    if wanted.kind not in _NUMERIC or kind not in _NUMBERS:
        return None
    if kind is wanted.type:
        return column
    if kind is int and not (_INT64.min <= min(column) and max(column) <= _INT64.max):
        return None
    numbers = np.array(column, _NUMBERS[kind])
    if numbers.dtype == wanted:
        return column
    return list(numbers.astype(wanted)) if _may_cast(numbers, numbers.dtype, wanted) else None


def _arrays_as_declared(spec: TensorSpec, arrays: Sequence[Array]) -> Sequence[Array] | None:
    wanted, shape = spec.dtype, spec.shape
    dtypes = {array.dtype for array in arrays}
    if wanted.kind not in _NUMERIC or len(dtypes) > 1 or {array.ndim for array in arrays} == {0}:
        return None
    if shape is not None:
        if {array.ndim for array in arrays} != {len(shape)}:
            return None
        known = [axis for axis, size in enumerate(shape) if size is not None]
        if known and any(array.shape[axis] != shape[axis] for array in arrays for axis in known):
            return None
    dtype = dtypes.pop()
    if dtype == wanted:
        return arrays
    # Only a cast to integers depends on the values.
    values = np.concatenate([array.ravel() for array in arrays]) if wanted.kind in "iu" else arrays[0]
    return [array.astype(wanted) for array in arrays] if _may_cast(values, dtype, wanted) else None


_NUMERIC = "biufc"
_INT64 = np.iinfo(np.int64)
_NUMBERS = {np.dtype(code).type: np.dtype(code) for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"}
_NUMBERS |= {
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
    bool: np.dtype("?"),
}
"""The dtypes of numbers."""


def _may_cast(component: Any, got: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether a value may be cast: bools and numbers to floats, and to integers that can hold them."""
    if got.kind == "b":
        return wanted.kind in "iufc"
    if got.kind in "iu" and wanted.kind in "iu":
        info = np.iinfo(wanted)
        return not np.size(component) or (int(np.min(component)) >= info.min and int(np.max(component)) <= info.max)
    return (got.kind in "iuf" and wanted.kind in "fc") or (got.kind == "c" and wanted.kind == "c")

"""Row writer: writes the results of a function into a block, each before the function is called again.

So results that share memory with something else need no copy of their own (chunks/ownership.py), and no list of arrays
has to be stacked later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from dataset.plan.structure import LEAF, Structure, StructureMismatchError, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import own
from dataset.runtime.parallel.blocks import Block, Row, row_of


class Written:
    """In a list of results, the place of a result in the block."""


_WRITTEN = Written()

_Form: TypeAlias = tuple[type[Any], np.dtype[Any] | None, tuple[int, ...]]
"""How a component must be to fit: its type, and the dtype and shape of an array."""


class RowWriter:
    """Writer of the results of one function into the rows of a block, and then into those of the next block.

    Those fit that are like the first one: an array, or a flat tuple or dict of numbers and at least one array. Results
    that do not fit are kept in the list.

    Attributes:
        refuses: whether the first result did not fit.
    """

    def __init__(self) -> None:
        self.refuses = False
        self._block: Block | None = None
        self._first = 0
        self._kind: type[Any] | None = None  # of the first result
        self._keys: tuple[Any, ...] = ()  # if that is a dict
        self._structure: Structure | None = None  # of the results, once one was written
        self._rows: list[Row | None] = []
        self._forms: list[_Form] = []
        self._slots: list[tuple[Array, type[Any], np.dtype[Any] | None, tuple[int, ...]]] = []

    def begin(self, block: Block, first: int) -> None:
        """Write into another block from here on; the result for input number ``first`` belongs in its row 0."""
        self._block, self._first = block, first
        if self._structure is not None:
            self._enter(self._structure)

    def collect(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], position: int, results: list[Any]
    ) -> None:
        """Append the results for inputs from number ``position`` on, or ``Written`` for those in the block."""
        for row, given in enumerate(arguments, position - self._first):
            result = function(*given)
            results.append(_WRITTEN if self._write(row, result) else own(result, given))
            del result  # its memory is free for the next one

    def chunk(self, position: int, results: list[Any], structure: Structure | None) -> Chunk | None:
        """Return the results from number ``position`` on as a chunk, if all are in the block.

        Otherwise, or if they do not have the expected structure, put those in the block back into the list.
        """
        written = self._structure
        if written is not None and set(map(type, results)) == {Written} and written == (structure or written):
            start, stop = position - self._first, position - self._first + len(results)
            return Chunk(written, len(results), [array[start:stop] for array, *_ in self._slots])
        self.put_back(position, results)
        return None

    def put_back(self, position: int, results: list[Any]) -> None:
        """Replace each ``Written`` by the result in the block."""
        for row, result in enumerate(results, position - self._first):
            if type(result) is Written:
                assert self._structure is not None  # it was written
                components = [array[row] for array, *_ in self._slots]
                results[row - position + self._first] = self._structure.unflatten(components)

    def _write(self, row: int, result: Any) -> bool:
        if type(result) is not self._kind:
            if self._kind is not None:
                return False
            self._learn(result)
        slots = self._slots
        items = result
        if not slots:
            return False
        if self._kind is np.ndarray:
            items = (result,)
        elif len(result) != len(slots):
            return False
        elif self._kind is dict:
            items = list(map(result.get, self._keys))
        for place, (array, kind, dtype, shape) in enumerate(slots):
            item = items[place]
            if type(item) is not kind or (dtype is not None and (item.dtype != dtype or item.shape != shape)):
                return False
            try:
                array[row] = item
            except OverflowError:  # an int beyond 64 bits
                return False
        return True

    def _learn(self, result: Any) -> None:
        """Learn from the first result how those are that fit."""
        self._kind = kind = type(result)
        self.refuses = True
        if kind is not np.ndarray and kind is not tuple and kind is not dict:
            return
        try:
            element = chunk_of_rows([result])
        except (StructureMismatchError, TypeError, ValueError):  # raised again in its place
            return
        structure = element.structure
        is_flat = structure is LEAF or ((is_tuple(structure) or is_dict(structure)) and {*structure.children} == {LEAF})
        items = structure.flatten(result)
        if not is_flat or not any(type(item) is np.ndarray for item in items):
            return
        self._keys = structure.child_keys() if kind is dict else ()
        for item in items:
            is_array = type(item) is np.ndarray
            self._forms.append((type(item), item.dtype if is_array else None, np.shape(item)))
        self._rows = list(map(row_of, element.columns()))
        if all(row is not None and row.dtype.isnative for row in self._rows):  # np.concatenate changes other dtypes
            self.refuses = False
            self._structure = structure
            self._enter(structure)

    def _enter(self, structure: Structure) -> None:
        """Find the arrays for such results in the block."""
        assert self._block is not None  # see begin
        arrays = self._block.arrays_for(structure, self._rows)
        pairs = zip(arrays, self._forms, strict=True)
        self._slots = [(array, *form) for array, form in pairs if array is not None]
        if len(self._slots) < len(arrays):  # another thread has written other results first
            self._slots = []

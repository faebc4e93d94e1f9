"""Row writer: writes the results of one function into columns as they are returned.

Collecting results in a list and dividing it into columns later takes longer than many functions. So the first result
becomes a template, and the row loop (native/rows.c) writes each result that is like it into the columns of its
components before it calls the function again. Such a result needs no copy of its own, whoever else refers to it, and
its memory is free for the next one. Below a batch, the arrays are rows of the batch (blocks.py).

The first result that is not like the template, and all after it in the chunk, are kept in a list. So are all results if
the row loop is not in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from dataset.native.row_loop import NUMBERS
from dataset.plan.packed import RaggedColumn
from dataset.plan.spec import ComponentSpec
from dataset.plan.structure import LEAF, NONE, Structure, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.ownership import NO_TARGET, WRITTEN, Target, collect, is_named_tuple
from dataset.runtime.parallel.blocks import Block, Row

# The kinds of values, in the order of those in rows.c.
_TUPLE, _LIST, _DICT, _NONE, _SCALAR, _INT, _FLOAT, _BOOL, _BYTES, _TEXT, _INTS, _FLOATS, _ROW, _ARRAY = range(14)

_KINDS = {int: _INT, float: _FLOAT, bool: _BOOL, bytes: _BYTES, str: _TEXT}
_LISTS = {int: _INTS, float: _FLOATS}
_FLAT = frozenset(_LISTS.values())
_DTYPES = {_INT: "i8", _FLOAT: "f8", _BOOL: "?", _INTS: "i8", _FLOATS: "f8"}


class NoTemplateError(Exception):
    """Internal: a result has a part that the row loop does not know."""


class RowTemplate:
    """What results must be like to be written into columns.

    Args:
        result: the first result.
        element: the chunk that begins with it.
        specs: the specs of the components, if they were declared.

    Raises:
        NoTemplateError: for a result that cannot be written.
    """

    def __init__(self, result: Any, element: Chunk, specs: Sequence[ComponentSpec] = ()) -> None:
        self.structure = element.structure
        columns = element.columns()
        self._components = iter(zip(columns, specs or repeat(None, len(columns)), strict=True))
        self._objects: list[Any] = []
        self._nodes: list[tuple[int, int, int, int]] = []
        self._leaves: list[tuple[int, int]] = []  # the node and kind of each component
        self._rows: list[Row | None] = []  # of the components that fit into an array
        self._width = 0  # the number of columns
        self._add(self.structure, result)
        del self._components  # which are values, perhaps large ones
        self._plan = np.array(self._nodes, np.int64)
        self._types = tuple(self._objects)
        self._no_arrays: list[Array | None] = [None] * len(self._rows)
        self._holds_arrays = any(row is not None and row.shape for row in self._rows)

    def _add(self, structure: Structure, value: Any) -> None:
        kind = type(value)
        if structure is LEAF:
            self._add_leaf(value, *next(self._components))
        elif structure is NONE:
            self._put(_NONE, 0, kind)
        elif is_dict(structure) and kind is dict:
            keys = structure.child_keys()
            self._put(_DICT, len(keys), kind, *keys)
            for child, key in zip(structure.children, keys, strict=True):
                self._add(child, value[key])
        elif kind is tuple or is_named_tuple(kind) or (kind is list and is_tuple(structure)):
            self._put(_LIST if kind is list else _TUPLE, len(value), kind)
            for child, part in zip(structure.children, value, strict=True):
                self._add(child, part)
        else:
            raise NoTemplateError

    def _add_leaf(self, value: Any, column: Any, spec: Any) -> None:
        kind, component = type(value), column[0]
        objects: tuple[Any, ...] = ()
        number = size = expected = None
        declared = None if spec is None else spec.shape
        sizes = () if declared is None else np.array([-1 if size is None else size for size in declared], np.int64)
        if kind in NUMBERS:
            number, size, expected = _SCALAR, value.nbytes, value.dtype
        elif kind is np.ndarray and _is_plain(value):
            number, size, expected = _ARRAY, value.nbytes, value.dtype
            objects = expected, sizes
        elif kind is list and value:
            number = _LISTS.get(type(value[0]))
            objects = type(value[0]), sizes
        elif kind in _KINDS:
            number = _KINDS[kind]
        if number in _DTYPES:
            expected = np.dtype(_DTYPES[number])
        dtype = getattr(component, "dtype", None)
        is_list = number in _FLAT
        if (
            number is None
            or (is_list and component.ndim != 1)
            or (dtype != expected and (dtype, expected) != (None, None))
        ):
            raise NoTemplateError
        self._leaves.append((len(self._nodes), number))
        self._rows.append(None if is_list or expected is None else Row(np.shape(component), expected))
        self._put(_ROW if number == _ARRAY and not value.ndim else number, size or 0, kind, *objects)
        self._width += 1 + is_list

    def _put(self, number: int, count: int, *objects: Any) -> None:
        self._nodes.append((number, count, len(self._objects), self._width))
        self._objects += objects

    def target(self, count: int, block: Block | None, start: int) -> Target:
        """Return columns for ``count`` rows. The arrays in them are those of the block, from row ``start`` on."""
        plan, columns, arrays = self._plan, list[Any](), self._no_arrays
        if block is not None and self._holds_arrays:
            plan, arrays = plan.copy(), block.arrays_for(self.structure, self._rows)
        for (node, number), row, array in zip(self._leaves, self._rows, arrays, strict=True):
            if number in _FLAT:
                columns += [bytearray(), np.zeros(count + 1, np.int64)]
            elif row is None or (row.shape and array is None):
                columns.append([])
            elif array is None:
                columns.append(np.empty(count, row.dtype))
            else:
                columns.append(array[start : start + count])
                if number == _ARRAY:
                    plan[node, 0] = _ROW
        return plan, self._types, tuple(columns)

    def chunk(self, columns: Sequence[Any], count: int) -> Chunk:
        """Return the first ``count`` rows in the columns."""
        left, found = iter(columns), list[Any]()
        for _, number in self._leaves:
            column = next(left)
            if number in _FLAT:
                starts = next(left)[: count + 1]
                values = np.frombuffer(column or bytes(8), _DTYPES[number], starts[-1]).copy()
                column = RaggedColumn(values, starts)
            found.append(column if len(column) == count else column[:count])
        is_list = self.structure is LEAF and type(found[0]) is list
        return Chunk(self.structure, count, rows=found[0]) if is_list else Chunk(self.structure, count, found)


def _is_plain(array: Array) -> bool:
    """Return whether an array is canonical, and its values are in its own memory."""
    dtype = array.dtype
    is_bare = array.ndim > 0 or dtype.kind != "V"  # a view of a row
    return dtype.isnative and not dtype.hasobject and dtype.kind not in "SUT" and is_bare


class RowWriter:
    """Collects the results of one function, and writes those that are like the first one into columns.

    A single result without parts is not written: collecting it takes less time.
    """

    def __init__(self) -> None:
        self._template: RowTemplate | None = None
        self._columns: Sequence[Any] = ()
        self._unwritten = 0  # chunks whose first result was not written
        self._block: Block | None = None
        self._first = 0

    def begin(self, block: Block | None, first: int = 0) -> None:
        """Write into the arrays of another block from here on; the result number ``first`` belongs in its row 0."""
        self._block, self._first = block, first

    def collect(
        self,
        function: Any,
        arguments: Iterable[tuple[Any, ...]] | None,
        count: int,
        results: list[Any],
        position: int = 0,
        structure: Structure | None = None,
    ) -> None:
        """Append the results for ``count`` inputs, as ``ownership.collect`` does.

        Args:
            function: the function, or an iterator if there are no arguments.
            arguments: the arguments of each call; None for an iterator.
            count: the number of calls.
            results: the list.
            position: the number of the first input.
            structure: the structure of all results, if it is known.
        """
        template, target = self._template, NO_TARGET
        if template is not None and count == 1 and template.structure is LEAF:
            template = None
        if template is not None and (structure is None or structure == template.structure):
            try:
                target = template.target(count, self._block, position - self._first)
            except MemoryError:
                target = NO_TARGET  # single results may still fit into memory
        self._columns = target[2]
        collect(function, arguments, count, results, target)

    def take(self, results: list[Any]) -> Chunk:
        """Remove the results that were written, of which there is at least one, and return them."""
        count = len(results) if results[-1] is WRITTEN else sum(map(partial(is_, WRITTEN), results))
        del results[:count]
        columns, self._columns = self._columns, ()
        assert self._template is not None  # they were written
        return self._template.chunk(columns, count)

    def learn(self, result: Any, element: Chunk | None, specs: Sequence[ComponentSpec] = ()) -> None:
        """Make a result that was not written the template. ``element`` is the chunk that begins with it.

        The longer results are not like their template, the more rarely another one is tried.
        """
        self._unwritten += 1
        if self._unwritten & (self._unwritten - 1) == 0:
            try:
                self._template = None if element is None else RowTemplate(result, element, specs)
            except NoTemplateError:
                self._template = None

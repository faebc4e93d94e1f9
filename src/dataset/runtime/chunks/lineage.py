"""Lineage: which source records the elements of a chunk are made from.

If an iteration records provenance, sources give each chunk a hidden column, ``Chunk.lineage``. Operators that pass
elements on preserve it, operators that make one element from one or several others pass it on to the new elements, and
all others create chunks without it, whose lineage is unknown. In all other iterations the attribute is None.

The lineage of an element is an int64 matrix with one row for each record. Its columns are the number of the source, of
the record in it, of the epoch, and the depth: rows of depth d + 1 describe the argument of the function that returned
the dataset of the rows of depth d before them. Sources are numbered in ``_SOURCES``, which grows with the number of
files that are read, not with the number of elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import StateError
from dataset.runtime.chunks.source_records import SourceRecord
from dataset.world import threading

Rows: TypeAlias = npt.NDArray[np.int64]
"""One matrix (rows, 4), or a column of them (elements, rows, 4)."""

Lineage: TypeAlias = Rows | list[Rows]
"""The matrices of the elements of a chunk, as a column."""

_WIDTH = 4
_EPOCH, _DEPTH = 2, 3  # indices of columns

_DEEPER = np.array([0, 0, 0, 1])

UNKNOWN: Rows = np.array([[-1, -1, -1, 0]])
"""The lineage of an element whose records are unknown."""


class RecordSource(NamedTuple):
    """Source of records.

    Attributes:
        name: the name of the reader.
        file: the path of the file; None for other sources.
        inputs: the index of the source among the inputs of each op that joins several datasets, from the last op on.
        is_store: whether the records are elements that another op has stored, made from records that are unknown.
    """

    name: str
    file: str | None
    inputs: tuple[int, ...]
    is_store: bool = False


_SOURCES: list[RecordSource] = []
_NUMBERS: dict[RecordSource, int] = {}
_lock = threading.Lock()  # guards both


def number_of(source: RecordSource) -> int:
    """Return the number of a source in this process."""
    number = _NUMBERS.get(source)
    if number is None:
        with _lock:
            number = _NUMBERS.setdefault(source, len(_SOURCES))
            if number == len(_SOURCES):
                _SOURCES.append(source)
    return number


def source_numbered(number: int) -> RecordSource | None:
    """Return the source with this number; None for unknown records."""
    return None if number < 0 else _SOURCES[number]


class LineageWriter:
    """Writer of the lineage of the elements of one open source.

    Args:
        source: the source.
        epoch: the number of the pass over it.
        within: the lineage of the argument of the function that returned the dataset of the source, if one did.
    """

    __slots__ = ("_above", "_row")

    def __init__(self, source: RecordSource, epoch: int, within: Rows | None) -> None:
        self._row = np.array([number_of(source), 0, epoch, 0])
        self._above: Rows = np.zeros((0, _WIDTH), np.int64) if within is None else within + _DEEPER

    def of(self, numbers: npt.NDArray[Any]) -> Rows:
        """Return the lineage of elements that are the records with these numbers."""
        rows = np.empty((len(numbers), 1 + len(self._above), _WIDTH), np.int64)
        rows[:, 0] = self._row
        rows[:, 0, 1] = numbers
        rows[:, 1:] = self._above
        return rows

    def run(self, start: int, length: int) -> Rows:
        """Return the lineage of elements that are consecutive records."""
        return self.of(np.arange(start, start + length))


def or_unknown(lineage: Lineage | None, length: int) -> Lineage:
    """Return the lineage of ``length`` elements, which is unknown if it is None."""
    return np.tile(UNKNOWN, (length, 1, 1)) if lineage is None else lineage


def grouped(lineage: Lineage, size: int) -> Lineage:
    """Return the lineage of elements that are each made from ``size`` elements; the last may be made from fewer."""
    return [joined(lineage[start : start + size]) for start in range(0, len(lineage), size)]


def joined(lineage: Sequence[Rows] | Rows) -> Rows:
    """Return the lineage of one element that is made from several."""
    if isinstance(lineage, np.ndarray):
        return lineage.reshape(-1, _WIDTH)
    return np.concatenate(lineage) if len(lineage) else np.zeros((0, _WIDTH), np.int64)


def paired(parts: Sequence[Lineage | None], length: int) -> Lineage:
    """Return the lineage of elements that are each made from one element of each part."""
    columns: list[Lineage] = []
    for part in parts:
        column = or_unknown(part, length)
        if not any(_is_same(column, other) for other in columns):  # such as the components of a window
            columns.append(column)
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns, axis=1)
    return [np.concatenate(rows) for rows in zip(*columns, strict=True)]


def _is_same(a: Lineage, b: Lineage) -> bool:
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def divided(rows: Rows, length: int) -> Lineage:
    """Return the lineage of the ``length`` rows of a batch with this lineage.

    If records do not belong to one row each, each row may be made from any of the records.
    """
    starts = np.flatnonzero(rows[:, _DEPTH] == 0)
    if length and len(starts) % length == 0:
        return np.split(rows, starts[:: len(starts) // length][1:])
    return [rows] * length


def later(lineage: Lineage, passes: npt.NDArray[Any], count: int = 1, *, nested: bool = True) -> Lineage:
    """Return the lineage of elements that are read again.

    Args:
        lineage: the lineage of the elements in the first pass over their source.
        passes: for each element, the number of passes before the one it is read in.
        count: the number of passes that are repeated together.
        nested: whether the arguments of functions are also read again.
    """
    if not isinstance(lineage, np.ndarray):
        parts = [later(rows[np.newaxis], passes[i : i + 1], count, nested=nested) for i, rows in enumerate(lineage)]
        return [part[0] for part in parts]
    moved = lineage.copy()
    is_moved = (moved[..., 0] >= 0) & (nested | (moved[..., _DEPTH] == 0))
    moved[..., _EPOCH] = np.where(is_moved, moved[..., _EPOCH] * count + passes[:, np.newaxis], moved[..., _EPOCH])
    return moved


def records_of(rows: Rows | None) -> list[SourceRecord]:
    """Return the records of an element, in order."""
    return list(_nested(UNKNOWN.tolist() if rows is None else rows.tolist(), 0))


def _nested(rows: list[list[int]], depth: int) -> Iterator[SourceRecord]:
    starts = [index for index, row in enumerate(rows) if row[_DEPTH] == depth]
    for start, stop in itertools.pairwise([*starts, len(rows)]):
        source, number, epoch, _ = rows[start]
        within = tuple(_nested(rows[start + 1 : stop], depth + 1)) if stop > start + 1 else ()
        if source < 0:
            yield SourceRecord(None, within=within)
        else:
            name, file, inputs, _ = _SOURCES[source]
            yield SourceRecord(name, file, number, None if epoch < 0 else epoch, inputs, within)


def with_epochs_of(lineage: Lineage, numbers: Lineage) -> Lineage:
    """Return the lineage of rows in the epochs of the row numbers from which they are made."""
    found = np.array(lineage)
    given = numbers if isinstance(numbers, np.ndarray) else np.array([rows[:1] for rows in numbers])
    found[:, 0, _EPOCH] = given[:, 0, _EPOCH]
    return found


# States


def save_lineage(lineage: Lineage) -> dict[str, Any]:
    """Return the lineage of the elements of a chunk as plain data."""
    rows = joined(lineage)
    used, numbers = np.unique(rows[:, 0], return_inverse=True)
    sources = [None if number < 0 else _saved_source(_SOURCES[number]) for number in used.tolist()]
    rows = rows.copy()
    rows[:, 0] = numbers.reshape(-1)
    return {"sources": sources, "matrix": rows, "sizes": np.array([len(part) for part in lineage], np.int64)}


def load_lineage(data: Any, length: int) -> Lineage:
    """Load what ``save_lineage`` returned for ``length`` elements.

    Raises:
        StateError: if ``data`` was not returned by ``save_lineage``.
    """
    try:
        sources = [-1 if entry is None else number_of(_loaded_source(*entry)) for entry in data["sources"]]
        rows, sizes = data["matrix"], data["sizes"]
        fits = rows.dtype == sizes.dtype == np.int64 and rows.ndim == 2 and rows.shape[1] == _WIDTH
        fits = fits and sizes.shape == (length,) and 0 <= sizes.min(initial=0) <= sizes.max(initial=0) <= len(rows)
        fits = fits and sizes.sum() == len(rows)
        fits = fits and (not len(rows) or 0 <= rows[:, 0].min() <= rows[:, 0].max() < len(sources))
        if not fits:
            raise ValueError(f"{len(rows)} rows for {length} elements")  # noqa: TRY301  # the same error as the others
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"the saved provenance of elements cannot be read: {error!r}") from error
    rows = rows.copy()
    rows[:, 0] = np.array([*sources, -1])[rows[:, 0]]
    if length and sizes.min() == sizes.max():
        whole: Rows = rows.reshape(length, -1, _WIDTH)
        return whole
    return np.split(rows, np.cumsum(sizes)[:-1]) if length else []


def _saved_source(source: RecordSource) -> list[Any]:
    return [source.name, source.file, list(source.inputs), source.is_store]


def _loaded_source(name: Any, file: Any, inputs: Any, is_store: Any) -> RecordSource:
    if type(name) is not str or not (file is None or type(file) is str) or type(is_store) is not bool:
        raise TypeError(f"not a source: {name!r:.100}, {file!r:.100}, {is_store!r:.100}")
    if type(inputs) is not list or not all(type(index) is int for index in inputs):
        raise TypeError(f"not indices of inputs: {inputs!r:.100}")
    return RecordSource(name, file, tuple(inputs), is_store)

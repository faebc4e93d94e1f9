"""Saved chunks: elements and exceptions as plain data (numbers, strings, bytes, arrays, lists and dicts), no pickle.

Loading executes nothing. Most operators save a few numbers. Those that hold elements save them by value with these
functions.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dataset import errors
from dataset.errors import StateError
from dataset.plan.nested import Restorable, dataset_of, is_dataset, restore
from dataset.plan.node import Node
from dataset.plan.packed import BytesColumn, RaggedColumn, is_packed
from dataset.plan.plain import digest as digest  # noqa: PLC0414  # re-exported
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import LEAF, Structure, from_plain, to_plain
from dataset.plan.values import RaggedTensor, SparseTensor, object_column
from dataset.runtime.chunks.chunk import Chunk, Column, Outcome
from dataset.runtime.chunks.lineage import load_lineage, save_lineage
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.state.held_elements import Elements, Failure, run_through

SpecGetter = Callable[[], Any]

_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})


def save_chunk(chunk: Chunk | None) -> Any:
    """Return a chunk by value, or None."""
    if chunk is None:
        return None
    saved = {
        "length": chunk.length,
        "structure": to_plain(chunk.structure),
        "columns": [_save_column(column) for column in chunk.columns()],
    }
    return saved if chunk.lineage is None else {**saved, "lineage": save_lineage(chunk.lineage)}


def load_chunk(data: Any, spec: SpecGetter) -> Chunk | None:
    """Load a chunk saved by ``save_chunk``. ``spec()`` is called for elements of user classes, which states never name.

    Raises:
        StateError: if ``data`` was not returned by ``save_chunk``.
    """
    if data is None:
        return None
    try:
        plain = data["structure"]
        structure: Structure = flatten_spec(spec())[0] if plain is None else from_plain(plain)
        columns = [_load_column(column, partial(_inner_spec, spec, i)) for i, column in enumerate(data["columns"])]
        length = int(data["length"])
        fits = all(len(column) == length for column in columns)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise StateError(f"the saved elements cannot be read: {error!r}") from error
    if not fits or length < 1 or len(columns) != structure.num_components:
        raise StateError(f"the saved elements do not match their structure {structure!r}")
    lineage = load_lineage(data["lineage"], length) if "lineage" in data else None
    return Chunk(structure, length, columns, lineage=lineage)


def save_error(error: BaseException) -> dict[str, Any]:
    """Save an exception that is waiting to be raised."""
    return {
        "error": type(error).__name__,
        "message": str(error),
        "args": _save_arguments(error),
        "group": [save_error(part) for part in error.exceptions] if isinstance(error, BaseExceptionGroup) else None,
        "fields": {key: value for key, value in vars(error).items() if type(value) in _PLAIN},
        "notes": [str(note) for note in getattr(error, "__notes__", [])],
    }


def _save_arguments(error: BaseException) -> list[Any]:
    """Return the constructor's arguments if they are plain, else the text."""
    arguments = list(error.args)
    if isinstance(error, OSError) and len(arguments) == 2 and error.filename is not None:  # errno, text
        arguments.append(error.filename)
    if isinstance(error, SyntaxError) and len(arguments) == 2:  # text, place
        arguments[1] = list(arguments[1])
    plain = all(type(a) in _PLAIN or (type(a) is list and all(type(b) in _PLAIN for b in a)) for a in arguments)
    return arguments if plain else [str(error)]


def load_error(data: dict[str, Any]) -> Exception:
    """Load a saved exception: with its own type if that is a built-in or one of the library.

    Any other type becomes a DatasetError with the same text, because a state must not name a class to be called.
    """
    error = _rebuilt(data)
    if error is None or str(error) != data.get("message"):
        error = errors.DatasetError(f"{data['error']}: {', '.join(map(str, data['args']))}")
    for note in data["notes"]:
        error.add_note(note)
    return error


def _rebuilt(data: dict[str, Any]) -> Exception | None:
    cls = getattr(builtins, data["error"], None)
    if cls is ExceptionGroup:
        parts = [load_error(part) for part in data["group"]]
        return ExceptionGroup(data["message"].rpartition(" (")[0], parts)
    if isinstance(cls, type) and issubclass(cls, Exception):
        with contextlib.suppress(Exception):
            return cls(*data["args"])
        return None
    if data["error"] == AbsentError.__name__:
        return AbsentError()
    cls = getattr(errors, data["error"], None)
    if not (isinstance(cls, type) and issubclass(cls, errors.DatasetError)):
        return None
    error = cls.__new__(cls, *data["args"])  # without its constructor, which has other parameters
    error.args = tuple(data["args"])
    vars(error).update(data["fields"])
    return error


def save_pending(items: list[Outcome]) -> list[Any]:
    """Save chunks and exceptions, in order, without interrupts that took the place of no element."""
    saved = (item for item in items if isinstance(item, Chunk | Exception) or hasattr(item, "took_place"))
    return [save_chunk(item) if isinstance(item, Chunk) else save_error(item) for item in saved]


def load_pending(data: list[Any], spec: SpecGetter) -> list[Outcome]:
    """Load what ``save_pending`` returned."""
    items: list[Outcome] = []
    for item in data:
        loaded = load_error(item) if "error" in item else load_chunk(item, spec)
        assert loaded is not None
        items.append(loaded)
    return items


def _save_column(column: Column) -> Any:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.copy()
    if is_packed(column) and not column.sparse:
        return {"packed": _save_column(column.flat), "splits": column.splits - column.splits[0]}
    shape = column.shape if isinstance(column, np.ndarray) else None
    values = column.ravel() if isinstance(column, np.ndarray) else column
    return {"shape": None if shape is None else list(shape), "values": [save_value(value) for value in values]}


def _load_column(data: Any, inner_spec: SpecGetter) -> Column:
    if isinstance(data, np.ndarray):
        return data.copy()
    if "packed" in data:
        rows = RaggedTensor(_load_column(data["packed"], inner_spec), data["splits"])  # validates the splits
        return RaggedColumn(rows.flat_values, rows.row_splits.astype(np.int64))  # type: ignore[return-value]
    values = [_load_value(value, inner_spec) for value in data["values"]]
    return values if data["shape"] is None else object_column(values).reshape(data["shape"])


def save_value(value: Any) -> Any:
    """Return one component of an element as plain data."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, BytesColumn):  # a batch of byte strings
        value = object_column(value)
    if isinstance(value, np.ndarray):
        return {"array": _save_column(value)}
    if isinstance(value, np.generic):
        return {"scalar": np.asarray(value)}
    if isinstance(value, RaggedTensor):
        return {"ragged": _save_column(value.flat_values), "splits": [s.copy() for s in value.nested_row_splits]}
    if isinstance(value, SparseTensor):
        parts = [value.indices.copy(), value.dense_shape.copy()]
        return {"sparse": _save_column(value.values), "parts": parts}
    if is_dataset(value):
        if isinstance(value.plan, Restorable):
            return {"plan": value.plan.restored_as, "of": value.plan.to_plain()}
        return {"dataset": save_pending(_items_of(value.plan))}
    raise StateError(f"an element holds a {type(value).__name__}, which cannot be saved as plain data: {value!r}")


def _load_value(data: Any, inner_spec: SpecGetter) -> Any:
    match data:
        case bytes():
            return data
        case {"array": column}:
            return _load_column(column, inner_spec)
        case {"scalar": np.ndarray() as array}:
            return array[()]
        case {"ragged": values, "splits": splits}:
            return RaggedTensor.from_nested_row_splits(_load_column(values, inner_spec), splits)
        case {"sparse": values, "parts": [indices, shape]}:
            return SparseTensor(indices, _load_column(values, inner_spec), shape)
        case {"plan": name, "of": plain}:
            return dataset_of(restore(name, plain))
        case {"dataset": list(items)}:
            return dataset_of(_elements_of(items, inner_spec))
    raise ValueError(f"not a saved value: {data!r}")


# Datasets in elements are also saved by value: their elements, with exceptions in the places of failing ones. A dataset
# returned by a user function is read completely for this, because a state cannot name the function.


def holds_only_elements(chunk: Chunk) -> bool:
    """Return whether all datasets in a chunk, if any, are restored from a saved state as the same plans.

    All others are restored as the elements that they contain.
    """
    return all(isinstance(plan, Elements) for column in chunk.columns() for plan in _plans_in(column))


def _plans_in(column: Column) -> Iterator[Node]:
    """Yield the plans of the datasets in a column, including those in its arrays."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return
    for value in column.ravel() if isinstance(column, np.ndarray) else column:
        if is_dataset(value):
            yield value.plan
        elif isinstance(value, np.ndarray):
            yield from _plans_in(value)


def _items_of(plan: Node) -> list[Outcome]:
    if isinstance(plan, Elements) and not plan.failures:
        return [plan.chunk] if plan.chunk.length else []
    return list(run_through(plan))


def _elements_of(items: list[Any], spec: SpecGetter) -> Elements:
    chunks: list[Chunk] = []
    failures: list[Failure] = []
    count = 0
    for item in items:
        if "error" in item:
            failures.append((count, partial(load_error, item)))
            continue
        chunk = load_chunk(item, spec)
        assert chunk is not None
        chunks.append(chunk)
        count += chunk.length
    elements = Chunk.concatenate(chunks).read_only() if chunks else Chunk(LEAF, 0, [[]])
    return Elements(elements, spec, failures=tuple(failures))


def _inner_spec(spec: SpecGetter, index: int) -> Any:
    """Return the spec of the datasets in component ``index``, given the spec of the elements that contain them."""
    return flatten_spec(spec())[1][index].element_spec  # type: ignore[attr-defined]  # called only for datasets

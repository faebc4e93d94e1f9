"""Saved state as plain data: numbers, strings, bytes, arrays, lists and dicts. No pickle, and nothing that executes.

Most operators save a few numbers. Those that hold elements save them by value, with the two functions here.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from dataset import errors
from dataset.errors import StateError
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import Structure, from_plain, to_plain
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Chunk, Column

SpecGetter = Callable[[], Any]

_PLAIN = (str, bytes, int, float, bool, type(None))


def save_chunk(chunk: Chunk | None) -> Any:
    """A chunk by value, or None."""
    if chunk is None:
        return None
    return {
        "length": chunk.length,
        "structure": to_plain(chunk.structure),
        "columns": [_save_column(column) for column in chunk.columns()],
    }


def load_chunk(data: Any, spec: SpecGetter) -> Chunk | None:
    """The inverse of ``save_chunk``. ``spec()`` is asked for elements of user classes, which no state names.

    Raises:
        StateError: if ``data`` is not what ``save_chunk`` gives.
    """
    if data is None:
        return None
    try:
        plain = data["structure"]
        structure: Structure = flatten_spec(spec())[0] if plain is None else from_plain(plain)
        columns = [_load_column(column) for column in data["columns"]]
        length = int(data["length"])
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"the saved elements are not readable: {error!r}") from error
    if len(columns) != structure.num_components or any(len(column) != length for column in columns):
        raise StateError(f"the saved elements do not fit their structure {structure!r}")
    return Chunk(structure, length, columns)


def save_error(error: BaseException) -> dict[str, Any]:
    """An exception that waits to be raised."""
    plain = all(isinstance(argument, _PLAIN) for argument in error.args)
    return {
        "error": type(error).__name__,
        "args": list(error.args) if plain else [str(error)],
        "fields": {key: value for key, value in vars(error).items() if isinstance(value, _PLAIN)},
        "notes": list(getattr(error, "__notes__", [])),
    }


def load_error(data: dict[str, Any]) -> Exception:
    """The exception that stands for a saved one: of its own type if that is built in or the library's.

    The class is looked up among those, and not called, so that a state cannot run anything.
    """
    cls = getattr(builtins, data["error"], None) or getattr(errors, data["error"], None)
    arguments = data["args"]
    if not (isinstance(cls, type) and issubclass(cls, Exception)):
        cls, arguments = errors.DatasetError, [f"{data['error']}: {', '.join(map(str, arguments))}"]
    error = cls.__new__(cls)
    error.args = tuple(arguments)
    for key, value in data["fields"].items():
        if isinstance(value, _PLAIN):
            setattr(error, key, value)
    for note in data["notes"]:
        error.add_note(note)
    return error


def save_pending(items: list[Chunk | BaseException]) -> list[Any]:
    """Chunks and exceptions, in order."""
    return [save_error(item) if isinstance(item, BaseException) else save_chunk(item) for item in items]


def load_pending(data: list[Any], spec: SpecGetter) -> list[Chunk | BaseException]:
    """The inverse of ``save_pending``."""
    items: list[Chunk | BaseException] = []
    for item in data:
        loaded = load_error(item) if "error" in item else load_chunk(item, spec)
        assert loaded is not None
        items.append(loaded)
    return items


def _save_column(column: Column) -> Any:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.copy()
    shape = column.shape if isinstance(column, np.ndarray) else None
    values = column.ravel() if isinstance(column, np.ndarray) else column
    return {"shape": None if shape is None else list(shape), "values": [_save_value(value) for value in values]}


def _load_column(data: Any) -> Column:
    if isinstance(data, np.ndarray):
        return data.copy()
    values = [_load_value(value) for value in data["values"]]
    if data["shape"] is None:
        return values
    array = np.empty(len(values), object)
    for index, value in enumerate(values):
        array[index] = value
    return array.reshape(data["shape"])


def _save_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.ndarray):
        return {"array": _save_column(value)}
    if isinstance(value, np.generic):
        return {"scalar": np.asarray(value)}
    if isinstance(value, RaggedTensor):
        return {"ragged": _save_column(value.flat_values), "splits": [s.copy() for s in value.nested_row_splits]}
    if isinstance(value, SparseTensor):
        parts = [value.indices.copy(), value.dense_shape.copy()]
        return {"sparse": _save_column(value.values), "parts": parts}
    raise StateError(f"an element holds a {type(value).__name__}, which cannot be saved as plain data: {value!r}")


def _load_value(data: Any) -> Any:
    match data:
        case bytes():
            return data
        case {"array": column}:
            return _load_column(column)
        case {"scalar": np.ndarray() as array}:
            return array[()]
        case {"ragged": values, "splits": splits}:
            return RaggedTensor.from_nested_row_splits(_load_column(values), splits)
        case {"sparse": values, "parts": [indices, shape]}:
            return SparseTensor(indices, _load_column(values), shape)
    raise ValueError(f"no saved value: {data!r}")

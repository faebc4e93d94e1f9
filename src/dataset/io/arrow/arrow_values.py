"""Conversion of Arrow arrays to NumPy arrays and RaggedTensors.

Numbers, times and lists of a fixed size become read-only views of Arrow's memory, which is immutable. Booleans, text
and arrays with nulls are copied. Text becomes an object array of ``bytes``, with one object per dictionary value.
Only the types listed in types.py are supported here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.io.arrow.pyarrow_library import library
from dataset.io.arrow.types import component_of, is_text, plain_type, value_type
from dataset.plan.values import RaggedTensor, splits_of_lengths

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
_NAT = np.iinfo(np.int64).min  # how NumPy writes NaT
_NO_ROWS: Rows = np.zeros(0, np.int64)


class Converted(NamedTuple):
    """The values of all rows, and the indices of the bad rows: those with a null that has no replacement."""

    values: Array | RaggedTensor
    bad: Rows


class Converter:
    """Converter of one column, which may be converted in parts.

    Args:
        fill: the value that replaces nulls, as an Arrow scalar of the type of the values or, for lists, of the values
            in them. Default: NaN or NaT; if the dtype has neither, the row is bad.
    """

    def __init__(self, fill: Any = None) -> None:
        self.fill = fill
        # The last dictionary: its address, its values, and a reference, so that its address is not reused.
        self._dictionary: tuple[Any, Converted, Any] | None = None

    def convert(self, array: Any) -> Converted:
        """Return the values of an Arrow array whose type ``component_of`` supports."""
        pa = library()
        if isinstance(array, pa.ExtensionArray):
            return _tensors(array, self.convert(array.storage))
        types, kind = pa.types, array.type
        if types.is_dictionary(kind):
            return self._decoded(array)
        if types.is_fixed_size_list(kind):
            return self._fixed_lists(array)
        if types.is_list(kind) or types.is_large_list(kind):
            return self._lists(array)
        if array.null_count and self.fill is not None:
            array = array.fill_null(self.fill.cast(kind))
        return _text(array) if is_text(kind) else _numbers(array)

    def _decoded(self, array: Any) -> Converted:
        """Convert a dictionary array. Each dictionary value is converted once, so equal texts are the same object."""
        values, bad_values = self._values_of(array.dictionary)
        nulls = bool(array.indices.null_count)
        if isinstance(values, RaggedTensor) or not len(values) or (nulls and self._fills(values.dtype)):
            return self.convert(array.cast(array.type.value_type))
        bad = _null_rows(array.indices) if nulls else _NO_ROWS
        places = (array.indices.fill_null(0) if nulls else array.indices).to_numpy()
        if len(bad_values):
            bad = np.union1d(bad, np.flatnonzero(np.isin(places, bad_values)))
        return Converted(values.take(places, axis=0), bad)

    def _values_of(self, dictionary: Any) -> Converted:
        place = [buffer and buffer.address for buffer in dictionary.buffers()], dictionary.offset, len(dictionary)
        known = self._dictionary  # read once: other threads may replace it
        if known is None or known[0] != place:
            known = self._dictionary = (place, self.convert(dictionary), dictionary)
        return known[1]

    def _fills(self, dtype: np.dtype[Any]) -> bool:
        """Return whether nulls have a replacement."""
        return self.fill is not None or dtype.kind in "fMm"

    def _fixed_lists(self, array: Any) -> Converted:
        size, count = array.type.list_size, len(array)
        values, bad = self.convert(array.values.slice(array.offset * size, count * size))
        assert isinstance(values, np.ndarray)  # lists of a fixed size cannot contain variable-size lists
        rows = values.reshape(count, size, *values.shape[1:])
        bad = np.unique(bad // size) if len(bad) else bad
        if not array.null_count:
            return Converted(rows, bad)
        missing = _null_rows(array)
        if not self._fills(values.dtype):
            return Converted(rows, np.union1d(bad, missing))
        rows = rows.copy()
        rows[missing] = self.convert(library().nulls(1, value_type(array.type))).values[0]
        return Converted(rows, np.setdiff1d(bad, missing))

    def _lists(self, array: Any) -> Converted:
        """Convert variable-size lists. A null list becomes an empty list if ``fill`` is given, else the row is bad."""
        missing = _null_rows(array) if array.null_count else _NO_ROWS
        if len(missing):
            splits = splits_of_lengths(array.value_lengths().fill_null(0).to_numpy(), np.int64)
            inner = array.flatten()  # without the hidden values of null lists
        else:
            offsets = array.offsets.to_numpy().astype(np.int64)
            splits = offsets - offsets[0]
            inner = array.values.slice(offsets[0], splits[-1])
        values, bad = self.convert(inner)
        if len(bad):
            bad = np.unique(np.searchsorted(splits, bad, side="right") - 1)
        if self.fill is None:
            bad = np.union1d(bad, missing)
        return Converted(RaggedTensor(values, splits), bad)


def _null_rows(array: Any) -> Rows:
    rows: Rows = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
    return rows


def _text(array: Any) -> Converted:
    pa = library()
    if not pa.types.is_fixed_size_binary(array.type):
        large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        array = array.cast(pa.large_binary() if large else pa.binary())
    values = array.to_numpy(zero_copy_only=False)
    if not array.null_count:
        return Converted(values, _NO_ROWS)
    bad = _null_rows(array)
    values[bad] = b""
    return Converted(values, bad)


def _numbers(array: Any) -> Converted:
    pa = library()
    types, kind = pa.types, array.type
    if types.is_decimal(kind):
        array = array.cast(pa.string()).cast(pa.float64())  # a direct cast does not return the nearest float
    elif types.is_temporal(kind):
        return Converted(_times(array), _NO_ROWS)
    if not array.null_count or types.is_floating(array.type):
        return Converted(array.to_numpy(zero_copy_only=False), _NO_ROWS)
    bad = _null_rows(array)
    zero = pa.scalar(0, pa.int64()).cast(array.type)
    return Converted(array.fill_null(zero).to_numpy(zero_copy_only=False), bad)


def _times(array: Any) -> Array:
    """Convert times via the integers that they are stored as; pyarrow would convert some types to objects."""
    pa = library()
    dtype = component_of(array.type).dtype
    is_short = array.type.bit_width == 32
    array = array.view(pa.int32()).cast(pa.int64()) if is_short else array.view(pa.int64())
    numbers: Array = (array.fill_null(_NAT) if array.null_count else array).to_numpy()
    return numbers.view(dtype)


def _tensors(array: Any, storage: Converted) -> Converted:
    """Reshape the storage of an extension array: a ``fixed_shape_tensor`` has more dimensions than its storage."""
    values, bad = storage
    if library().types.is_boolean(plain_type(array.type)):  # bool8 is stored as bytes
        return Converted(values != 0, bad)  # type: ignore[arg-type]  # an array
    shape = component_of(array.type).shape
    if isinstance(values, np.ndarray) and values.ndim > 1:
        values = values.reshape(len(array), *shape)  # type: ignore[misc]  # all its dimensions are known
    return Converted(values, bad)

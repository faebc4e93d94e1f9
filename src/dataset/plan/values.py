"""RaggedTensor and SparseTensor: the two component types that NumPy does not have.

Both are small immutable records of NumPy arrays, with TensorFlow's field names. This module does not depend on
pipelines; batching is in runtime/chunks/batching.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset import plan

Array = npt.NDArray[Any]
Splits = npt.NDArray[np.int32 | np.int64]


def frozen_view(array: Array) -> Array:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def filled(shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array filled with ``value``. ``np.full`` would drop trailing zero bytes of text."""
    array = np.empty(shape, dtype)
    array.fill(value)
    return array


def object_column(values: Sequence[Any] | Array) -> Array:
    """Return a one-dimensional object array of arbitrary values.

    ``np.array`` would create a matrix from values of equal length.
    """
    return np.fromiter(values, object, len(values))


def as_splits_dtype(op: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype of row splits.

    Raises:
        ValueError: if ``dtype`` is neither int32 nor int64.
    """
    result = np.dtype(dtype)
    if result not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"{op}(): row_splits_dtype must be int32 or int64, got {dtype!r}")
    return result


def cast_splits(splits: Array, dtype: npt.DTypeLike) -> Splits:
    """Return row splits converted to ``dtype``.

    Raises:
        ValueError: if ``dtype`` is too small for the number of values.
    """
    if splits[-1] > np.iinfo(np.int32).max and np.dtype(dtype) == np.int32:
        raise ValueError(f"RaggedTensor: row splits of {dtype!r} cannot count {splits[-1]} values; use int64")
    return splits.astype(dtype, copy=False)


def row_offsets(lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return where each of several rows with these lengths begins, and the end of the last."""
    counts = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int64)
    counts.cumsum(out=offsets[1:])  # np.cumsum takes twice as long for few rows
    return offsets


def splits_of_lengths(lengths: npt.ArrayLike, dtype: npt.DTypeLike) -> Splits:
    """Return the row splits of rows with these lengths."""
    return cast_splits(row_offsets(lengths), dtype)


def _listed(rows: Array | RaggedTensor, size: int) -> str:
    """Return the rows as a list; shortened if ``size``, the number of all values, is above NumPy's threshold."""
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if size <= options["threshold"] or len(rows) <= 2 * edge:
        first, last = rows, None
    else:
        first, last = rows[:edge], rows[len(rows) - edge :]
    shown = ", ".join(_items(first, size) + ([] if last is None else ["...", *_items(last, size)]))
    return f"[{shown}]"


def _items(rows: Array | RaggedTensor, size: int) -> list[str]:
    if isinstance(rows, np.ndarray) and rows.ndim == 1:
        return list(map(repr, rows.tolist()))
    return [_listed(row, size) for row in rows]


class RaggedTensor:
    """Tensor of rows of different lengths, stored contiguously.

    Row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``. If the rows are ragged, too, ``values`` is a RaggedTensor.

    Args:
        values: an array of shape (total, ...), or a RaggedTensor with ``total`` rows.
        row_splits: integers of shape (rows + 1,), ascending from 0 to ``total``. int32 splits stay int32, other dtypes
            become int64; all ragged dimensions of a tensor have the same dtype of splits.

    Raises:
        ValueError: if ``row_splits`` is invalid.

    >>> ragged = RaggedTensor.from_rows([[1, 2, 3], [], [4]])
    >>> ragged.shape, ragged.to_list()
    ((3, None), [[1, 2, 3], [], [4]])
    >>> ragged[0]
    array([1, 2, 3])
    """

    __slots__ = ("row_splits", "values")
    values: Array | RaggedTensor
    row_splits: Splits

    def __init__(self, values: Array | RaggedTensor | Sequence[Any], row_splits: npt.ArrayLike) -> None:
        self.values = values if isinstance(values, RaggedTensor) else np.asarray(values)
        splits = np.asarray(row_splits)
        if splits.ndim != 1 or not len(splits) or splits.dtype.kind not in "iu":
            raise ValueError(f"RaggedTensor: row_splits must be a vector of integers, got {row_splits!r}")
        self.row_splits = splits if splits.dtype == np.int32 else splits.astype(np.int64, copy=False)
        if isinstance(self.values, RaggedTensor) and self.values.row_splits_dtype != self.row_splits_dtype:
            raise ValueError(
                f"RaggedTensor: row_splits are {self.row_splits_dtype}, but those of the values are "
                f"{self.values.row_splits_dtype}; convert one of them with with_row_splits_dtype()"
            )
        if splits[0] != 0 or splits[-1] != len(self.values) or np.count_nonzero(splits[1:] < splits[:-1]):
            raise ValueError(
                f"RaggedTensor: row_splits must ascend from 0 to the number of values, {len(self.values)}, got {splits}"
            )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[npt.ArrayLike],
        dtype: npt.DTypeLike | None = None,
        row_splits_dtype: npt.DTypeLike = np.int64,
    ) -> RaggedTensor:
        """Return the ragged tensor with these rows, arrays whose shapes are equal in all but the first dimension.

        Args:
            rows: the arrays, or lists.
            dtype: the dtype of the values. Default: the common dtype of all non-empty rows.
            row_splits_dtype: int64 or int32.

        >>> RaggedTensor.from_rows([[], []], dtype=np.float32).dtype
        dtype('float32')
        """
        arrays = [np.asarray(row, dtype) for row in rows]
        filled = [array.dtype for array in arrays if array.size]
        if dtype is None and filled:  # an empty list has no dtype, so the others determine it
            common = np.result_type(*filled)
            arrays = [array if array.size else array.astype(common) for array in arrays]
        splits = splits_of_lengths([len(row) for row in arrays], row_splits_dtype)
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, dtype), splits)

    @classmethod
    def from_nested_row_splits(cls, flat_values: npt.ArrayLike, splits: Sequence[npt.ArrayLike]) -> RaggedTensor:
        """Return a ragged tensor with several ragged dimensions.

        Args:
            flat_values: an array of shape (total, ...), the concatenated innermost rows.
            splits: the row splits of each ragged dimension, outermost first; at least one.

        Raises:
            ValueError: if ``splits`` is empty or inconsistent.
        """
        result: Any = np.asarray(flat_values)
        for row_splits in reversed(splits):
            result = cls(result, row_splits)
        if not isinstance(result, RaggedTensor):
            raise ValueError("RaggedTensor: at least one array of row_splits is needed, got none")  # noqa: TRY004
        return result

    @property
    def flat_values(self) -> Array:
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def row_splits_dtype(self) -> np.dtype[Any]:
        """The dtype of the row splits, int32 or int64."""
        return self.row_splits.dtype

    def with_row_splits_dtype(self, dtype: npt.DTypeLike) -> RaggedTensor:
        """Return the ragged tensor with row splits of another dtype.

        Raises:
            ValueError: if ``dtype`` is neither int32 nor int64, or too small for the number of values.

        >>> RaggedTensor([1, 2], [0, 2]).with_row_splits_dtype(np.int32).row_splits
        array([0, 2], dtype=int32)
        """
        if as_splits_dtype("RaggedTensor", dtype) == self.row_splits_dtype:
            return self
        values = self.values.with_row_splits_dtype(dtype) if isinstance(self.values, RaggedTensor) else self.values
        return RaggedTensor(values, cast_splits(self.row_splits, dtype))

    @property
    def nested_row_splits(self) -> tuple[Splits, ...]:
        """The row splits of every ragged dimension, outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The number of rows, None for each ragged dimension, and the shape of one value."""
        return (len(self), *[None] * self.ragged_rank, *self.flat_values.shape[1:])

    @property
    def nbytes(self) -> int:
        """The size of the values and the splits in bytes."""
        return int(self.values.nbytes + self.row_splits.nbytes)

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, index: Any) -> Any:
        """Return row ``index``, or for a slice the ragged tensor of those rows."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"RaggedTensor: rows can only be sliced with step 1, got {step}")
            splits = self.row_splits[start : max(start, stop) + 1]
            return RaggedTensor(self.values[splits[0] : splits[-1]], splits - splits[0])
        row = range(len(self))[index]
        return self.values[self.row_splits[row] : self.row_splits[row + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def read_only(self) -> RaggedTensor:
        """Return a read-only view of the ragged tensor."""
        values = self.values.read_only() if isinstance(self.values, RaggedTensor) else frozen_view(self.values)
        return RaggedTensor(values, frozen_view(self.row_splits))

    def to_list(self) -> list[Any]:
        """Return the rows as nested lists of Python values."""
        return [row.to_list() if isinstance(row, RaggedTensor) else row.tolist() for row in self]

    def to_tensor(self, default_value: Any = None) -> Array:
        """Return a dense array, with short rows padded at the end with ``default_value`` (default 0, or ``b""``).

        >>> RaggedTensor.from_rows([[1, 2], [3]]).to_tensor(default_value=-1)
        array([[ 1,  2],
               [ 3, -1]])
        """
        if default_value is None:
            default_value = b"" if self.dtype == object else 0
        values = self.values.to_tensor(default_value) if isinstance(self.values, RaggedTensor) else self.values
        width = int((self.row_splits[1:] - self.row_splits[:-1]).max(initial=0))
        dense = filled((len(self), width, *values.shape[1:]), default_value, values.dtype)
        plan.copy_rows(values, self.row_splits, dense)
        return dense

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaggedTensor):
            return NotImplemented
        splits = zip(self.nested_row_splits, other.nested_row_splits, strict=False)
        return (
            self.shape == other.shape
            and self.dtype == other.dtype
            and self.row_splits_dtype == other.row_splits_dtype
            and all(np.array_equal(a, b) for a, b in splits)
            and np.array_equal(self.flat_values, other.flat_values)
        )

    __hash__ = None  # type: ignore[assignment]  # equal by value over mutable arrays

    def __repr__(self) -> str:
        narrow = "" if self.row_splits_dtype == np.int64 else f", row_splits_dtype={self.row_splits_dtype}"
        return f"RaggedTensor({_listed(self, self.flat_values.size)}, dtype={self.dtype}{narrow})"


def join_ragged(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """Concatenate the rows of ragged tensors that differ only in the lengths of their rows, at least one tensor."""
    levels = zip(*(part.nested_row_splits for part in parts), strict=True)
    lengths = [np.concatenate([np.diff(splits) for splits in level]) for level in levels]
    splits = [splits_of_lengths(level, parts[0].row_splits_dtype) for level in lengths]
    return RaggedTensor.from_nested_row_splits(np.concatenate([part.flat_values for part in parts]), splits)


class SparseTensor:
    """Tensor that stores only the non-default cells, in row-major order of their indices.

    Args:
        indices: int64 of shape (cells, rank).
        values: an array of shape (cells,).
        dense_shape: int64 of shape (rank,).

    Raises:
        ValueError: if the shapes of the three are inconsistent.

    >>> sparse = SparseTensor(indices=[[0, 1], [1, 0]], values=[5, 6], dense_shape=[2, 2])
    >>> sparse.to_dense()
    array([[0, 5],
           [6, 0]])
    """

    __slots__ = ("dense_shape", "indices", "values")
    indices: npt.NDArray[np.int64]
    values: Array
    dense_shape: npt.NDArray[np.int64]

    def __init__(self, indices: npt.ArrayLike, values: npt.ArrayLike, dense_shape: npt.ArrayLike) -> None:
        self.dense_shape = np.asarray(dense_shape, np.int64)
        self.values = np.asarray(values)
        self.indices = np.asarray(indices, np.int64)
        if not self.indices.size:
            self.indices = self.indices.reshape(len(self.values), self.dense_shape.size)
        if self.indices.shape != (len(self.values), len(self.dense_shape)):
            raise ValueError(
                f"SparseTensor: {len(self.values)} values in {len(self.dense_shape)} dimensions need indices of shape "
                f"{(len(self.values), len(self.dense_shape))}, got {self.indices.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense array."""
        return tuple(self.dense_shape.tolist())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """The size of the three arrays in bytes."""
        return self.indices.nbytes + self.values.nbytes + self.dense_shape.nbytes

    def read_only(self) -> SparseTensor:
        """Return a read-only view of the sparse tensor."""
        return SparseTensor(frozen_view(self.indices), frozen_view(self.values), frozen_view(self.dense_shape))

    def to_dense(self, default_value: Any = None) -> Array:
        """Return the dense array, with ``default_value`` (default 0, or ``b""``) in cells without a value."""
        if default_value is None:
            default_value = b"" if self.dtype == object else 0
        dense = filled(self.shape, default_value, self.dtype)
        dense[tuple(self.indices.T)] = self.values
        return dense

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseTensor):
            return NotImplemented
        return (
            self.dtype == other.dtype
            and np.array_equal(self.dense_shape, other.dense_shape)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]  # equal by value over mutable arrays

    def __repr__(self) -> str:
        indices, values = (_listed(array, self.values.size) for array in (self.indices, self.values))
        shape = self.dense_shape.tolist()
        return f"SparseTensor(indices={indices}, values={values}, dense_shape={shape!r}, dtype={self.dtype})"

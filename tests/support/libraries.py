"""The two libraries with one interface, so that a pipeline is written once and run in both.

``lib.Dataset``, ``lib.TensorSpec`` and so on are each library's own. Arithmetic, comparisons and indexing work alike in
the functions of both; other operations are functions of this module. Python numbers are int64 and float64 in one
library, int32 and float32 in the other: give arrays and ``lib.const`` a dtype, and start from ``Dataset.range``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import dataset
from dataset.plan.spec import BYTES, flatten_spec, map_spec


class BadElementError(Exception):
    """The error that the functions of the tests raise."""


def fail_at(*bad: int) -> Callable[[Any], Any]:
    """Return a function that returns its argument but raises for these values; wrap it in ``lib.call``."""

    def check(x: Any) -> Any:
        if int(x) in bad:
            raise BadElementError(x)
        return x

    return check


def arrays(lib: Any, values: Any, shape: Any, dtype: Any = np.int64) -> Any:
    """Return a dataset of these arrays. Before it runs, only ``shape`` and ``dtype`` are known."""
    content = [np.array(value, object if dtype is bytes else dtype) for value in values]
    return lib.Dataset.from_generator(lambda: iter(content), output_signature=lib.TensorSpec(shape, dtype))


def counting(lib: Any, count: int, *, bad: Any = (), shape: Any = (None,)) -> Any:
    """Return the vectors [], [1], [2, 2], ... as a dataset that fails at the numbers ``bad``."""
    check = fail_at(*bad)
    fill = lib.call(lambda n: np.full(int(check(n)), n), dataset.TensorSpec(shape, np.int64))
    return lib.unfused(lib.Dataset.range(count).map(fill))


class Ours:
    """This library."""

    name = "dataset"
    Dataset = dataset.Dataset
    CsvDataset = dataset.CsvDataset
    TFRecordDataset = dataset.TFRecordDataset
    TextLineDataset = dataset.TextLineDataset
    FixedLengthRecordDataset = dataset.FixedLengthRecordDataset
    SqlDataset = dataset.SqlDataset
    Options = dataset.Options
    TensorSpec = dataset.TensorSpec
    RaggedTensorSpec = dataset.RaggedTensorSpec
    SparseTensorSpec = dataset.SparseTensorSpec
    DatasetSpec = dataset.DatasetSpec
    AUTOTUNE = dataset.AUTOTUNE
    INFINITE = dataset.INFINITE_CARDINALITY
    UNKNOWN = dataset.UNKNOWN_CARDINALITY
    set_random_seed = staticmethod(dataset.set_random_seed)
    decode_csv = staticmethod(dataset.io.decode_csv)
    from_csv = staticmethod(dataset.Dataset.from_csv)

    @staticmethod
    def unfused(dataset: Any) -> Any:
        """Return a dataset on which a failing element has the same effect with and without the optimizer."""
        return dataset

    @staticmethod
    def const(value: Any, dtype: Any = None) -> Any:
        """Return an array or scalar."""
        return np.asarray(value, dtype)[()] if np.dtype(dtype) != object else np.asarray(value, dtype)

    @staticmethod
    def cast(value: Any, dtype: Any) -> Any:
        """Return ``value`` with another dtype."""
        return np.asarray(value).astype(dtype)[()]

    @staticmethod
    def fill(shape: Any, value: Any) -> Any:
        """Return an array filled with ``value``; ``shape`` may contain elements."""
        return np.full([int(size) for size in shape], value)

    @staticmethod
    def stack(values: Any) -> Any:
        """Stack values along a new first axis."""
        return np.stack(values)

    @staticmethod
    def total(value: Any) -> Any:
        """Return the sum of an array."""
        return np.sum(value)

    @staticmethod
    def length(value: Any) -> Any:
        """Return the size of the first axis, as int64."""
        return np.int64(len(value))

    @staticmethod
    def from_splits(splits: Any, flat_values: Any, splits_dtype: Any = np.int64) -> Any:
        """Return the row splits of a RaggedTensor, outermost first, and its innermost values."""
        return dataset.RaggedTensor.from_nested_row_splits(flat_values, [np.array(s, splits_dtype) for s in splits])

    @staticmethod
    def ragged(rows: Any, dtype: Any = np.int64) -> Any:
        """Return a RaggedTensor; rows of rows give it a ragged rank of 2."""
        if not any(isinstance(cell, list) for row in rows for cell in row):
            return dataset.RaggedTensor.from_rows(rows, dtype)
        inner = dataset.RaggedTensor.from_rows([cells for row in rows for cells in row], dtype)
        return dataset.RaggedTensor(inner, np.cumsum([0, *map(len, rows)]))

    @staticmethod
    def sparse(indices: Any, values: Any, dense_shape: Any) -> Any:
        """Return a SparseTensor."""
        return dataset.SparseTensor(indices, np.asarray(values), dense_shape)

    @staticmethod
    def call(function: Callable[..., Any], returns: Any) -> Callable[..., Any]:
        """Convert a function of NumPy values for map; ``returns`` is its spec, in this library's classes."""
        del returns
        return function


def tensorflow() -> Any:
    """TensorFlow, imported at the first use: it takes seconds, and warns."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow as tf
    tf.get_logger().setLevel("ERROR")  # it warns if it cannot read the source of a lambda, and runs it unchanged
    return tf


class TensorFlow:
    """tf.data."""

    name = "tf.data"

    def __init__(self) -> None:
        tf = self.tf = tensorflow()
        self.Dataset = tf.data.Dataset
        self.CsvDataset = self._csv_dataset
        self.TFRecordDataset = tf.data.TFRecordDataset
        self.TextLineDataset = tf.data.TextLineDataset
        self.FixedLengthRecordDataset = tf.data.FixedLengthRecordDataset
        self.SqlDataset = self._sql_dataset
        self.Options = tf.data.Options
        self.TensorSpec = self._tensor_spec
        self.RaggedTensorSpec = self._ragged_spec
        self.SparseTensorSpec = lambda shape=None, dtype=np.float32: tf.SparseTensorSpec(shape, self._dtype(dtype))
        self.DatasetSpec = tf.data.DatasetSpec
        self.AUTOTUNE = tf.data.AUTOTUNE
        self.INFINITE = tf.data.INFINITE_CARDINALITY
        self.UNKNOWN = tf.data.UNKNOWN_CARDINALITY
        self.set_random_seed = tf.random.set_seed

    def _dtype(self, dtype: Any) -> Any:
        return self.tf.string if np.dtype(dtype).kind in "SUO" else self.tf.as_dtype(dtype)

    def _sql_dataset(self, driver: str, source: str, query: str, types: Any) -> Any:
        types = map_plain(self._dtype, types)
        return self.tf.data.experimental.SqlDataset(driver, source, query, types)

    def _defaults(self, defaults: Any) -> Any:
        """Return defaults of CSV columns as 64-bit numbers: plain Python numbers could be taken for dtype codes."""
        return [
            self._dtype(one)
            if isinstance(one, type)
            else self.tf.constant(np.asarray(one).tolist(), self._dtype_of(one))
            for one in defaults
        ]

    def _dtype_of(self, value: Any) -> Any:
        return self._dtype(np.asarray(value).dtype)

    def _csv_dataset(self, filenames: Any, record_defaults: Any, *args: Any, **keywords: Any) -> Any:
        return self.tf.data.experimental.CsvDataset(filenames, self._defaults(record_defaults), *args, **keywords)

    def decode_csv(self, records: Any, record_defaults: Any, **keywords: Any) -> Any:
        empty = [
            self.tf.constant([], one) if isinstance(one, self.tf.DType) else one
            for one in self._defaults(record_defaults)
        ]
        return self.tf.io.decode_csv(records, empty, **keywords)

    def from_csv(self, file_pattern: Any, batch_size: int, column_defaults: Any = None, **keywords: Any) -> Any:
        defaults = None if column_defaults is None else self._defaults(column_defaults)
        return self.tf.data.experimental.make_csv_dataset(
            file_pattern, batch_size, column_defaults=defaults, **keywords
        )

    def _tensor_spec(self, shape: Any, dtype: Any = np.float32, name: str | None = None) -> Any:
        return self.tf.TensorSpec(shape, self._dtype(dtype), name)

    def _ragged_spec(
        self, shape: Any, dtype: Any = np.float32, ragged_rank: int | None = None, row_splits_dtype: Any = np.int64
    ) -> Any:
        return self.tf.RaggedTensorSpec(shape, self._dtype(dtype), ragged_rank, self.tf.as_dtype(row_splits_dtype))

    def unfused(self, dataset: Any) -> Any:
        options = self.tf.data.Options()
        options.experimental_optimization.map_and_batch_fusion = False
        return dataset.with_options(options)

    def const(self, value: Any, dtype: Any = None) -> Any:
        return self.tf.constant(value, None if dtype is None else self._dtype(dtype))

    def cast(self, value: Any, dtype: Any) -> Any:
        return self.tf.cast(value, dtype)

    def fill(self, shape: Any, value: Any) -> Any:
        return self.tf.fill([self.tf.cast(size, self.tf.int32) for size in shape], value)

    def stack(self, values: Any) -> Any:
        return self.tf.stack(values)

    def total(self, value: Any) -> Any:
        return self.tf.reduce_sum(value)

    def length(self, value: Any) -> Any:
        return self.tf.shape(value, out_type=self.tf.int64)[0]

    def ragged(self, rows: Any, dtype: Any = np.int64) -> Any:
        return self.tf.ragged.constant(rows, self._dtype(dtype), row_splits_dtype=self.tf.int64)

    def from_splits(self, splits: Any, flat_values: Any, splits_dtype: Any = np.int64) -> Any:
        arrays = [np.array(part, splits_dtype) for part in splits]
        return self.tf.RaggedTensor.from_nested_row_splits(flat_values, arrays)

    def sparse(self, indices: Any, values: Any, dense_shape: Any) -> Any:
        indices = np.reshape(np.array(indices, np.int64), (-1, len(dense_shape)))
        return self.tf.SparseTensor(indices, np.asarray(values), dense_shape)

    def call(self, function: Callable[..., Any], returns: Any) -> Callable[..., Any]:
        structure, specs = flatten_spec(returns)
        dtypes = [self._dtype(object if spec.dtype == BYTES else spec.dtype) for spec in specs]

        def traced(*args: Any) -> Any:
            def flat(*values: Any) -> Any:
                result = structure.flatten(function(*values))
                pairs = zip(result, dtypes, strict=True)
                return [np.asarray(value, object if t == self.tf.string else t.as_numpy_dtype) for value, t in pairs]

            results = self.tf.numpy_function(flat, args, dtypes)
            for result, spec in zip(results, specs, strict=True):
                result.set_shape(spec.shape)
            return structure.unflatten(results)

        return traced

    def spec(self, spec: Any) -> Any:
        """Return the spec of a tf.data.Dataset in this library's classes."""
        return spec_from_tensorflow(self.tf, spec)


def spec_from_tensorflow(tf: Any, spec: Any) -> Any:
    """Return a nested spec of TensorFlow in this library's classes."""

    def dtype(of: Any) -> Any:
        return bytes if of == tf.string else of.as_numpy_dtype

    def shape(of: Any) -> Any:
        return None if of.rank is None else tuple(of.as_list())

    def component(one: Any) -> Any:
        if isinstance(one, tf.TensorSpec):
            return dataset.TensorSpec(shape(one.shape), dtype(one.dtype))
        if isinstance(one, tf.RaggedTensorSpec):
            if one.ragged_rank < 0:  # how tf.data describes the scalars in a ragged tensor
                return dataset.TensorSpec(shape(one.shape), dtype(one.dtype))
            splits_dtype = one.row_splits_dtype.as_numpy_dtype
            return dataset.RaggedTensorSpec(shape(one.shape), dtype(one.dtype), one.ragged_rank, splits_dtype)
        if isinstance(one, tf.SparseTensorSpec):
            return dataset.SparseTensorSpec(shape(one.shape), dtype(one.dtype))
        if isinstance(one, tf.data.DatasetSpec):
            return dataset.DatasetSpec(spec_from_tensorflow(tf, one.element_spec), tuple(one._dataset_shape.as_list()))
        if type(one).__name__ == "NoneTensorSpec":
            return None
        raise TypeError(f"this library has no spec for {one!r}")

    return map_plain(component, spec)


def map_plain(function: Callable[[Any], Any], nested: Any) -> Any:
    """Apply ``function`` to the leaves of nested tuples and dicts."""
    if isinstance(nested, tuple) and type(nested).__name__ != "TensorShape":
        parts = [map_plain(function, part) for part in nested]
        return type(nested)(*parts) if hasattr(nested, "_fields") else tuple(parts)
    if isinstance(nested, dict):
        return type(nested)((key, map_plain(function, part)) for key, part in nested.items())
    return function(nested)


__all__ = [
    "BadElementError",
    "Ours",
    "TensorFlow",
    "arrays",
    "counting",
    "fail_at",
    "map_plain",
    "map_spec",
    "spec_from_tensorflow",
    "tensorflow",
]

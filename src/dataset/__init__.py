"""Lazy input pipelines for training loops: the tf.data model on NumPy, without TensorFlow.

    from dataset import AUTOTUNE, Dataset, TFRecordDataset, io

    train = (
        Dataset.list_files("train-*.tfrecord")
        .interleave(TFRecordDataset)
        .map(io.ExampleParser(features))
        .cache().shuffle(10_000).batch(128).prefetch(AUTOTUNE)
    )
    for batch in train: ...

The public methods are in api/. A plan (plan/) consists of ops (ops/, io/); it is rewritten (optimize/) and run
(runtime/).
"""

from dataset.dataset import Dataset
from dataset.errors import (
    BrokenConnectionError,
    CancelledError,
    CardinalityError,
    ClosedError,
    DataLossError,
    DatasetError,
    FileChangedError,
    OutOfRangeError,
    ParseError,
    SpecError,
    StateError,
    WorkerDiedError,
)
from dataset.lazy_imports import lazy_imports
from dataset.options import (
    AUTOTUNE,
    AutotuneOptions,
    FilesOptions,
    OptimizationOptions,
    Options,
    ThreadingOptions,
)
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.spec import DatasetSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.readers import (
    CsvDataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    SqlDataset,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
)
from dataset.runtime.iteration.iterator import DatasetIterator
from dataset.runtime.random.streams import set_random_seed
from dataset.version import __version__ as __version__

with lazy_imports():
    from dataset import checkpoint, io, queues
    from dataset.ops.group.group_by_reducer import Reducer
    from dataset.runtime.chunks.source_records import Provenance, SourceRecord
    from dataset.runtime.functions.kernels.vectorized import vectorized
    from dataset.runtime.iteration.optional import Optional

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutotuneOptions",
    "BrokenConnectionError",
    "CancelledError",
    "CardinalityError",
    "ClosedError",
    "CsvDataset",
    "DataLossError",
    "Dataset",
    "DatasetError",
    "DatasetIterator",
    "DatasetSpec",
    "FileChangedError",
    "FilesOptions",
    "FixedLengthRecordDataset",
    "JsonLinesDataset",
    "OptimizationOptions",
    "Optional",
    "Options",
    "OutOfRangeError",
    "ParseError",
    "Provenance",
    "RaggedTensor",
    "RaggedTensorSpec",
    "Reducer",
    "SourceRecord",
    "SparseTensor",
    "SparseTensorSpec",
    "SpecError",
    "SqlDataset",
    "StateError",
    "TFRecordDataset",
    "TarDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "WorkerDiedError",
    "checkpoint",
    "io",
    "queues",
    "set_random_seed",
    "vectorized",
]

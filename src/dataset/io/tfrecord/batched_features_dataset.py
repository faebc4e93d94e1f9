"""make_batched_features_dataset: files of Examples as parsed batches. It chains the methods that a user would chain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dataset.io.dataset_files import file_names
from dataset.io.example.features import FeatureSpec, RaggedFeature
from dataset.io.example.parse import ExampleParser
from dataset.io.files.list_files import ListFiles, matching_files
from dataset.io.tfrecord.source import TFRecord
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.options import AUTOTUNE
from dataset.plan.checks import require_bool, require_callable, require_parallelism
from dataset.plan.nested import dataset_of
from dataset.plan.spec import ComponentSpec, RaggedTensorSpec

_OP = "make_batched_features_dataset"


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, FeatureSpec],
    reader: Callable[..., Any] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:
    """Return a dataset of batches of parsed Examples, like ``tf.data.experimental.make_batched_features_dataset``.

    Args:
        file_pattern: a pattern of file names, or a list of patterns.
        batch_size: examples per batch.
        features: the features to read, by name, as for ``parse_example``.
        reader: a function that takes a file name and returns a dataset of its records. Default: TFRecordDataset.
        label_key: the feature that is the label; elements are then pairs of the other features and the label.
        reader_args: more positional arguments of ``reader``, such as the compression type of TFRecordDataset.
        num_epochs: the number of passes over the files. Default: without end.
        shuffle: whether to shuffle the files, and the records in a buffer.
        shuffle_buffer_size: records in the buffer.
        shuffle_seed: the seed of the order.
        prefetch_buffer_size: batches that are computed ahead. Default AUTOTUNE.
        reader_num_threads: how many files to read at once, taking a record from each in turn. Default: 1.
        parser_num_threads: how many batches to parse at once. Default: 2.
        sloppy_ordering: whether records of several files may come in the order in which they are ready.
        drop_final_batch: whether to drop a last batch that is smaller. Without end, there is none.

    Returns:
        A Dataset of dicts of batched features, or of pairs.

    Raises:
        FileNotFoundError: no file matches.
        ValueError: ``label_key`` is not a feature, or a number is out of range.
        TypeError: ``reader`` is not callable, or another argument has the wrong type.
        ParseError: while iterating, in the place of a batch with a record that cannot be parsed.

    >>> import os, tempfile
    >>> from dataset import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with io.TFRecordWriter(os.path.join(folder, "a.tfrecord")) as writer:
    ...         for i in range(3):
    ...             writer.write(io.encode_example({"x": i, "y": i * i}))
    ...     features = {"x": io.FixedLenFeature((), np.int64), "y": io.FixedLenFeature((), np.int64)}
    ...     batches = make_batched_features_dataset(
    ...         f"{folder}/*.tfrecord", 2, features, label_key="y", num_epochs=1, shuffle=False)
    ...     list(batches)
    [({'x': array([0, 1])}, array([0, 1])), ({'x': array([2])}, array([4]))]
    """
    for argument, given in (("shuffle", shuffle), ("sloppy_ordering", sloppy_ordering)):
        require_bool(_OP, argument, given)
    drops_rest = require_bool(_OP, "drop_final_batch", drop_final_batch) or num_epochs is None
    read = _read_records if reader is None else reader
    require_callable(_OP, "reader", read)
    threads = 1 if reader_num_threads is None else reader_num_threads
    require_parallelism(_OP, threads, None)
    parser = _BatchParser(features, label_key, batch_size if drops_rest else None)
    paths = matching_files(file_pattern, _OP)
    names = ListFiles(np.array(list(map(os.fsencode, paths)), object))
    files = dataset_of(Shuffle(names, len(paths), shuffle_seed) if shuffle else names)
    records = files.interleave(
        lambda name: read(name, *(reader_args or ())),
        cycle_length=threads,
        num_parallel_calls=None if threads == 1 else threads,
        deterministic=None if threads == 1 else not sloppy_ordering,
    )
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    batches = records.batch(batch_size, drop_remainder=drops_rest)
    parsed = batches.map(parser, num_parallel_calls=2 if parser_num_threads is None else parser_num_threads)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _read_records(name: bytes, compression_type: str | None = None, buffer_size: int | None = None) -> Any:
    files = file_names("TFRecordDataset", name)
    return dataset_of(TFRecord(files, buffer_size=buffer_size, compression_type=compression_type))


class _BatchParser:
    """Parser function for batches of Examples; its element spec is known without running it."""

    __dataset_no_user_code__ = True
    __dataset_takes_blocks__ = True

    def __init__(self, features: Mapping[str, FeatureSpec], label_key: str | None, batch_size: int | None) -> None:
        self._parser = ExampleParser(features)
        if label_key is not None and label_key not in features:
            raise ValueError(f"{_OP}(): label_key must be one of the features {list(features)}, got {label_key!r}")
        self._label_key = label_key
        self._batch_size = batch_size

    @property
    def element_spec(self) -> Any:
        specs = {name: _batched(feature, self._batch_size) for name, feature in self._parser.features.items()}
        return self._with_label(specs)

    def __call__(self, records: Any) -> Any:
        return self._with_label(self._parser.parse_batch(records))

    def _with_label(self, features: dict[str, Any]) -> Any:
        return features if self._label_key is None else (features, features.pop(self._label_key))

    def __repr__(self) -> str:
        return repr(self._parser)


def _batched(feature: FeatureSpec, size: int | None) -> ComponentSpec:
    spec = feature.spec
    if isinstance(feature, RaggedFeature) and not isinstance(spec, RaggedTensorSpec):
        spec = RaggedTensorSpec(spec.shape, spec.dtype, 0)  # a 1-D array, which becomes a row
    return spec.batched(size)

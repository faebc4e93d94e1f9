"""What a type checker knows of pipelines. Checked by mypy, never run."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np

from dataset import Dataset, DatasetIterator, TFRecordDataset


def length(record: bytes) -> int:
    return len(record)


def numbers() -> Iterator[float]:
    yield 1.0


def lengths(key: Any, records: Dataset[bytes]) -> Dataset[int]:
    return records.map(length)


assert_type(TFRecordDataset("a"), TFRecordDataset)
assert_type(TFRecordDataset("a").map(length), Dataset[int])
assert_type(TFRecordDataset("a").shuffle(10).take(3).prefetch(2), Dataset[bytes])
assert_type(iter(TFRecordDataset("a")), DatasetIterator[bytes])
assert_type(next(iter(Dataset.list_files("*"))), bytes)
assert_type(Dataset.from_generator(numbers), Dataset[float])
assert_type(Dataset.from_tensors("a").enumerate(), Dataset[tuple[Any, str]])
assert_type(Dataset.list_files("*").interleave(TFRecordDataset), Dataset[bytes])
assert_type(TFRecordDataset("a").group_by_window(length, lengths, 10), Dataset[int])
assert_type(Dataset.range(3).reduce(np.int64(0), lambda total, x: total + x), np.int64)

"""What a type checker knows of pipelines. Checked by mypy and pyright, never run."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple, assert_type

import numpy as np
import numpy.typing as npt

from dataset import (
    AUTOTUNE,
    CsvDataset,
    Dataset,
    DatasetIterator,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    Options,
    RaggedTensor,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
    io,
    vectorized,
)

Image = npt.NDArray[np.float32]


def length(record: bytes) -> int:
    return len(record)


def numbers() -> Iterator[float]:
    yield 1.0


def examples() -> Iterator[tuple[Image, np.int64]]:
    yield np.zeros((2, 2), np.float32), np.int64(1)


def lengths(key: Any, records: Dataset[bytes]) -> Dataset[int]:
    return records.map(length)


# Sources
assert_type(Dataset.range(3), Dataset[np.int64])
assert_type(Dataset.range(3, output_type=np.float32), Dataset[np.float32])
assert_type(Dataset.range(3, output_type="int32"), Dataset[Any])
assert_type(Dataset.random(seed=1), Dataset[np.int64])
assert_type(Dataset.from_tensors("a"), Dataset[str])
assert_type(Dataset.from_generator(numbers), Dataset[float])
assert_type(Dataset.from_tensor_slices(["a", "b"]), Dataset[bytes])
assert_type(Dataset.from_tensor_slices([1, 2]), Dataset[np.int64])
assert_type(Dataset.from_tensor_slices([1.5]), Dataset[np.float64])
assert_type(Dataset.from_tensor_slices(np.zeros((3, 2))), Dataset[Any])
assert_type(Dataset.from_tensor_slices((np.zeros((3, 2)), np.arange(3))), Dataset[tuple[Any, Any]])
assert_type(Dataset.from_tensor_slices(([1], [2], [3])), Dataset[tuple[Any, Any, Any]])
assert_type(Dataset.from_tensor_slices({"x": np.zeros(3), "y": [1, 2, 3]}), Dataset[dict[str, Any]])
assert_type(Dataset.list_files("*"), Dataset[bytes])
assert_type(Dataset.from_parquet("a.parquet"), Dataset[dict[str, Any]])
assert_type(Dataset.from_huggingface(None), Dataset[dict[str, Any]])
assert_type(Dataset.from_pandas(None), Dataset[dict[str, Any]])
assert_type(Dataset.from_polars(None), Dataset[dict[str, Any]])
assert_type(TFRecordDataset("a"), TFRecordDataset)
assert_type(iter(TFRecordDataset("a")), DatasetIterator[bytes])
assert_type(next(iter(Dataset.list_files("*"))), bytes)
assert_type(next(iter(JsonLinesDataset("a"))), dict[str, Any])
assert_type(next(iter(TarDataset("a"))), dict[str, bytes])

# Functions
assert_type(TFRecordDataset("a").map(length), Dataset[int])
assert_type(FixedLengthRecordDataset("a", 4).map(length), Dataset[int])
assert_type(Dataset.range(3).map(lambda x: x * x), Dataset[np.int64])
assert_type(TFRecordDataset("a").map(lambda record: record[:2]), Dataset[bytes])
assert_type(Dataset.from_generator(examples).map(lambda image, label: (label, image)), Dataset[tuple[np.int64, Image]])
assert_type(Dataset.range(3).enumerate().map(lambda i, x: i + x, num_parallel_calls=AUTOTUNE), Dataset[np.int64])
assert_type(Dataset.range(3).map(str, num_parallel_calls=AUTOTUNE(max=8)).prefetch(AUTOTUNE(max=2)), Dataset[str])
assert_type(Dataset.list_files("*").flat_map(TextLineDataset), Dataset[bytes])
assert_type(Dataset.list_files("*").interleave(TFRecordDataset, num_parallel_calls=AUTOTUNE), Dataset[bytes])
assert_type(
    Dataset.list_files("*").interleave(functools.partial(TFRecordDataset, compression_type="GZIP")), Dataset[bytes]
)
assert_type(TFRecordDataset("a").group_by_window(length, lengths, 10), Dataset[int])
assert_type(Dataset.range(3).reduce(np.int64(0), lambda total, x: total + x), np.int64)
assert_type(TFRecordDataset("a").take_while(bool), Dataset[bytes])


def augmented(rng: np.random.Generator, record: bytes) -> float:
    return len(record) * rng.random()


def counted(state: int, record: bytes) -> tuple[int, str]:
    return state + 1, record.decode()


@vectorized
def halved(images: Image) -> Image:
    return images / np.float32(2)


assert_type(TFRecordDataset("a").random_map(augmented, seed=1), Dataset[float])
assert_type(TFRecordDataset("a").scan(0, counted), Dataset[str])
assert_type(Dataset.from_tensors(np.zeros(3, np.float32)).map(halved), Dataset[Image])

# Sequences
assert_type(TFRecordDataset("a").shuffle(10).take(3).repeat().cache().prefetch(2), Dataset[bytes])
assert_type(TFRecordDataset("a").unique().ignore_errors(log_warning=True), Dataset[bytes])
assert_type(Dataset.from_tensors("a").enumerate(), Dataset[tuple[np.int64, str]])
assert_type(Dataset.from_tensors({"label": 1}).select("label"), Dataset[Any])
assert_type(TFRecordDataset("a").concatenate(TextLineDataset("b")), Dataset[bytes])
assert_type(Dataset.zip(TFRecordDataset("a"), Dataset.range(3)), Dataset[tuple[bytes, np.int64]])
assert_type(Dataset.zip((TFRecordDataset("a"), Dataset.range(3))), Dataset[tuple[bytes, np.int64]])
assert_type(
    Dataset.zip(Dataset.range(3), TFRecordDataset("a"), Dataset.from_tensors("b")),
    Dataset[tuple[np.int64, bytes, str]],
)
assert_type(Dataset.sample_from_datasets([TFRecordDataset("a"), TFRecordDataset("b")]), Dataset[bytes])
assert_type(TFRecordDataset("a").get_single_element(), bytes)
assert_type(TFRecordDataset("a")[3], bytes)


# Batches
class Example(NamedTuple):
    image: Image
    label: np.int64


def named() -> Iterator[Example]:
    yield Example(np.zeros((2, 2), np.float32), np.int64(1))


assert_type(Dataset.range(3).batch(2), Dataset[npt.NDArray[Any]])
assert_type(TFRecordDataset("a").batch(2), Dataset[npt.NDArray[Any]])
assert_type(Dataset.from_generator(numbers).batch(2), Dataset[npt.NDArray[Any]])
assert_type(Dataset.from_tensors(np.zeros(3, np.float32)).batch(2), Dataset[Image])
assert_type(Dataset.from_tensors(np.zeros(3, np.float32)).padded_batch(2).padded_batch(2), Dataset[Image])
assert_type(Dataset.from_generator(examples).batch(2), Dataset[tuple[Image, npt.NDArray[Any]]])
assert_type(Dataset.from_generator(examples).padded_batch(2), Dataset[tuple[Image, npt.NDArray[Any]]])
assert_type(Dataset.from_generator(named).batch(2), Dataset[Example])
assert_type(Dataset.from_generator(named).batch(2).map(lambda image, label: label), Dataset[np.int64])
assert_type(Dataset.from_tensor_slices({"x": [1]}).batch(2), Dataset[dict[str, Any]])
assert_type(TarDataset("a").batch(2), Dataset[dict[str, Any]])
assert_type(CsvDataset("a", [bytes, bytes, bytes]).batch(2), Dataset[Any])
assert_type(Dataset.zip(TFRecordDataset("a"), Dataset.range(3)).batch(2), Dataset[tuple[Any, Any]])
assert_type(Dataset.from_tensors(RaggedTensor.from_rows([[1], []])).batch(2), Dataset[RaggedTensor])

# Elements of unknown type take any function, and give any batch.
unknown = Dataset.from_tensor_slices(np.zeros((3, 2)))
assert_type(unknown, Dataset[Any])
assert_type(unknown.map(lambda image, label: 1), Dataset[int])
assert_type(unknown.map(length), Dataset[int])
assert_type(unknown.batch(2), Dataset[Any])
assert_type(unknown.padded_batch(2), Dataset[Any])
assert_type(CsvDataset("a", [bytes, bytes]).map(lambda name, price: 1), Dataset[int])

# A function with another number of parameters, or other types, is an error.
Dataset.from_generator(examples).map(lambda image, label, weight: image)  # type: ignore[arg-type, misc]
Dataset.range(3).map(length)  # type: ignore[arg-type]

# Features
fixed = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature([2, 2], np.int64, default_value=[[0, 1]])}
mixed = {
    "image": io.FixedLenFeature([], bytes),
    "boxes": io.VarLenFeature(np.float32),
    "words": io.RaggedFeature("int64", partitions=[io.RaggedFeature.RowLengths("sentences")]),
    "frames": io.FixedLenSequenceFeature((4,), np.float32, allow_missing=True),
}
assert_type(TFRecordDataset("a").map(io.ExampleParser(fixed)), Dataset[dict[str, Any]])
assert_type(TFRecordDataset("a").map(io.ExampleParser(mixed)).batch(2), Dataset[dict[str, Any]])
assert_type(io.parse_single_example(b"", mixed), dict[str, Any])
assert_type(io.parse_example([b""], {"x": io.VarLenFeature(np.int64)}), dict[str, Any])

# Options: a misspelt one is an error.
options = Options()
options.deterministic = False
options.autotune.ram_budget = 1 << 30
options.determinstic = False  # type: ignore[attr-defined]
options.autotune.ram_buget = 1 << 30  # type: ignore[attr-defined]
TFRecordDataset("a").map(length, num_paralel_calls=2)  # type: ignore[call-arg]
Dataset.range(3).shuffle(3, sede=1)  # type: ignore[call-arg]

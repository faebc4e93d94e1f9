"""What is scaled: pipelines of one library that grow along one axis, and the work that each point of them does.

A case is given its size and a folder that ``make_data`` filled. It first makes its data, and returns what builds the
pipeline; that second part is timed. Functions import their library themselves, so that a process holds only one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Build = Callable[[], Iterable[Any]]

BATCH = 1000
ELEMENTS = [10**4, 10**5, 10**6, 10**7, 10**8]
FILES = [1, 10, 100, 1000, 10_000]
DEPTHS = [1, 5, 20, 50, 100, 200]
WIDTHS = [1, 10, 100, 1000]
RECORDS = 10**6
"""Of all files together, where it stays the same; 100 for each of the most files."""
RECORD = b"abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class Case:
    """A line of the plots.

    Args:
        axis: what grows: ``"elements"``, ``"files"``, ``"depth"`` or ``"width"``.
        title: the chain, in words.
        sizes: the points.
        make: is given a size and the folder, makes the data, and returns what builds the pipeline.
        count: the elements that one pass runs through, by size.
        per: how many steps each of them is, by size; what a cost is divided by, beside the elements.
        library: whose pipeline it is.
    """

    axis: str
    title: str
    sizes: list[int]
    make: Callable[[int, Path], Build]
    count: Callable[[int], int]
    per: Callable[[int], int] = lambda _: 1
    library: str = "dataset"

    @property
    def name(self) -> str:
        return f"{self.axis}: {self.title}{'' if self.library == 'dataset' else f' ({self.library})'}"


CASES: list[Case] = []


def case(axis: str, title: str, sizes: list[int], count: Callable[[int], int], **more: Any) -> Callable[[Any], Any]:
    """Register a function as the ``make`` of a case."""

    def register(make: Callable[[int, Path], Build]) -> Callable[[int, Path], Build]:
        CASES.append(Case(axis, title, sizes, make, count, **more))
        return make

    return register


def itself(size: int) -> int:
    return size


def always(count: int) -> Callable[[int], int]:
    return lambda _: count


def plus_one(x):
    return x + 1


def one_by_one(x):
    """What no rule can run on columns: a call of int(), and a branch."""
    return int(x) + 1 if x >= 0 else 0


# More elements


@case("elements", "range -> map(x + 1) -> batch", ELEMENTS, itself)
def range_map_batch(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: Dataset.range(size).map(plus_one).batch(BATCH)


@case("elements", "range -> shuffle(10,000) -> batch", ELEMENTS, itself)
def range_shuffle_batch(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: Dataset.range(size).shuffle(10_000).batch(BATCH)


@case("elements", "int32 array -> shuffle(10,000) -> batch", ELEMENTS, itself)
def array_shuffle_batch(size: int, folder: Path) -> Build:
    from dataset import Dataset

    array = np.arange(size, dtype=np.int32)
    return lambda: Dataset.from_tensor_slices(array).shuffle(10_000).batch(BATCH)


@case("elements", "uint8 array -> shuffle(all) -> batch", ELEMENTS, itself)
def array_global_shuffle_batch(size: int, folder: Path) -> Build:
    from dataset import Dataset

    array = np.arange(size, dtype=np.uint8)
    return lambda: Dataset.from_tensor_slices(array).shuffle(None).batch(BATCH)


@case("elements", "range -> map(opaque) -> batch", ELEMENTS[:3], itself)
def range_opaque_batch(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: Dataset.range(size).map(one_by_one).batch(BATCH)


@case("elements", "range -> map(x + 1) -> batch", ELEMENTS[:3], itself, library="tf.data")
def tf_range_map_batch(size: int, folder: Path) -> Build:
    import tensorflow as tf

    calls = tf.data.AUTOTUNE
    return lambda: tf.data.Dataset.range(size).map(plus_one, num_parallel_calls=calls).batch(BATCH).prefetch(calls)


# More files


def tfrecords(records: int) -> bytes:
    """A TFRecord file of equal records, checksums included."""
    from crc32c import crc32c

    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(RECORD))
    return (length + masked(length) + RECORD + masked(RECORD)) * records


def lines(records: int) -> bytes:
    """A text file of equal lines."""
    return (RECORD + b"\n") * records


def make_data(folder: Path) -> None:
    """Write the files of all sizes: ``same`` have equally many records together, ``more`` equally many each."""
    for suffix, content in ("tfrecord", tfrecords), ("txt", lines):
        for count in FILES:
            of_each = content(RECORDS // count)
            (folder / "same" / str(count)).mkdir(parents=True, exist_ok=True)
            for index in range(count):
                path_of(folder, "same", count, index, suffix).write_bytes(of_each)


def path_of(folder: Path, kind: str, count: int, index: int, suffix: str) -> Path:
    """One of ``count`` files. Equally many records each have the files of which there are most."""
    return folder / "same" / str(count if kind == "same" else FILES[-1]) / f"{index:05d}.{suffix}"


def paths(folder: Path, kind: str, count: int, suffix: str) -> list[str]:
    return [str(path_of(folder, kind, count, index, suffix)) for index in range(count)]


def all_records(files: int) -> int:
    return RECORDS


def records_in_each(files: int) -> int:
    return files * (RECORDS // FILES[-1])


@case("files", "TFRecordDataset(files) -> batch, 1,000,000 records", FILES, all_records)
def tfrecord_same(size: int, folder: Path) -> Build:
    from dataset import TFRecordDataset

    files = paths(folder, "same", size, "tfrecord")
    return lambda: TFRecordDataset(files).batch(BATCH)


@case("files", "interleave(TFRecordDataset) -> batch, 1,000,000 records", FILES, all_records)
def interleave_same(size: int, folder: Path) -> Build:
    from dataset import Dataset, TFRecordDataset

    files = paths(folder, "same", size, "tfrecord")
    return lambda: Dataset.from_tensor_slices(files).interleave(TFRecordDataset).batch(BATCH)


@case("files", "list_files -> interleave(AUTOTUNE) -> shuffle -> batch, 1,000,000 records", FILES, all_records)
def listed_same(size: int, folder: Path) -> Build:
    from dataset import AUTOTUNE, Dataset, TFRecordDataset

    pattern = str(folder / "same" / str(size) / "*.tfrecord")
    return lambda: (
        Dataset.list_files(pattern)
        .interleave(TFRecordDataset, num_parallel_calls=AUTOTUNE)
        .shuffle(10_000)
        .batch(BATCH)
    )


@case("files", "TextLineDataset(files) -> batch, 1,000,000 lines", FILES, all_records)
def text_same(size: int, folder: Path) -> Build:
    from dataset import TextLineDataset

    files = paths(folder, "same", size, "txt")
    return lambda: TextLineDataset(files).batch(BATCH)


@case("files", "TFRecordDataset(files) -> batch, 100 records in each", FILES, records_in_each)
def tfrecord_more(size: int, folder: Path) -> Build:
    from dataset import TFRecordDataset

    files = paths(folder, "more", size, "tfrecord")
    return lambda: TFRecordDataset(files).batch(100)


@case("files", "TFRecordDataset(files) -> batch, 1,000,000 records", FILES, all_records, library="tf.data")
def tf_tfrecord_same(size: int, folder: Path) -> Build:
    import tensorflow as tf

    files = paths(folder, "same", size, "tfrecord")
    return lambda: tf.data.TFRecordDataset(files).batch(BATCH).prefetch(tf.data.AUTOTUNE)


# Longer chains


def chain(dataset: Any, depth: int, op: Callable[[Any, int], Any]) -> Any:
    for index in range(depth):
        dataset = op(dataset, index)
    return dataset


@case("depth", "map(x + 1)", DEPTHS, always(10**5), per=itself)
def deep_map(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: chain(Dataset.range(10**5), size, lambda dataset, _: dataset.map(plus_one)).batch(BATCH)


@case("depth", "map(opaque)", DEPTHS, always(10**4), per=itself)
def deep_opaque(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: chain(Dataset.range(10**4), size, lambda dataset, _: dataset.map(one_by_one)).batch(BATCH)


def _mixed(dataset: Any, index: int) -> Any:
    """Ops that no rule joins or moves: behind a filter, places are not known."""
    ops = [
        lambda: dataset.filter(lambda x: x >= 0),
        lambda: dataset.skip(1),
        lambda: dataset.map(plus_one),
        lambda: dataset.take(10**6),
        lambda: dataset.enumerate().map(lambda _, x: x),
    ]
    return ops[index % len(ops)]()


@case("depth", "filter, skip, map, take, enumerate in turn", DEPTHS, always(10**5), per=itself)
def deep_mixed(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: chain(Dataset.range(10**5), size, _mixed).batch(BATCH)


@case("depth", "batch and unbatch in turn", DEPTHS, always(10**5), per=itself)
def deep_batches(size: int, folder: Path) -> Build:
    from dataset import Dataset

    def op(dataset: Any, index: int) -> Any:
        return dataset.unbatch() if index % 2 else dataset.batch(100)

    return lambda: chain(Dataset.range(10**5), size - size % 2, op).batch(BATCH)


@case("depth", "map(x + 1)", DEPTHS, always(10**4), per=itself, library="tf.data")
def tf_deep_map(size: int, folder: Path) -> Build:
    import tensorflow as tf

    return lambda: chain(tf.data.Dataset.range(10**4), size, lambda dataset, _: dataset.map(plus_one)).batch(BATCH)


# More inputs


def rows_of(width: int) -> int:
    """Rows of as many components, so that all sizes have as many numbers."""
    return 10**6 // width


@case("width", "zip of ranges -> batch, by component", WIDTHS, rows_of, per=itself)
def wide_zip(size: int, folder: Path) -> Build:
    from dataset import Dataset

    return lambda: Dataset.zip(*(Dataset.range(rows_of(size)) for _ in range(size))).batch(100)


@case("width", "interleave of ranges, all open -> batch", WIDTHS, always(10**6))
def wide_interleave(size: int, folder: Path) -> Build:
    from dataset import Dataset

    each = 10**6 // size
    return lambda: Dataset.range(size).interleave(lambda _: Dataset.range(each), cycle_length=size).batch(BATCH)


@case("width", "sample_from_datasets of ranges -> batch", WIDTHS, always(10**6))
def wide_sample(size: int, folder: Path) -> Build:
    from dataset import Dataset

    each = 10**6 // size
    return lambda: Dataset.sample_from_datasets([Dataset.range(each) for _ in range(size)], seed=1).batch(BATCH)


@case("width", "concatenate of ranges -> batch", WIDTHS, always(10**6))
def wide_concatenate(size: int, folder: Path) -> Build:
    from dataset import Dataset

    def build() -> Any:
        first, *others = (Dataset.range(10**6 // size) for _ in range(size))
        return chain(first, len(others), lambda dataset, index: dataset.concatenate(others[index])).batch(BATCH)

    return build


@case(
    "width", "zip of ranges -> batch, by component", WIDTHS, lambda width: 10**5 // width, per=itself, library="tf.data"
)
def tf_wide_zip(size: int, folder: Path) -> Build:
    import tensorflow as tf

    ranges = tf.data.Dataset.range
    return lambda: tf.data.Dataset.zip(*(ranges(10**5 // size) for _ in range(size))).batch(100)

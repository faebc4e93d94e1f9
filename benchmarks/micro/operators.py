"""Every operator in its shortest chain: what is measured, for test_operators.py; tests/ sees that none is missing.

A chain begins with the cheapest source, ``Dataset.range``, whose own entry says how much of a cost is the source's.
"""

from __future__ import annotations

import collections
import importlib.util
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import dataset
from dataset import AUTOTUNE, Dataset, Options, TensorSpec, io

BATCH = 100
FEATURES = {"image": io.FixedLenFeature((16,), np.float32), "label": io.FixedLenFeature((), np.int64)}


@dataclass(frozen=True)
class Entry:
    """An operator as it is measured.

    Args:
        method: of Dataset; or a class of ``dataset`` that reads files; or in words, what is no operator.
        make: is given a number of elements and the folder that ``prepare`` filled. Returns a dataset, to run through,
            or a function, to be called.
        variant: how it is used, where there are several ways.
        elements: how many; None for those of the files.
        batches: whether it is measured with a ``batch`` behind it, too, as its elements can be stacked: many operators
            then run on columns.
        needs: modules that have to be installed.
    """

    method: str
    make: Callable[[int, Path], Any]
    variant: str = ""
    elements: int | None = 10_000
    batches: bool = True
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.method}, {self.variant}" if self.variant else self.method

    @property
    def can_run(self) -> bool:
        return all(importlib.util.find_spec(module) is not None for module in self.needs)

    def ready(self, elements: int, folder: Path, *, in_batches: bool = False) -> Callable[[], Any]:
        """What is called and timed."""
        made = self.make(elements, folder)
        if not isinstance(made, Dataset):
            return made
        chain = made.batch(BATCH) if in_batches else made
        return lambda: consume(chain)


def consume(elements: Iterable[Any]) -> None:
    """Take everything, as fast as it comes."""
    collections.deque(elements, maxlen=0)


def prepare(folder: Path, elements: int) -> None:
    """Write the files that entries read, each with so many elements."""
    record = {"image": np.arange(16, dtype=np.float32), "label": 3}
    numbers = Dataset.range(elements)
    numbers.write_tfrecord(folder / "numbers.tfrecord", encode=lambda x: b"record %d" % x, progress=False)
    numbers.map(lambda _: record).write_tfrecord(folder / "examples.tfrecord", progress=False)
    numbers.save(folder / "saved")
    (folder / "lines.txt").write_text("".join(f"line {i}\n" for i in range(elements)))
    (folder / "rows.csv").write_text("a,b,c\n" + "".join(f"{i},{i / 7},text\n" for i in range(elements)))
    (folder / "rows.jsonl").write_text("".join(f'{{"a": {i}, "b": {i / 7}}}\n' for i in range(elements)))
    (folder / "skipped.jsonl").write_text("")
    (folder / "fixed.bin").write_bytes(bytes(16 * elements))
    with tarfile.open(folder / "samples.tar", "w") as shard:
        for index in range(elements):
            member = tarfile.TarInfo(f"{index:06d}.txt")
            member.size = 4
            shard.addfile(member, BytesIO(b"text"))
    for index in range(elements // 10):
        (folder / f"part-{index:05d}").write_bytes(b"")
    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa
        from pyarrow import parquet

        columns = {"a": np.arange(elements), "b": np.arange(elements) / 7}
        parquet.write_table(pa.table(columns), folder / "rows.parquet")
        with (
            pa.OSFile(str(folder / "rows.arrow"), "wb") as file,
            pa.ipc.new_file(file, pa.table(columns).schema) as writer,
        ):
            writer.write_table(pa.table(columns))
    if importlib.util.find_spec("simplejpeg") and importlib.util.find_spec("cv2"):
        picture = io.encode_jpeg(np.zeros((32, 32, 3), np.uint8))
        for name in "cat", "dog":
            (folder / "images" / name).mkdir(parents=True)
            for index in range(elements // 200 + 1):
                (folder / "images" / name / f"{index}.jpg").write_bytes(picture)


def token_rows(n):
    """Return rows of 1 to 16 numbers."""
    lengths = np.arange(n) % 16 + 1
    splits = np.concatenate([[0], np.cumsum(lengths)])
    return Dataset.from_tensor_slices(dataset.RaggedTensor(np.zeros(splits[-1], np.int64), splits))


def plus_one(x):
    return x + 1


def opaque(x):
    """What no rule can run on columns."""
    return int(x) + 1 if x >= 0 else 0


@dataset.vectorized
def column_plus_one(column):
    return column + 1


def even(x):
    return x % 2 == 0


def opaque_even(x):
    return int(x) % 2 == 0 if x >= 0 else False


data = np.arange(8)


def rows(n: int) -> Dataset[Any]:
    """Rows of 1 to 8 numbers."""
    return Dataset.from_generator(
        lambda: (data[: 1 + i % 8] for i in range(n)), output_signature=TensorSpec((None,), np.int64)
    )


def filled(chain: Dataset[Any]) -> Dataset[Any]:
    """The same after its first pass, which fills caches."""
    consume(chain)
    return chain


def many(call: Callable[[], Any], times: int) -> Callable[[], None]:
    """What is over so soon that a single call can't be timed."""

    def run() -> None:
        for _ in range(times):
            call()

    return run


def numbers(n: int) -> Dataset[Any]:
    return Dataset.range(n)


def pandas_frame(n: int) -> Any:
    import pandas as pd

    return pd.DataFrame({"a": np.arange(n), "b": np.arange(n) / 7})


def polars_frame(n: int) -> Any:
    import polars as pl

    return pl.DataFrame({"a": np.arange(n), "b": np.arange(n) / 7})


def arrow_table(n: int) -> Any:
    import pyarrow as pa

    return pa.table({"a": np.arange(n), "b": np.arange(n) / 7})


def huggingface(n: int) -> Any:
    import datasets

    return datasets.Dataset.from_dict({"a": np.arange(n), "b": np.arange(n) / 7}).with_format("numpy")


def torch_dataset(n: int) -> Any:
    import torch

    return torch.utils.data.TensorDataset(torch.arange(n))


def deterministic_off() -> Options:
    options = Options()
    options.deterministic = False
    return options


def parse_together(n: int, folder: Path) -> Callable[[], Any]:
    records = next(iter(dataset.TFRecordDataset(str(folder / "examples.tfrecord")).batch(n)))
    return lambda: io.parse_example(records, FEATURES)


def usual(n: int) -> Dataset[Any]:
    """A pipeline for what is asked of pipelines as a whole."""
    return numbers(n).shuffle(1000, seed=1).map(plus_one).batch(BATCH)


def at_half(n: int) -> Any:
    iterator = iter(usual(n))
    iterator.skip(n // BATCH // 2)
    next(iterator)
    return iterator


def open_many(n: int, _: Path) -> Callable[[], Any]:
    chain = usual(1000)
    return many(lambda: iter(chain).close(), n)


def go_on(n: int, _: Path) -> Callable[[], Any]:
    """Begin a pass at a saved state, up to its next element."""
    chain, state = usual(10_000), at_half(10_000).state_dict()

    def run() -> None:
        iterator = iter(chain)
        iterator.load_state_dict(state)
        next(iterator)
        iterator.close()

    return many(run, n)


def text_saved(n: int, folder: Path) -> Callable[[], Any]:
    return lambda: numbers(n).write_tfrecord(folder / "written.tfrecord", encode=lambda x: b"%d" % x, progress=False)


ENTRIES = [
    # Sources
    Entry("range", lambda n, _: numbers(n)),
    Entry("counter", lambda n, _: Dataset.counter().take(n)),
    Entry("random", lambda n, _: Dataset.random(seed=1).take(n)),
    Entry("from_tensors", lambda n, _: Dataset.from_tensors(1).repeat(n)),
    Entry("from_tensor_slices", lambda n, _: Dataset.from_tensor_slices(np.arange(n)), "a scalar"),
    Entry(
        "from_tensor_slices",
        lambda n, _: Dataset.from_tensor_slices({"image": np.zeros((n, 28, 28), np.uint8), "label": np.arange(n)}),
        "a dict with an image",
    ),
    Entry("from_tensor_slices", lambda n, _: Dataset.from_tensor_slices([b"text"] * n), "text"),
    Entry("from_list", lambda n, _: Dataset.from_list([(i, b"text") for i in range(n)])),
    Entry("from_generator", lambda n, _: Dataset.from_generator(lambda: iter(range(n)))),
    Entry(
        "from_generator",
        lambda n, _: Dataset.from_generator(lambda: iter(range(n)), output_signature=TensorSpec((), np.int64)),
        "with a signature",
    ),
    Entry("from_generator", lambda n, _: rows(n), "rows of 1 to 8 numbers", batches=False),
    Entry("from_arrow", lambda n, _: Dataset.from_arrow(arrow_table(n)), needs=("pyarrow",)),
    Entry("from_pandas", lambda n, _: Dataset.from_pandas(pandas_frame(n)), needs=("pandas",)),
    Entry("from_polars", lambda n, _: Dataset.from_polars(polars_frame(n)), needs=("polars", "pyarrow")),
    Entry("from_huggingface", lambda n, _: Dataset.from_huggingface(huggingface(n)), needs=("datasets",)),
    Entry("from_torch", lambda n, _: Dataset.from_torch(torch_dataset(n)), elements=2000, needs=("torch",)),
    # Files
    Entry(
        "TFRecordDataset", lambda _, folder: dataset.TFRecordDataset(str(folder / "numbers.tfrecord")), elements=None
    ),
    Entry("TextLineDataset", lambda _, folder: dataset.TextLineDataset(str(folder / "lines.txt")), elements=None),
    Entry("JsonLinesDataset", lambda _, folder: dataset.JsonLinesDataset(str(folder / "rows.jsonl")), elements=None),
    Entry("from_json_lines", lambda _, folder: Dataset.from_json_lines(str(folder / "rows.jsonl")), elements=None),
    Entry("TarDataset", lambda _, folder: dataset.TarDataset(str(folder / "samples.tar")), elements=None),
    Entry(
        "from_arrow_ipc",
        lambda _, folder: Dataset.from_arrow_ipc(str(folder / "rows.arrow")),
        elements=None,
        needs=("pyarrow",),
    ),
    Entry(
        "skip_records",
        lambda _, folder: dataset.TFRecordDataset(str(folder / "numbers.tfrecord")).skip_records(
            folder / "skipped.jsonl"
        ),
        elements=None,
    ),
    Entry(
        "CsvDataset",
        lambda _, folder: dataset.CsvDataset(str(folder / "rows.csv"), [np.int64, np.float64, b""], header=True),
        elements=None,
    ),
    Entry(
        "FixedLengthRecordDataset",
        lambda _, folder: dataset.FixedLengthRecordDataset(str(folder / "fixed.bin"), 16),
        elements=None,
    ),
    Entry(
        "SqlDataset",
        lambda n, _: dataset.SqlDataset(
            "sqlite",
            ":memory:",
            f"WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT {n}) SELECT x FROM c",  # noqa: S608  # a number
            (np.int64,),
        ),
    ),
    Entry(
        "from_csv",
        lambda _, folder: Dataset.from_csv(str(folder / "rows.csv"), BATCH, num_epochs=1, shuffle=False),
        elements=None,
        batches=False,
    ),
    Entry(
        "from_parquet",
        lambda _, folder: Dataset.from_parquet(str(folder / "rows.parquet")),
        elements=None,
        needs=("pyarrow",),
    ),
    Entry(
        "from_image_folder",
        lambda _, folder: Dataset.from_image_folder(folder / "images", image_size=(32, 32)),
        elements=100,
        needs=("simplejpeg", "cv2"),
    ),
    Entry("list_files", lambda _, folder: Dataset.list_files(str(folder / "part-*"), shuffle=False), elements=1000),
    Entry("load", lambda _, folder: Dataset.load(folder / "saved"), elements=None),
    Entry(
        "map",
        lambda _, folder: dataset.TFRecordDataset(str(folder / "examples.tfrecord")).map(io.ExampleParser(FEATURES)),
        "ExampleParser behind TFRecordDataset",
        elements=None,
    ),
    Entry(
        "io.parse_example",
        parse_together,
        batches=False,
        elements=None,
    ),
    # Functions
    Entry("map", lambda n, _: numbers(n).map(plus_one), "simple arithmetic"),
    Entry("map", lambda n, _: numbers(n).map(opaque), "opaque"),
    Entry("map", lambda n, _: numbers(n).map(column_plus_one), "vectorized"),
    Entry("map", lambda n, _: numbers(n).map(opaque, num_parallel_calls=2), "opaque, 2 calls at once"),
    Entry("random_map", lambda n, _: numbers(n).random_map(lambda rng, x: x + rng.random(), seed=1), elements=2000),
    Entry("scan", lambda n, _: numbers(n).scan(np.int64(0), lambda total, x: (total + x, total + x))),
    Entry("select", lambda n, _: Dataset.zip({"a": numbers(n), "b": numbers(n)}).select("a")),
    Entry("filter", lambda n, _: numbers(n).filter(even), "simple arithmetic"),
    Entry("filter", lambda n, _: numbers(n).filter(opaque_even), "opaque"),
    Entry("take_while", lambda n, _: numbers(n).take_while(lambda x: x >= 0)),
    Entry("flat_map", lambda n, _: numbers(n // 100).flat_map(lambda _: numbers(100)), "100 elements each"),
    Entry("flat_map", lambda n, _: numbers(n).flat_map(lambda _: numbers(1)), "1 element each", elements=500),
    Entry("interleave", lambda n, _: numbers(n // 100).interleave(lambda _: numbers(100)), "100 elements each"),
    Entry(
        "interleave",
        lambda n, _: numbers(n // 100).interleave(lambda _: numbers(100), num_parallel_calls=2),
        "100 elements each, 2 calls at once",
    ),
    Entry(
        "group_by_window",
        lambda n, _: numbers(n).group_by_window(lambda x: x % 2, lambda _, window: window.batch(100), 100),
    ),
    Entry(
        "group_by_reducer",
        lambda n, _: numbers(n).group_by_reducer(
            lambda x: x % (n // 2),
            dataset.Reducer(lambda _: 0, lambda state, x: state + x, lambda state: state),
        ),
    ),
    Entry(
        "rejection_resample",
        lambda n, _: numbers(n).rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5], seed=1),
    ),
    # Order and number
    Entry("take", lambda n, _: numbers(2 * n).take(n)),
    Entry("skip", lambda n, _: numbers(2 * n).skip(n)),
    Entry("skip", lambda n, _: numbers(n).filter(lambda x: x >= 0).skip(10), "behind a filter"),
    Entry("shard", lambda n, _: numbers(2 * n).shard(2, 0)),
    Entry("split", lambda n, _: numbers(2 * n).split([0.5, 0.5], seed=1)[0]),
    Entry("shard_by_process", lambda n, _: numbers(2 * n).shard_by_process(rank=0, world_size=2)),
    Entry("repeat", lambda n, _: numbers(n // 10).repeat(10)),
    Entry("shuffle", lambda n, _: numbers(n).shuffle(1000, seed=1), "a buffer of 1,000"),
    Entry("shuffle", lambda n, _: numbers(n).filter(lambda x: x >= 0).shuffle(1000, seed=1), "behind a filter"),
    Entry("shuffle", lambda n, _: numbers(n).shuffle(None, seed=1), "all"),
    Entry("shuffle", lambda n, _: numbers(n).shuffle(1000, seed=1, clump=16), "clumps of 16"),
    Entry("enumerate", lambda n, _: numbers(n).enumerate()),
    Entry("unique", lambda n, _: numbers(n).unique()),
    Entry(
        "pad_to_cardinality",
        lambda n, _: Dataset.from_tensor_slices({"x": np.arange(n - n // 10)}).pad_to_cardinality(n),
    ),
    Entry("assert_cardinality", lambda n, _: numbers(n).assert_cardinality(n)),
    Entry("ignore_errors", lambda n, _: numbers(n).ignore_errors()),
    Entry("with_options", lambda n, _: numbers(n).with_options(deterministic_off())),
    # Several datasets
    Entry("zip", lambda n, _: Dataset.zip(numbers(n), numbers(n))),
    Entry("concatenate", lambda n, _: numbers(n // 2).concatenate(numbers(n - n // 2))),
    Entry(
        "choose_from_datasets",
        lambda n, _: Dataset.choose_from_datasets([numbers(n), numbers(n)], numbers(n).map(lambda x: x % 2)),
    ),
    Entry(
        "sample_from_datasets", lambda n, _: Dataset.sample_from_datasets([numbers(n // 2), numbers(n // 2)], seed=1)
    ),
    Entry(
        "sample_from_datasets",
        lambda n, _: Dataset.sample_from_datasets([numbers(n // 2), numbers(n // 2)], exact=True),
        "exact",
    ),
    # Batches
    Entry("batch", lambda n, _: numbers(n).batch(BATCH), batches=False),
    Entry(
        "batch",
        lambda n, _: Dataset.from_tensor_slices(np.zeros((n, 28, 28), np.uint8)).batch(BATCH),
        "images",
        batches=False,
    ),
    Entry("batch", lambda n, _: numbers(n).batch(BATCH, num_parallel_calls=2), "2 at once", batches=False),
    Entry("padded_batch", lambda n, _: rows(n).padded_batch(BATCH), batches=False),
    Entry("ragged_batch", lambda n, _: rows(n).ragged_batch(BATCH), batches=False),
    Entry("sparse_batch", lambda n, _: rows(n).sparse_batch(BATCH, [8]), batches=False),
    Entry("rebatch", lambda n, _: numbers(n).batch(BATCH).rebatch(64), batches=False),
    Entry("unbatch", lambda n, _: numbers(n).batch(BATCH).unbatch()),
    Entry(
        "bucket_by_sequence_length",
        lambda n, _: rows(n).bucket_by_sequence_length(len, [3, 6], [BATCH, BATCH, BATCH]),
        batches=False,
    ),
    Entry("pack", lambda n, _: token_rows(n).pack(64), batches=False),
    Entry("concat_split", lambda n, _: token_rows(n).concat_split(64), batches=False),
    Entry("batch_by_tokens", lambda n, _: token_rows(n).batch_by_tokens(1024), batches=False),
    Entry("sliding_window", lambda n, _: numbers(n).sliding_window(BATCH, BATCH), batches=False),
    Entry("window", lambda n, _: numbers(n).window(BATCH), batches=False),
    Entry("window", lambda n, _: numbers(n).window(10).flat_map(lambda window: window), "and flat_map", elements=2000),
    # How it runs
    Entry("cache", lambda n, _: filled(numbers(n).cache()), "in memory, filled"),
    Entry("cache", lambda n, _: lambda: consume(numbers(n).cache()), "in memory, being filled", batches=False),
    Entry("cache", lambda n, folder: filled(numbers(n).cache(str(folder / f"cache-{n}"))), "in files, filled"),
    Entry("snapshot", lambda n, folder: filled(numbers(n).snapshot(folder / "snapshot"))),
    Entry("prefetch", lambda n, _: numbers(n).prefetch(10), "single elements"),
    Entry("prefetch", lambda n, _: numbers(n).batch(BATCH).prefetch(AUTOTUNE), "batches", batches=False),
    # What it gives
    Entry("reduce", lambda n, _: lambda: numbers(n).reduce(np.int64(0), lambda total, x: total + x), batches=False),
    Entry("save", lambda n, folder: lambda: numbers(n).save(folder / "again"), batches=False),
    Entry("write_tfrecord", text_saved, batches=False),
    Entry(
        "get_single_element",
        lambda n, _: many(Dataset.from_tensors(1).get_single_element, n),
        batches=False,
        elements=20,
    ),
    Entry(
        "element by number", lambda n, _: many(lambda: numbers(1000).map(plus_one)[500], n), batches=False, elements=20
    ),
    # A pipeline as a whole: per call
    Entry("construction", lambda n, _: many(lambda: usual(1000), n), batches=False, elements=100),
    Entry(
        "iterator construction",
        open_many,
        batches=False,
        elements=100,
    ),
    Entry("first batch", lambda n, _: many(lambda: next(iter(usual(1000))), n), batches=False, elements=20),
    Entry("state_dict", lambda n, _: many(at_half(10_000).state_dict, n), batches=False, elements=20),
    Entry("load_state_dict and the next element", go_on, batches=False, elements=5),
    Entry("explain", lambda n, _: many(usual(1000).explain, n), batches=False, elements=20),
]

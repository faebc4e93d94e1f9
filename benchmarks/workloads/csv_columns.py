"""CSV of 8 columns, numbers and text -> batch(1024), by columns.

Left out: grain, webdataset and spdl, which have no reader of CSV; torch and torchdata.nodes have none either, and with
the module csv they would be the loop by hand. mlx-data gives every field as text, which is not the same work.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, cache_of_huggingface, read_through, start_ray

ROWS = 600_000
BATCH = 1024
DTYPES = {
    "a": np.int64,
    "b": np.int64,
    "c": np.int64,
    "d": np.float64,
    "e": np.float64,
    "f": np.float32,
    "g": str,
    "h": str,
}
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon longer text", "z", "some words here"]


def make_data(folder: Path, scale: float) -> None:
    """A header, then rows without quotes or empty fields."""
    count = int(ROWS * scale)
    rng = np.random.default_rng(0)
    with (folder / "rows.csv").open("w") as file:
        file.write(",".join(DTYPES) + "\n")
        for start in range(0, count, 10_000):
            rows = min(10_000, count - start)
            columns = [
                range(start, start + rows),
                rng.integers(-1000, 1000, rows).tolist(),
                rng.integers(0, 2**40, rows).tolist(),
                [f"{x:.4f}" for x in rng.normal(size=rows)],
                map(repr, rng.normal(size=rows).tolist()),
                [f"{x:.2f}" for x in rng.random(rows) * 1000],
                [WORDS[i] for i in rng.integers(0, len(WORDS), rows)],
                [f"{WORDS[i]}{n}" for n, i in enumerate(rng.integers(0, len(WORDS), rows))],
            ]
            file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    (folder / "count").write_text(str(count))


def columns_of(batch: Any) -> list[Any]:
    return [batch[name] for name in DTYPES] if hasattr(batch, "keys") else list(batch)


def digest(batch: Any) -> int:
    """The sum of the CRCs of the rows, floats to 6 places: not all parsers round the last bit rightly."""
    texts = []
    for column, (name, dtype) in zip(columns_of(batch), DTYPES.items(), strict=True):
        values = np.asarray(column)
        if dtype is str:
            texts.append([text.decode() if isinstance(text, bytes) else str(text) for text in values.tolist()])
        else:
            assert values.dtype == dtype, f"column {name} is {values.dtype}"
            scaled = values if dtype is np.int64 else np.rint(values.astype(np.float64) * 1e6).astype(np.int64)
            texts.append(map(str, scaled.tolist()))
    return sum(zlib.crc32(",".join(row).encode()) for row in zip(*texts, strict=True))


WORKLOAD = Workload(
    title="CSV of 8 columns -> batch(1024), by columns",
    make_data=make_data,
    count=lambda batch: len(columns_of(batch)[0]),
    digest=digest,
    unit="rows",
    notes="Text is bytes or str, depending on the library. All are given the dtypes.",
)


def dtypes_of_dataset() -> list[Any]:
    return [bytes if dtype is str else dtype for dtype in DTYPES.values()]


@WORKLOAD.runner("dataset", settings="from_csv with its default prefetch; text as bytes")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    defaults = dtypes_of_dataset()
    return Dataset.from_csv(folder / "rows.csv", BATCH, column_defaults=defaults, num_epochs=1, shuffle=False)


@WORKLOAD.runner("dataset, CsvDataset", settings="CsvDataset -> batch; text as bytes")
def dataset_rows(folder: Path) -> Pipeline:
    from dataset import CsvDataset

    return CsvDataset(folder / "rows.csv", dtypes_of_dataset(), header=True).batch(BATCH)


@WORKLOAD.runner("dataset, CsvDataset, prefetch", settings="CsvDataset -> batch -> prefetch(AUTOTUNE); text as bytes")
def dataset_rows_prefetch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, CsvDataset

    return CsvDataset(folder / "rows.csv", dtypes_of_dataset(), header=True).batch(BATCH).prefetch(AUTOTUNE)


def dtypes_of_tf() -> list[Any]:
    import tensorflow as tf

    return [tf.string if dtype is str else tf.as_dtype(dtype) for dtype in DTYPES.values()]


@WORKLOAD.runner(
    "tf.data",
    settings="make_csv_dataset with its default num_parallel_reads and prefetch; text as bytes",
    source="https://www.tensorflow.org/tutorials/load_data/csv#tfdata_csv_files",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    path = str(folder / "rows.csv")
    rows = tf.data.experimental.make_csv_dataset(
        path, BATCH, column_defaults=dtypes_of_tf(), num_epochs=1, shuffle=False
    )
    return Again(rows.as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, decode_csv",
    settings="TextLineDataset with a buffer of 8 MiB, decode_csv on batches of lines, map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/tutorials/load_data/csv#tfiodecode_csv",
)
def tf_data_lines(folder: Path) -> Pipeline:
    import tensorflow as tf

    dtypes = dtypes_of_tf()
    defaults = [tf.constant([], dtype) for dtype in dtypes]
    lines = tf.data.TextLineDataset(str(folder / "rows.csv"), buffer_size=8 << 20).skip(1).batch(BATCH)
    rows = lines.map(lambda batch: tf.io.decode_csv(batch, defaults), num_parallel_calls=tf.data.AUTOTUNE)
    return Again(rows.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "pandas, chunks",
    settings="read_csv(chunksize=1024), dtypes given, the C engine, whose floats are occasionally off by one bit; str",
    source="https://pandas.pydata.org/docs/user_guide/io.html#iterating-through-files-chunk-by-chunk",
)
def pandas(folder: Path) -> Pipeline:
    import pandas as pd

    return Again(lambda: pd.read_csv(folder / "rows.csv", dtype=DTYPES, chunksize=BATCH))


@WORKLOAD.runner(
    "pandas, large chunks",
    settings="read_csv(chunksize=65536), each chunk sliced into batches of 1024",
    source="https://pandas.pydata.org/docs/user_guide/io.html#iterating-through-files-chunk-by-chunk",
)
def pandas_large(folder: Path) -> Pipeline:
    import pandas as pd

    def epoch() -> Iterator[dict[str, np.ndarray]]:
        for chunk in pd.read_csv(folder / "rows.csv", dtype=DTYPES, chunksize=64 * BATCH):
            columns = {name: chunk[name].to_numpy() for name in DTYPES}
            for start in range(0, len(chunk), BATCH):
                yield {name: column[start : start + BATCH] for name, column in columns.items()}

    return Again(epoch)


def features_of_huggingface() -> Any:
    import datasets

    names = {str: "string"}
    return datasets.Features(
        {name: datasets.Value(names.get(dtype) or np.dtype(dtype).name) for name, dtype in DTYPES.items()}
    )


def arrays_of_table(table: Any) -> dict[str, np.ndarray]:
    """The columns of an Arrow table. The format "numpy" would make float32 of float64."""
    return {name: table[name].to_numpy() for name in DTYPES}


@WORKLOAD.runner(
    "HF datasets, Arrow made before",
    settings='converted to Arrow before the clock starts, as usual, so no CSV is read; format "arrow", to_numpy',
    source="https://huggingface.co/docs/datasets/tabular_load#csv-files",
)
def huggingface(folder: Path) -> Pipeline:
    import datasets

    cache, features = cache_of_huggingface(folder), features_of_huggingface()
    path = str(folder / "rows.csv")
    rows = datasets.load_dataset("csv", data_files=path, split="train", cache_dir=cache, features=features)
    rows = rows.with_format("arrow")
    return Again(lambda: map(arrays_of_table, rows.iter(BATCH)))


@WORKLOAD.runner(
    "HF datasets, streaming",
    settings='streaming=True: reads the CSV itself in every pass; with_format("arrow"), to_numpy',
    source="https://huggingface.co/docs/datasets/stream",
)
def huggingface_streaming(folder: Path) -> Pipeline:
    import datasets

    features, path = features_of_huggingface(), str(folder / "rows.csv")
    rows = datasets.load_dataset("csv", data_files=path, split="train", streaming=True, features=features)
    rows = rows.with_format("arrow")
    return Again(lambda: map(arrays_of_table, rows.iter(BATCH)))


@WORKLOAD.runner(
    "ray.data",
    settings="read_csv with pyarrow's ConvertOptions(column_types), 2 cores; str",
    source="https://docs.ray.io/en/latest/data/api/doc/ray.data.read_csv.html",
)
def ray_data(folder: Path) -> Pipeline:
    options = arrow_options()
    rows = start_ray().read_csv(str(folder / "rows.csv"), convert_options=options)
    return Again(lambda: rows.iter_batches(batch_size=BATCH))


def arrow_options() -> Any:
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions

    types = {name: pa.string() if dtype is str else pa.from_numpy_dtype(dtype) for name, dtype in DTYPES.items()}
    return ConvertOptions(column_types=types)


@WORKLOAD.runner("numpy", settings="the module csv, then an array of each column; str")
def loop(folder: Path) -> Pipeline:
    def epoch() -> Iterator[dict[str, np.ndarray]]:
        with (folder / "rows.csv").open(newline="") as file:
            rows = csv.reader(file)
            next(rows)
            for batch in batches_of(rows, BATCH):
                columns = zip(DTYPES.items(), zip(*batch, strict=True), strict=True)
                yield {name: column_of(dtype, texts) for (name, dtype), texts in columns}

    return Again(epoch)


def column_of(dtype: Any, texts: tuple[str, ...]) -> np.ndarray:
    if dtype is str:
        return np.array(texts, object)
    return np.array(list(map(int if dtype is np.int64 else float, texts)), dtype)


@WORKLOAD.limit("page-cache read")
def page_cache(folder: Path) -> int:
    read_through(folder / "rows.csv")
    return int((folder / "count").read_text())


@WORKLOAD.limit("pyarrow.csv.read_csv of the whole file, on all cores: a table, no batches")
def arrow(folder: Path) -> int:
    from pyarrow.csv import read_csv

    return len(read_csv(folder / "rows.csv", convert_options=arrow_options()))

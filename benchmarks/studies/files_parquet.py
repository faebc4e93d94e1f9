"""Parquet in batches of 1024: ours, pyarrow's own batches turned to NumPy, and tf.data over those.

    python benchmarks/studies/files_parquet.py [--runs 9] [--only TEXT]

Rows have eight mixed columns: four of numbers, a bool, a timestamp, a text that repeats and one that does not. tf.data
has no reader for Parquet (tensorflow-io's is not to be had for this version), so it gets its best practicable: a
generator of pyarrow's batches of 1024 rows, prefetched by AUTOTUNE, its text as ``tf.string``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

ROWS = 1_000_000
ROW_GROUP = 100_000
BATCH = 1024
TEXT = ("city", "id")
NUMBERS = ("a", "b", "c", "d", "flag")


def make_data(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    columns = {
        "a": rng.integers(0, 1_000_000, ROWS),
        "b": rng.integers(0, 100, ROWS).astype(np.int32),
        "c": rng.random(ROWS),
        "d": rng.random(ROWS).astype(np.float32),
        "flag": rng.random(ROWS) < 0.5,
        "time": np.arange(ROWS).astype("M8[us]"),
        "city": [f"city {number}" for number in rng.integers(0, 1000, ROWS)],
        "id": [f"row-{number}" for number in range(ROWS)],
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=ROW_GROUP)


def count(batches: Any) -> int:
    rows = sum(len(batch["a"]) for batch in batches)
    assert rows == ROWS
    return rows


def ours(folder: Path, columns: tuple[str, ...] | None) -> int:
    from dataset import Dataset

    return count(Dataset.from_parquet(folder / "rows.parquet", columns).batch(BATCH))


def numpy_batches(folder: Path, columns: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    """With pyarrow's defaults, which are two threads here; text as ``bytes``, as everybody gives it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def array(column: Any) -> Any:
        return (column.cast(pa.binary()) if column.type == pa.string() else column).to_numpy(zero_copy_only=False)

    file = pq.ParquetFile(folder / "rows.parquet")
    for batch in file.iter_batches(BATCH, columns=None if columns is None else list(columns)):
        yield {name: array(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def pyarrow(folder: Path, columns: tuple[str, ...] | None) -> int:
    return count(numpy_batches(folder, columns))


def tf_data(folder: Path, columns: tuple[str, ...] | None) -> int:
    import tensorflow as tf

    def generate() -> Iterator[dict[str, Any]]:
        for batch in numpy_batches(folder, columns):
            if "time" in batch:
                batch["time"] = batch["time"].view(np.int64)  # TensorFlow has no dtype for times
            yield batch

    first = next(generate())
    dtypes = {name: tf.string if name in TEXT else tf.as_dtype(array.dtype) for name, array in first.items()}
    signature = {name: tf.TensorSpec((None,), dtype) for name, dtype in dtypes.items()}
    dataset = tf.data.Dataset.from_generator(generate, output_signature=signature).prefetch(tf.data.AUTOTUNE)
    return count(dataset.as_numpy_iterator())


WORKLOADS = {"8 columns": None, "5 columns of numbers": NUMBERS, "2 columns of text": ("a", *TEXT)}
LIBRARIES = {"dataset": ours, "pyarrow": pyarrow, "tf.data": tf_data}
SUITE = Suite(__doc__, make_data, "rows")


for _name, _columns in WORKLOADS.items():
    for _library, _run in LIBRARIES.items():
        SUITE.workload(f"{_name}, batch({BATCH})", _library)(partial(_run, columns=_columns))


if __name__ == "__main__":
    SUITE.main()

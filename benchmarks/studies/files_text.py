"""Measures the readers of text lines, fixed-length records and SQL rows, beside tf.data's.

    python benchmarks/studies/files_text.py [--runs 9] [--only TEXT]

tf.data has the settings with which it reads fastest: batches made in parallel and a prefetch, both set by its
autotuner, and a read buffer of 8 MiB.
"""

from __future__ import annotations

import gzip
import random
import sqlite3
from pathlib import Path
from typing import Any

from side_by_side import Runner, Suite

LINES = 400_000
LOOPED = 100_000  # elements where one by one is what is measured
ROWS = 100_000
BATCH = 1024
TF_BUFFER_BYTES = 8 << 20


def make_data(folder: Path) -> None:
    chance = random.Random(1)
    lines = [b"%d," % number + chance.randbytes(chance.randrange(10, 40)).hex().encode() for number in range(LINES)]
    text = b"\n".join(lines) + b"\n"
    (folder / "lines.txt").write_bytes(text)
    (folder / "windows.txt").write_bytes(text.replace(b"\n", b"\r\n"))
    (folder / "lines.txt.gz").write_bytes(gzip.compress(text, 6))
    (folder / "few.txt").write_bytes(b"\n".join(lines[:LOOPED]) + b"\n")
    (folder / "records.bin").write_bytes(chance.randbytes(64 * LINES))
    connection = sqlite3.connect(folder / "rows.db")
    connection.execute("CREATE TABLE rows(number INTEGER, weight REAL, name TEXT)")
    rows = ((n, n / 7, f"name {n}") for n in range(ROWS))
    connection.executemany("INSERT INTO rows VALUES(?, ?, ?)", rows)
    connection.commit()
    connection.close()


SUITE = Suite(__doc__, make_data)
workload = SUITE.workload


def count(batches: Any) -> int:
    return sum(len(batch[0]) if isinstance(batch, tuple) else len(batch) for batch in batches)


def text_dataset(name: str, compression: str | None = None) -> Runner:
    def run(folder: Path) -> int:
        import dataset

        return count(dataset.TextLineDataset(folder / name, compression).batch(BATCH))

    return run


def text_tf(name: str, compression: str | None = None) -> Runner:
    def run(folder: Path) -> int:
        import tensorflow as tf

        lines = tf.data.TextLineDataset(str(folder / name), compression, TF_BUFFER_BYTES)
        batches = lines.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE)
        return count(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())

    return run


for _title, _name, _compression in [
    ("TextLineDataset.batch(1024)", "lines.txt", None),
    ("TextLineDataset.batch(1024), lines with \\r\\n", "windows.txt", None),
    ("TextLineDataset.batch(1024), GZIP", "lines.txt.gz", "GZIP"),
]:
    workload(_title, "dataset")(text_dataset(_name, _compression))
    workload(_title, "tf.data")(text_tf(_name, _compression))


LOOP = "for line in TextLineDataset"


@workload(LOOP, "dataset")
def loop_dataset(folder: Path) -> int:
    import dataset

    return sum(1 for _ in dataset.TextLineDataset(folder / "few.txt"))


@workload(LOOP, "tf.data")
def loop_tf(folder: Path) -> int:
    import tensorflow as tf

    lines = tf.data.TextLineDataset(str(folder / "few.txt"), buffer_size=TF_BUFFER_BYTES).prefetch(tf.data.AUTOTUNE)
    return sum(1 for _ in lines.as_numpy_iterator())


RECORDS = "FixedLengthRecordDataset(64).batch(1024)"


@workload(RECORDS, "dataset")
def records_dataset(folder: Path) -> int:
    import dataset

    return count(dataset.FixedLengthRecordDataset(folder / "records.bin", 64).batch(BATCH))


@workload(RECORDS, "tf.data")
def records_tf(folder: Path) -> int:
    import tensorflow as tf

    records = tf.data.FixedLengthRecordDataset(str(folder / "records.bin"), 64, buffer_size=TF_BUFFER_BYTES)
    batches = records.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return count(batches.as_numpy_iterator())


SQL = "SqlDataset(3 columns).batch(1024)"
QUERY = "SELECT number, weight, name FROM rows"


@workload(SQL, "dataset")
def sql_dataset(folder: Path) -> int:
    import numpy as np

    import dataset

    types = (np.int64, np.float64, bytes)
    return count(dataset.SqlDataset("sqlite", folder / "rows.db", QUERY, types).batch(BATCH))


@workload(SQL, "tf.data")
def sql_tf(folder: Path) -> int:
    import tensorflow as tf

    types = (tf.int64, tf.float64, tf.string)
    rows = tf.data.experimental.SqlDataset("sqlite", str(folder / "rows.db"), QUERY, types)
    return count(rows.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


if __name__ == "__main__":
    SUITE.main()

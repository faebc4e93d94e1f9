"""CSV workloads: 8 mixed columns, some fields empty, in batches of 1024.

    python benchmarks/studies/files_csv.py [--runs 9] [--only TEXT]

tf.data has the settings that its documentation recommends, a prefetch at the end set by its autotuner; beside its two
readers of CSV stands the fastest way that it has, lines that ``decode_csv`` takes apart by the batch in parallel calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

ROWS = 200_000
BATCH = 1024
NAMES = list("abcdefgh")
DTYPES = [np.int64] * 3 + [np.float64] * 2 + [np.float32] + [bytes] * 2
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon longer text", "z", "some words here"]


def make_data(folder: Path) -> None:
    """The same rows plain, with quoted text, and with a header."""
    rng = np.random.default_rng(0)

    def some(values: list[str]) -> list[str]:
        return [value if keep else "" for value, keep in zip(values, rng.random(ROWS) >= 0.1, strict=True)]

    columns = [
        list(map(str, range(ROWS))),
        some(list(map(str, rng.integers(-1000, 1000, ROWS)))),
        list(map(str, rng.integers(0, 2**40, ROWS))),
        some([f"{x:.4f}" for x in rng.normal(size=ROWS)]),
        list(map(repr, rng.normal(size=ROWS).tolist())),
        [f"{x:.2f}" for x in rng.random(ROWS) * 1000],
        [WORDS[i] for i in rng.integers(0, len(WORDS), ROWS)],
        some([f"{WORDS[i]}{n}" for n, i in enumerate(rng.integers(0, len(WORDS), ROWS))]),
    ]
    rows = [",".join(row) + "\n" for row in zip(*columns, strict=True)]
    (folder / "plain.csv").write_text("".join(rows))
    (folder / "header.csv").write_text(",".join(NAMES) + "\n" + "".join(rows))
    columns[6] = [f'"{text}, x"' for text in columns[6]]
    columns[7] = ['"' + text.replace("a", '""') + '"' for text in columns[7]]
    (folder / "quoted.csv").write_text("".join(",".join(row) + "\n" for row in zip(*columns, strict=True)))


SUITE = Suite(__doc__, make_data, "rows")
workload = SUITE.workload


def count(batches: Any) -> int:
    """The rows in batches of tuples or dicts."""
    rows = sum(len(batch["a"] if isinstance(batch, dict) else batch[0]) for batch in batches)
    assert rows == ROWS
    return rows


def defaults() -> list[Any]:
    return [b"" if dtype is bytes else dtype(0) for dtype in DTYPES]


def tf_defaults(tf: Any) -> list[Any]:
    return [tf.constant("") if dtype is bytes else tf.constant(0, dtype) for dtype in DTYPES]


def csv_dataset(path: Path) -> int:
    from dataset import CsvDataset

    return count(CsvDataset(str(path), defaults()).batch(BATCH))


def csv_tf(path: Path) -> int:
    import tensorflow as tf

    rows = tf.data.experimental.CsvDataset(str(path), tf_defaults(tf))
    return count(rows.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


def lines_tf(path: Path) -> int:
    import tensorflow as tf

    columns = tf_defaults(tf)
    lines = tf.data.TextLineDataset(str(path)).batch(BATCH)
    rows = lines.map(lambda batch: tf.io.decode_csv(batch, columns), num_parallel_calls=tf.data.AUTOTUNE)
    return count(rows.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


for kind in ("plain", "quoted"):
    title = f"CsvDataset -> batch({BATCH}), {kind}"
    workload(title, "dataset")(lambda folder, kind=kind: csv_dataset(folder / f"{kind}.csv"))
    workload(title, "tf.data")(lambda folder, kind=kind: csv_tf(folder / f"{kind}.csv"))
    workload(title, "tf.data lines")(lambda folder, kind=kind: lines_tf(folder / f"{kind}.csv"))

INFERRED = f"from_csv({BATCH}), types inferred, one epoch"


@workload(INFERRED, "dataset")
def inferred_dataset(folder: Path) -> int:
    from dataset import Dataset

    return count(Dataset.from_csv(str(folder / "header.csv"), BATCH, num_epochs=1, shuffle=False))


@workload(INFERRED, "tf.data")
def inferred_tf(folder: Path) -> int:
    import tensorflow as tf

    made = tf.data.experimental.make_csv_dataset(str(folder / "header.csv"), BATCH, num_epochs=1, shuffle=False)
    return count(made.as_numpy_iterator())


SHUFFLED = f"from_csv({BATCH}), types inferred, shuffled, one epoch"


@workload(SHUFFLED, "dataset")
def shuffled_dataset(folder: Path) -> int:
    from dataset import Dataset

    return count(Dataset.from_csv(str(folder / "header.csv"), BATCH, num_epochs=1))


@workload(SHUFFLED, "tf.data")
def shuffled_tf(folder: Path) -> int:
    import tensorflow as tf

    made = tf.data.experimental.make_csv_dataset(str(folder / "header.csv"), BATCH, num_epochs=1)
    return count(made.as_numpy_iterator())


if __name__ == "__main__":
    SUITE.main()

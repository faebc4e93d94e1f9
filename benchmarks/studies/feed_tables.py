"""Tables into shuffled batches of 1024 NumPy arrays: ours, what the table's own library does, and PyTorch's loader.

    python benchmarks/studies/feed_tables.py [--runs 9] [--only TEXT]

A million rows of eight columns of numbers. pandas shuffles with ``df.sample`` and slices the result; Hugging Face
has shuffled its indices before the clock starts, and iterates in its NumPy format; the DataLoader reads the dataset in
its torch format, a batch by ``__getitems__``, collated to tensors. From a file, Hugging Face's rows lie in chunks of
1000, as it writes them itself. The slow ones are given fewer rows; all is in rows per second.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

ROWS = 1_000_000
BATCH = 1024
SLOW_BATCHES = 40


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    dtypes = (np.int64, np.int32, np.int16, np.float64, np.float64, np.float32, np.float32, np.uint8)
    return {f"c{i}": (rng.random(ROWS) * 100).astype(dtype) for i, dtype in enumerate(dtypes)}


def make_data(folder: Path) -> None:
    import pyarrow as pa

    numbers = pa.table(columns())
    texts = pa.table({"text": [f"review number {i}" for i in range(ROWS)], "label": np.arange(ROWS) % 2})
    for name, table in (("numbers", numbers), ("texts", texts)):
        with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)


def count(batches: Iterable[Any], column: str, at_most: int = ROWS) -> int:
    """Run through batches, up to ``at_most`` rows."""
    rows = 0
    for batch in batches:
        rows += len(batch[column])
        if rows >= at_most:
            break
    return rows


@functools.cache
def frame() -> Any:
    import pandas as pd

    return pd.DataFrame(columns())


@functools.cache
def in_memory() -> Any:
    import datasets
    import pyarrow as pa

    return datasets.Dataset(pa.table(columns()))


@functools.cache
def from_file(folder: Path, name: str) -> Any:
    import datasets

    return datasets.Dataset.from_file(str(folder / f"{name}.arrow"))


SUITE = Suite(__doc__, make_data, "rows")


for _buffer in (10_000, None):
    _name = f"pandas, shuffle({'all' if _buffer is None else _buffer})"

    @SUITE.workload(_name, "dataset")
    def _ours(folder: Path, buffer: int | None = _buffer) -> int:
        from dataset import Dataset

        return count(Dataset.from_pandas(frame()).shuffle(buffer).batch(BATCH), "c0")

    @SUITE.workload(_name, "pandas sample")
    def _sample(folder: Path) -> int:
        """All rows are shuffled, whatever the buffer: pandas has no other way."""
        mixed = frame().sample(frac=1)
        slices = (mixed.iloc[start : start + BATCH] for start in range(0, ROWS, BATCH))
        return count(({name: part[name].to_numpy() for name in part.columns} for part in slices), "c0")


@SUITE.workload("pandas, in order", "dataset")
def _in_order(folder: Path) -> int:
    from dataset import Dataset

    return count(Dataset.from_pandas(frame()).batch(BATCH), "c0")


@SUITE.workload("pandas, in order", "pandas slices")
def _slices(folder: Path) -> int:
    parts = (frame().iloc[start : start + BATCH] for start in range(0, ROWS, BATCH))
    return count(({name: part[name].to_numpy() for name in part.columns} for part in parts), "c0")


def _huggingface(name: str, column: str, *, file: str | None) -> None:
    def source(folder: Path) -> Any:
        return in_memory() if file is None else from_file(folder, file)

    @functools.cache
    def mixed(folder: Path) -> Any:
        return source(folder).shuffle(seed=1).with_format("numpy")

    @SUITE.workload(f"{name}, shuffled", "dataset")
    def _ours(folder: Path) -> int:
        from dataset import Dataset

        return count(Dataset.from_huggingface(source(folder)).shuffle(None).batch(BATCH), column)

    @SUITE.workload(f"{name}, shuffled", "HF numpy")
    def _numpy(folder: Path) -> int:
        return count(mixed(folder).iter(batch_size=BATCH), column, SLOW_BATCHES * BATCH)

    @SUITE.workload(f"{name}, shuffled", "DataLoader")
    def _loader(folder: Path) -> int:
        from torch.utils.data import DataLoader

        loader = DataLoader(source(folder).with_format("torch"), batch_size=BATCH, shuffle=True)
        return count(loader, column, SLOW_BATCHES * BATCH)

    @SUITE.workload(f"{name}, in order", "dataset")
    def _ours_in_order(folder: Path) -> int:
        from dataset import Dataset

        return count(Dataset.from_huggingface(source(folder)).batch(BATCH), column)

    @SUITE.workload(f"{name}, in order", "HF numpy")
    def _numpy_in_order(folder: Path) -> int:
        return count(source(folder).with_format("numpy").iter(batch_size=BATCH), column, SLOW_BATCHES * BATCH)


_huggingface("Hugging Face in memory", "c0", file=None)
_huggingface("Hugging Face from a file", "c0", file="numbers")
_huggingface("Hugging Face, text from a file", "label", file="texts")


if __name__ == "__main__":
    SUITE.main()

"""How fast ``tfrecord info`` and ``verify`` of the command line are, beside a pass of TFRecordDataset and of tf.data.

    python benchmarks/studies/files_commands.py [--runs 7]

All work in one process and take turns. Files are in the page cache. tf.data reads with ``buffer_size`` of 8 MiB, in
batches of 1,000 records and with ``prefetch(AUTOTUNE)``, which is the fastest of the ways in its performance guide.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dataset import TFRecordDataset
from dataset import io as dataset_io
from dataset.commands.main import main as command

SIZES = {"300,000 digits of 826 B": (300_000, 784), "2,000 photos of 100 kB": (2_000, 100_000)}


def make(path: Path, count: int, size: int, compression: str | None) -> None:
    rng = np.random.default_rng(0)
    with dataset_io.TFRecordWriter(path, compression) as writer:
        for i in range(count):
            image = rng.integers(0, 64, size, dtype=np.uint8).tobytes()
            writer.write(dataset_io.encode_example({"image_raw": image, "label": i % 10}))


def runs(path: Path, compression: str | None) -> dict[str, Callable[[], object]]:
    def quietly(*words: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert command(["tfrecord", *words, str(path)]) == 0

    def ours() -> None:
        for _ in TFRecordDataset(str(path), compression).batch(1000):
            pass

    def theirs() -> None:
        records = tf.data.TFRecordDataset(str(path), compression or "", buffer_size=8 << 20)
        for _ in records.batch(1000).prefetch(tf.data.AUTOTUNE):
            pass

    ways = {"verify": lambda: quietly("verify"), "info": lambda: quietly("info"), "TFRecordDataset": ours}
    with contextlib.suppress(ImportError):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        ways["tf.data"] = theirs
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    count = parser.parse_args().runs
    for name, (records, size) in SIZES.items():
        for compression in (None, "GZIP"):
            if compression and size > 1000:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "a.tfrecord"
                make(path, records, size, compression)
                measure(f"{name}{', gzip' if compression else ''}", runs(path, compression), records * size, count)


def measure(name: str, ways: dict[str, Callable[[], object]], size: int, count: int) -> None:
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(count + 1):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[way].append(time.perf_counter() - start)
    medians = {way: statistics.median(found) for way, found in seconds.items()}
    print(name)
    for way, median in medians.items():
        ratio = medians["TFRecordDataset"] / median
        print(f"    {way:16} {size / median / 1e9:6.2f} GB/s   {ratio:5.2f} of TFRecordDataset")


if __name__ == "__main__":
    main()

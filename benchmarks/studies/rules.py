"""Measures what the optimizer's rules are worth: each pipeline with all rules, and with all of them off.

    python benchmarks/studies/rules.py [--runs 11] [--only TEXT]

The two take turns, run by run, in one process; what is printed are the medians, and how many times as fast the
optimized one is, as the median over the pairs. The first pair is a warm-up and not counted. Building and optimizing the
pipeline is part of each run. Below the pipelines that have something to gain stand those that should lose nothing.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dataset
from dataset import AUTOTUNE, Dataset, Options, TFRecordDataset, io

FEATURES = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}
WANTED = {
    "slices.shuffle(10000).batch(128), uint8 28x28": 4.0,
    "slices.shuffle(10000).batch(128), float32 28x28": 4.0,
    "TFRecord.map(ExampleParser).batch(128)": 1.5,
    "TFRecord.map(lambda r: parse_single_example(r, FEATURES)).batch(128)": 1.5,
    "TFRecord.map(parse, decode, scale).batch(128)": 1.5,
    "range.map(x * 2).map(x + 1).filter(even).batch(1000)": 20.0,
    "range.map(x * 2).map(x + 1).filter(odd).batch(1000)": 20.0,
}


def decode(record: bytes) -> tuple[np.ndarray, np.int64]:
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8)
    return image.astype(np.float32) / 255, example["label"]


def make_data(folder: Path) -> None:
    """MNIST-shaped arrays, and the same as a TFRecord file of Examples."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60_000, 28, 28), np.uint8)
    labels = rng.integers(0, 10, len(images))
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    with io.TFRecordWriter(folder / "mnist.tfrecord") as writer:
        for image, label in zip(images, labels, strict=True):
            writer.write(io.encode_example({"image": image.tobytes(), "label": label}))


def opaque(x: Any) -> Any:
    return max(x, 7) + 1


def picture(x: Any) -> Any:
    return np.full((224, 224, 3), x % 255, np.uint8)


def as_float(image: Any) -> Any:
    return image.astype(np.float32) if image.ndim else image


def scaled(image: Any) -> Any:
    return image / np.float32(255) if image.ndim else image


@dataset.vectorized
def decoded(example: dict[str, Any]) -> tuple[Any, Any]:
    images = io.decode_raw(example["image"], np.uint8).astype(np.float32)
    images /= 255
    return images, example["label"]


def cases(folder: Path) -> dict[str, Callable[[], Dataset[Any]]]:
    images, labels = np.load(folder / "images.npy"), np.load(folder / "labels.npy")
    floats = images.astype(np.float32)
    small = (images[:1000], labels[:1000])
    records = functools.partial(TFRecordDataset, folder / "mnist.tfrecord")
    numbers = functools.partial(Dataset.range, 1_000_000)
    files = Dataset.from_tensors(str(folder / "mnist.tfrecord")).repeat(2)

    def read_one(path: bytes) -> Dataset[Any]:
        return TFRecordDataset(path).map(decode)

    return {
        "slices.shuffle(10000).batch(128), uint8 28x28": lambda: (
            Dataset.from_tensor_slices((images, labels)).shuffle(10_000).batch(128)
        ),
        "slices.shuffle(10000).batch(128), float32 28x28": lambda: (
            Dataset.from_tensor_slices((floats, labels)).shuffle(10_000).batch(128)
        ),
        "slices.shuffle(60000).batch(128), uint8 28x28": lambda: (
            Dataset.from_tensor_slices((images, labels)).shuffle(60_000).batch(128)
        ),
        "slices(1000).shuffle(1000).repeat(20).batch(128)": lambda: (
            Dataset.from_tensor_slices(small).shuffle(1000).repeat(20).batch(128)
        ),
        "slices.shard(8, 3).shuffle(1000).batch(128)": lambda: (
            Dataset.from_tensor_slices((images, labels)).shard(8, 3).shuffle(1000).batch(128)
        ),
        "slices.batch(128).skip(400)": lambda: Dataset.from_tensor_slices((images, labels)).batch(128).skip(400),
        "TFRecord.map(ExampleParser).batch(128)": lambda: records().map(io.ExampleParser(FEATURES)).batch(128),
        "TFRecord.map(lambda r: parse_single_example(r, FEATURES)).batch(128)": lambda: (
            records().map(lambda record: io.parse_single_example(record, FEATURES)).batch(128)
        ),
        "TFRecord.map(parse, decode, scale).batch(128)": lambda: records().map(decode).batch(128),
        "files.interleave(TFRecord.map(parse, decode, scale), AUTOTUNE).batch(128)": lambda: files.interleave(
            read_one, num_parallel_calls=AUTOTUNE
        ).batch(128),
        "files.flat_map(TFRecord.map(parse, decode, scale)).batch(128)": lambda: files.flat_map(read_one).batch(128),
        "range.map(x * 2).map(x + 1).filter(even).batch(1000)": lambda: (
            numbers().map(lambda x: x * 2).map(lambda x: x + 1).filter(lambda x: x % 2 == 0).batch(1000)
        ),
        "range.map(x * 2).map(x + 1).filter(odd).batch(1000)": lambda: (
            numbers().map(lambda x: x * 2).map(lambda x: x + 1).filter(lambda x: x % 2 == 1).batch(1000)
        ),
        "range.map(x + 1), one by one": lambda: numbers().take(100_000).map(lambda x: x + 1),
        "slices.map(image / 255).batch(128), uint8 28x28": lambda: (
            Dataset.from_tensor_slices(images).map(lambda image: image / 255).batch(128)
        ),
        "range.map(picture).map(as_float).map(scaled).batch(32), 224x224x3": lambda: (
            Dataset.range(192).map(picture).map(as_float).map(scaled).batch(32)
        ),
        "range(10).repeat(10000).batch(1000)": lambda: Dataset.range(10).repeat(10_000).batch(1000),
        "range and six noops, batch(100)": lambda: (
            numbers().take(-1).skip(0).repeat(1).prefetch(0).shuffle(1).shard(1, 0).batch(100)
        ),
        # Nothing to gain, and nothing to lose.
        "range.batch(100)": lambda: numbers().batch(100),
        "range.map(opaque).batch(1000)": lambda: numbers().take(200_000).map(opaque).batch(1000),
        "range.map(opaque).map(opaque).filter(bool).batch(100)": lambda: (
            numbers().take(200_000).map(opaque).map(opaque).filter(bool).batch(100)
        ),
        "slices.batch(128)": lambda: Dataset.from_tensor_slices((images, labels)).batch(128),
        "TFRecord.batch(128)": lambda: records().batch(128),
        "TFRecord.shuffle(2000).map(ExampleParser).map(vectorized).batch(128)": lambda: (
            records().shuffle(2000).map(io.ExampleParser(FEATURES)).map(decoded).batch(128)
        ),
        "TFRecord.shuffle(5000).repeat(3).batch(128)": lambda: records().shuffle(5000).repeat(3).batch(128),
        "range.interleave(range(100)).batch(100)": lambda: (
            Dataset.range(1000).interleave(lambda _: Dataset.range(100), cycle_length=8).batch(100)
        ),
    }


def seconds(make: Callable[[], Dataset[Any]], *, optimized: bool) -> float:
    options = Options()
    options.optimization.enabled = optimized
    started = time.perf_counter()
    for _ in make().with_options(options):
        pass
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11, help="counted pairs of runs")
    parser.add_argument("--only", default="", help="only pipelines with this text in their name")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}, {cores} cores\n")
    print(f"{'':<72}{'off, ms':>10}{'on, ms':>10}{'ratio':>8}{'wanted':>8}")
    with tempfile.TemporaryDirectory() as name:
        make_data(Path(name))
        for title, make in cases(Path(name)).items():
            if arguments.only in title:
                report(title, make, arguments.runs)


def report(title: str, make: Callable[[], Dataset[Any]], runs: int) -> None:
    pairs = [(seconds(make, optimized=False), seconds(make, optimized=True)) for _ in range(runs + 1)][1:]
    off, on = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(plain / quick for plain, quick in pairs)
    wanted = f"{WANTED[title]:.1f}" if title in WANTED else ""
    print(f"{title:<72}{off:>10.1f}{on:>10.1f}{ratio:>8.2f}{wanted:>8}", flush=True)


if __name__ == "__main__":
    main()

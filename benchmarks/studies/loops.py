"""Measures pipelines of one Python function or generator per element beside plain loops that do the same.

    python benchmarks/studies/loops.py [--rounds 7] [--only TEXT] [--tf-data]

Only the function of the case "arrays.map(scale)" can be computed on columns; the others are called for each element.
The pipeline and the loop take turns, epoch by epoch, in one process. The study prints the medians in microseconds per
element, and the ratio of the pipeline's time to that of the loop, as the median over the pairs. The first pair is a
warm-up and not counted. ``--tf-data`` adds the form in tf.data where it can run the same code.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dataset import AUTOTUNE, Dataset, TensorSpec, TextLineDataset

COUNT = 20_000
BATCH = 64
BOUNDARIES = [16, 32]
WINDOW = 10

Batches = Callable[[], Iterable[Any]]


class Case(NamedTuple):
    """A pipeline, and iterables over the same batches."""

    pipeline: Dataset[Any]
    loop: Batches
    tf_data: Batches | None = None


def batched(elements: Iterable[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for element in elements:
        batch.append(element)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def stacked(elements: Iterable[Any]) -> Iterator[Any]:
    return map(np.stack, batched(elements))


def stacked_pairs(elements: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    for batch in batched(elements):
        yield np.stack([x for x, _ in batch]), np.array([y for _, y in batch])


def padded(batch: list[Any]) -> Any:
    rows = np.zeros((len(batch), max(map(len, batch))), np.int64)
    for row, tokens in zip(rows, batch, strict=True):
        row[: len(tokens)] = tokens
    return rows


def buckets(elements: Iterable[Any]) -> Iterator[Any]:
    waiting: list[list[Any]] = [[] for _ in range(len(BOUNDARIES) + 1)]
    for tokens in elements:
        bucket = bisect.bisect_right(BOUNDARIES, len(tokens))
        waiting[bucket].append(tokens)
        if len(waiting[bucket]) == BATCH:
            yield padded(waiting[bucket])
            waiting[bucket] = []
    yield from map(padded, filter(None, waiting))


def shuffled(elements: Iterable[Any], size: int = 1000) -> Iterator[Any]:
    buffer: list[Any] = []
    for element in elements:
        if len(buffer) < size:
            buffer.append(element)
            continue
        index = random.randrange(size)
        yield buffer[index]
        buffer[index] = element
    random.shuffle(buffer)
    yield from buffer


def flipped(x: Any, y: Any) -> Any:
    return (x[::-1] if random.random() < 0.5 else x), y


def scaled(x: Any, y: Any) -> Any:
    return x.astype(np.float32) / 255, y


def cases(folder: Path) -> dict[str, Case]:
    rng = np.random.default_rng(0)
    images, labels = rng.random((COUNT, 32), np.float32), rng.integers(0, 10, COUNT)
    lists = [rng.integers(1, 1000, length) for length in rng.integers(5, 60, COUNT).tolist()]
    of_ints = [tokens.tolist() for tokens in lists]
    photos = rng.integers(0, 256, (COUNT, 28, 28), np.uint8)
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": "word " * (i % 7), "label": i}) + "\n" for i in range(COUNT)))

    def row(i: Any) -> Any:
        return images[i], labels[i]

    def generate() -> Iterator[Any]:
        return ((np.full(32, i, np.float32), i) for i in range(COUNT))

    def arrays() -> Iterator[Any]:
        return zip(photos, labels.tolist(), strict=True)

    def texts() -> Iterator[Any]:
        with path.open("rb") as lines:
            yield from map(json.loads, lines)

    def batch_of_texts(batch: list[Any]) -> Any:
        return {"text": [one["text"] for one in batch], "label": np.array([one["label"] for one in batch])}

    tokens = Dataset.from_generator(lambda: lists, output_signature=TensorSpec((None,), np.int64))
    pairs = (TensorSpec((32,), np.float32), TensorSpec((), np.int64))
    windows = Dataset.from_tensor_slices(images[:, 0]).window(WINDOW, shift=1, drop_remainder=True)
    return {
        "range.map(rows of arrays).batch": Case(
            Dataset.range(COUNT).map(row).batch(BATCH), lambda: stacked_pairs(map(row, range(COUNT)))
        ),
        "slices.map(flip at random, AUTOTUNE).batch.prefetch": Case(
            Dataset.from_tensor_slices((images, labels))
            .map(flipped, num_parallel_calls=AUTOTUNE)
            .batch(BATCH)
            .prefetch(AUTOTUNE),
            lambda: stacked_pairs(map(flipped, images, labels)),
        ),
        "range.map(rows of arrays).shuffle.batch": Case(
            Dataset.range(COUNT).map(row).shuffle(1000).batch(BATCH),
            lambda: stacked_pairs(shuffled(map(row, range(COUNT)))),
        ),
        "lines.map(json.loads).batch": Case(
            TextLineDataset(path).map(json.loads).batch(BATCH),
            lambda: map(batch_of_texts, batched(texts())),
        ),
        "generator of new arrays.batch": Case(
            Dataset.from_generator(generate, output_signature=pairs).batch(BATCH),
            lambda: stacked_pairs(generate()),
            lambda: of_tf_data("generator", generate),
        ),
        "generator of arrays.map(scale).batch": Case(
            Dataset.from_generator(arrays).map(scaled).batch(BATCH),
            lambda: stacked_pairs(scaled(x, y) for x, y in arrays()),
        ),
        "generator of lists of ints.padded_batch": Case(
            Dataset.from_generator(lambda: of_ints).padded_batch(BATCH),
            lambda: map(padded, batched(of_ints)),
            lambda: of_tf_data("lists", lambda: iter(of_ints)),
        ),
        "generator of token lists.padded_batch": Case(tokens.padded_batch(BATCH), lambda: map(padded, batched(lists))),
        "generator of token lists.bucket_by_sequence_length": Case(
            tokens.bucket_by_sequence_length(len, BOUNDARIES, [BATCH] * 3), lambda: buckets(lists)
        ),
        "slices.window.flat_map(batch of a window).batch": Case(
            windows.flat_map(lambda window: window.batch(WINDOW)).batch(BATCH),
            lambda: stacked(images[i : i + WINDOW, 0] for i in range(COUNT - WINDOW + 1)),
            lambda: of_tf_data("window", images[:, 0]),
        ),
    }


def of_tf_data(form: str, data: Any) -> Iterable[Any]:
    import tensorflow as tf

    if form == "generator":
        signature = (tf.TensorSpec((32,), tf.float32), tf.TensorSpec((), tf.int64))
        return tf.data.Dataset.from_generator(data, output_signature=signature).batch(BATCH).as_numpy_iterator()
    if form == "lists":
        lists = tf.data.Dataset.from_generator(data, output_signature=tf.TensorSpec((None,), tf.int64))
        return lists.padded_batch(BATCH).as_numpy_iterator()
    windows = tf.data.Dataset.from_tensor_slices(data).window(WINDOW, shift=1, drop_remainder=True)
    return windows.flat_map(lambda window: window.batch(WINDOW)).batch(BATCH).as_numpy_iterator()


def seconds_of(batches: Iterable[Any]) -> float:
    started = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - started


def measure(name: str, case: Case, rounds: int, *, tf_data: bool) -> None:
    others = [case.loop, *([case.tf_data] if tf_data and case.tf_data else [])]
    taken = [[seconds_of(case.pipeline), *(seconds_of(batches()) for batches in others)] for _ in range(rounds + 1)]
    micros = [statistics.median(column) / COUNT * 1e6 for column in zip(*taken[1:], strict=True)]
    ratio = statistics.median(pipeline / loop for pipeline, loop, *_ in taken[1:])
    tf_text = f", tf.data {micros[2]:6.2f}" if len(micros) > 2 else ""
    print(f"{name:52} {micros[0]:7.2f} us, loop {micros[1]:6.2f}{tf_text}: {ratio:5.2f} times the loop", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="only pipelines with this text in their name")
    parser.add_argument("--tf-data", action="store_true", help="also measure tf.data")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases(Path(folder)).items():
            if arguments.only in name:
                measure(name, case, arguments.rounds, tf_data=arguments.tf_data)


if __name__ == "__main__":
    main()

"""Pipelines for tests of resuming: at least one for every method of Dataset that makes an op, and for every reader.

A case is a function of ``Files``. It builds the same small pipeline each time, also in another process. That process
finds the case by its name: the public name, followed by a colon and the variant.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset import (
    AUTOTUNE,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    Options,
    RaggedTensor,
    Reducer,
    SqlDataset,
    TarDataset,
    TensorSpec,
    TextLineDataset,
    TFRecordDataset,
)
from support.resume_files import Files

Make = Callable[[Files], Dataset[Any]]


@dataclass(frozen=True)
class Case:
    """A pipeline to resume.

    Attributes:
        method: the public name that it covers.
        make: builds the pipeline.
        in_order: whether the order of the elements is deterministic. Otherwise only the set of elements is.
        repeatable: whether a new iterator returns the same elements.
    """

    method: str
    make: Make
    in_order: bool
    repeatable: bool


CASES: dict[str, Case] = {}


def case(name: str, *, in_order: bool = True, repeatable: bool = True) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        assert name not in CASES, name
        CASES[name] = Case(name.partition(":")[0], make, in_order, repeatable and in_order)
        return make

    return register


def numbers(stop: int = 13) -> Dataset[Any]:
    return Dataset.range(stop)


def streamed(stop: int = 13) -> Dataset[Any]:
    """Return numbers without random access, so that they cannot be skipped without being read."""
    return Dataset.range(stop).filter(lambda x: x >= 0)


def slow(x: Any) -> Any:
    """Take long enough for a cache to choose this place."""
    time.sleep(0.0005)
    return x


def fail_at(*bad: int) -> Callable[[Any], Any]:
    def check(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"bad {int(x)}")
        return x

    return check


def fail_at_length(bad: int) -> Callable[[Any], Any]:
    def check(row: Any) -> Any:
        if len(row) == bad:
            raise ValueError(f"bad {row[0]}")
        return row

    return check


def rows(stop: int = 12) -> Dataset[Any]:
    """Return vectors of lengths 1 to 4."""
    return Dataset.range(stop).map(lambda x: np.full(int(x) % 4 + 1, x))


# Sources

case("range")(lambda _: Dataset.range(20, 3, -2))
case("counter")(lambda _: Dataset.counter(5, 3).take(9))
case("counter: of floats")(lambda _: Dataset.counter(0.5, 0.1, np.float32).take(9))
case("random")(lambda _: Dataset.random(seed=3).take(9))
case("random: without a seed", repeatable=False)(lambda _: Dataset.random().take(4).repeat(2))
case("random: anew in each epoch")(lambda _: Dataset.random(3, rerandomize_each_iteration=True).take(5).repeat(3))
case("from_tensors")(lambda _: Dataset.from_tensors({"a": np.arange(3), "b": "text"}).repeat(3))
case("from_list: in order")(lambda _: Dataset.from_list([(i, np.arange(i)) for i in range(7)]).batch(1))
case("from_list")(lambda _: Dataset.from_list([(i, np.arange(i)) for i in range(7)]).shuffle(3, seed=1).repeat(2))
case("from_tensor_slices")(
    lambda _: Dataset.from_tensor_slices((np.arange(11), {"t": np.array([b"%d" % i for i in range(11)], object)}))
)


@case("from_generator")
def _(_: Files) -> Dataset[Any]:
    def generate(stop: int) -> Any:
        for i in range(stop):
            yield i, np.full(i % 3, i)

    return Dataset.from_generator(generate, args=(9,))


@case("from_generator: that raises, in epochs")
def _(_: Files) -> Dataset[Any]:
    def generate() -> Any:
        yield from range(4)
        raise ValueError("over")

    return Dataset.from_generator(generate, output_signature=TensorSpec((), np.int64)).repeat(3)


@case("from_pandas")
def _(_: Files) -> Dataset[Any]:
    import pandas as pd

    return Dataset.from_pandas(pd.DataFrame({"x": range(9), "name": [f"name {i}" for i in range(9)]}))


@case("from_polars")
def _(_: Files) -> Dataset[Any]:
    import polars as pl

    return Dataset.from_polars(pl.DataFrame({"x": range(9), "name": [f"name {i}" for i in range(9)]}))


case("from_arrow")(lambda files: Dataset.from_arrow(str(files.folder / "table.arrow")))
case("from_arrow_ipc")(lambda files: Dataset.from_arrow_ipc(files.parts("batches")).shuffle(4, seed=1).repeat(2))
case("from_arrow_ipc: files at once")(
    lambda files: Dataset.from_arrow_ipc(files.parts("batches"), num_parallel_reads=2)
)
case("from_parquet")(lambda files: Dataset.from_parquet(files.parts("table")))
case("from_parquet: files at once")(lambda files: Dataset.from_parquet(files.parts("table"), num_parallel_reads=2))
case("from_image_folder")(
    lambda files: Dataset.from_image_folder(files.folder / "images", channels=1, shuffle=True, seed=1).repeat(2)
)
case("load")(lambda files: Dataset.load(files.folder / "saved"))
case("load: with a reader")(
    lambda files: Dataset.load(
        files.folder / "saved", reader_func=lambda shards: shards.shuffle(3, seed=1).flat_map(lambda shard: shard)
    ).repeat(2)
)
case("list_files")(lambda files: Dataset.list_files(str(files.folder / "*.tfrecord"), seed=4).map(os.path.basename))
case("list_files: in order, in epochs")(
    lambda files: (
        Dataset.list_files(str(files.folder / "plain-*.tfrecord"), shuffle=False).repeat(3).map(os.path.basename)
    )
)
case("list_files: interleaved")(
    lambda files: (
        Dataset.list_files(str(files.folder / "plain-*.tfrecord"), seed=4)
        .interleave(TFRecordDataset, cycle_length=2)
        .repeat(2)
    )
)
case("list_files: interleaved by threads")(
    lambda files: (
        Dataset.list_files(str(files.folder / "text-*"), seed=4)
        .interleave(TextLineDataset, cycle_length=2, block_length=2, num_parallel_calls=2)
        .shuffle(5, seed=2)
        .repeat(2)
    )
)

# Readers

case("TFRecordDataset")(lambda files: TFRecordDataset(files.parts("plain")))
case("TFRecordDataset: GZIP")(lambda files: TFRecordDataset(files.parts("gzip"), "GZIP"))
case("TFRecordDataset: ZLIB, files at once")(
    lambda files: TFRecordDataset(files.parts("zlib"), "ZLIB", num_parallel_reads=2)
)
case("TFRecordDataset: ZSTD")(lambda files: TFRecordDataset(files.parts("zstd"), "ZSTD"))
case("TFRecordDataset: with an index")(lambda files: TFRecordDataset(files.parts("plain"), index=True))
case("TFRecordDataset: with an index, shuffled")(
    lambda files: TFRecordDataset(files.parts("plain"), index=True).shuffle(7, seed=1).repeat(2).batch(3)
)
case("TFRecordDataset: a file is missing")(
    lambda files: TFRecordDataset([files.parts("plain")[0], "nowhere.tfrecord", files.parts("plain")[1]])
)
case("TextLineDataset")(lambda files: TextLineDataset(files.parts("text"), buffer_size=7))
case("TextLineDataset: GZIP")(lambda files: TextLineDataset(files.parts("packed"), "GZIP"))
case("TextLineDataset: shuffled")(lambda files: TextLineDataset(files.parts("text")).shuffle(5, seed=1).repeat(2))
case("JsonLinesDataset")(lambda files: JsonLinesDataset(files.parts("json"), buffer_size=40))
case("JsonLinesDataset: shuffled")(
    lambda files: (
        JsonLinesDataset(files.parts("json"), {"n": int, "text": bytes}, num_parallel_reads=2)
        .shuffle(5, seed=1)
        .repeat(2)
    )
)
case("from_json_lines")(
    lambda files: Dataset.from_json_lines(str(files.folder / "json-*"), ["n", "text"]).ignore_errors().batch(3)
)
case("TarDataset")(lambda files: TarDataset(files.parts("shard"), buffer_size=600))
case("TarDataset: shuffled")(
    lambda files: TarDataset(files.parts("shard"), ["txt"], num_parallel_reads=2).shuffle(5, seed=1).repeat(2)
)
case("TarDataset: with an index")(lambda files: TarDataset(files.parts("shard"), index=True))
case("TarDataset: with an index, shuffled")(
    lambda files: TarDataset(files.parts("shard"), index=True).shuffle(7, seed=1).repeat(2).ignore_errors().batch(3)
)
case("CsvDataset")(lambda files: CsvDataset(files.parts("csv"), [np.int64, np.float64, bytes]))
case("CsvDataset: files at once")(
    lambda files: CsvDataset(files.parts("csv"), [np.int64, bytes], select_cols=[0, 2], num_parallel_reads=2)
)
case("FixedLengthRecordDataset")(
    lambda files: FixedLengthRecordDataset(files.parts("fixed"), 4, header_bytes=4, buffer_size=5)
)
case("SqlDataset")(
    lambda files: SqlDataset(
        "sqlite", str(files.folder / "numbers.sqlite"), "SELECT number, word FROM numbers", (np.int64, bytes)
    )
)
case("from_csv")(
    lambda files: Dataset.from_csv(
        files.parts("named"), 4, num_epochs=2, shuffle=True, shuffle_buffer_size=6, shuffle_seed=3
    )
)
case("from_csv: files at once, without end")(
    lambda files: Dataset.from_csv(files.parts("named"), 5, shuffle_seed=3, num_parallel_reads=2).take(7)
)

# At most one element for each input element

case("map")(lambda _: numbers().map(lambda x: x * 2))
case("map: of a stream")(lambda _: streamed().map(lambda x: (x, b"%d" % x)))
case("map: with failures")(lambda _: numbers().map(fail_at(0, 4, 5, 12)))
case("map: by threads")(lambda _: numbers(20).map(fail_at(0, 7, 19), num_parallel_calls=2))
case("map: by threads, of a stream")(lambda _: streamed(20).map(lambda x: x + 1, num_parallel_calls=3))
case("map: by threads, in any order", in_order=False)(
    lambda _: streamed(20).map(lambda x: x + 1, num_parallel_calls=3, deterministic=False)
)
case("map: by threads, fused with batch")(
    lambda _: numbers(20).map(lambda x: x + 1, num_parallel_calls=2).batch(3).prefetch(1)
)
case("random_map")(lambda _: numbers(7).random_map(lambda rng, x: x + rng.integers(1000), seed=2).repeat(3))
case("random_map: by threads")(
    lambda _: streamed(7).random_map(lambda rng, x: x + rng.random(), seed=2, num_parallel_calls=2).repeat(2)
)
case("select")(lambda _: numbers().map(lambda x: {"a": x, "b": -x}).select("b"))
case("filter")(lambda _: numbers(25).filter(lambda x: x % 3 != 1))
case("filter: by threads")(lambda _: with_options(filtered(), "filter_parallelization"))
case("enumerate")(lambda _: streamed().enumerate(5))
case("take")(lambda _: streamed(30).take(9))
case("take_while")(lambda _: numbers(30).take_while(lambda x: x < 9))
case("skip")(lambda _: numbers().skip(4))
case("skip: of a stream, in epochs")(lambda _: streamed(7).skip(4).repeat(3))
case("shard")(lambda _: streamed(30).shard(3, 1))
case("split")(lambda _: numbers(31).split([0.6, 0.4], seed=1)[0])
case("split: consecutive, and mapped")(lambda _: numbers(31).map(fail_at(2, 21)).split([0.4, 0.6])[1])
case("split: of an unknown number")(lambda _: streamed(31).split([0.6, 0.4], seed=1)[0].repeat(2))
case("split: by a key")(lambda _: numbers(31).shuffle(5, seed=1).split([0.6, 0.4], by=lambda x: x % 7)[0].repeat(2))
case("split: by file")(
    lambda files: TFRecordDataset(files.parts("plain")).split([1, -1], seed=1, by="file")[1].repeat(2)
)
case("shard_by_process")(lambda _: numbers(30).shuffle(30, seed=1).shard_by_process(1, 3).repeat(2))
case("shard_by_process: of files")(
    lambda files: (
        Dataset.list_files(str(files.folder / "plain-*.tfrecord"), shuffle=False)
        .interleave(TFRecordDataset, cycle_length=1)
        .shard_by_process(1, 2, remainder="repeat")
    )
)
case("shard_by_process: of a stream")(lambda _: streamed(30).shard_by_process(1, 3, remainder="pad"))
case("pad_to_cardinality")(
    lambda _: Dataset.from_tensor_slices({"x": np.arange(5)}).shuffle(3, seed=1).pad_to_cardinality(8)
)
case("pad_to_cardinality: shapes of the last element")(
    lambda _: Dataset.range(5).map(lambda x: {"x": np.full(3, x)}).pad_to_cardinality(9).repeat(2)
)
case("assert_cardinality")(lambda _: streamed().assert_cardinality(13))
case("assert_cardinality: that is wrong")(lambda _: streamed().assert_cardinality(5))
case("unique")(lambda _: numbers(30).map(lambda x: x * x % 17).unique().repeat(2))
case("skip_records")(lambda files: numbers(20).skip_records(files.folder / "skip.jsonl").shuffle(4, seed=1).batch(3))
case("ignore_errors")(lambda _: numbers(20).map(fail_at(0, 3, 4, 19)).ignore_errors())
case("scan")(lambda _: streamed().scan(np.int64(0), lambda total, x: (total + x, (total, x))))
case("apply")(lambda _: numbers().apply(lambda dataset: dataset.map(lambda x: x + 1)))


def filtered() -> Dataset[Any]:
    return numbers(25).filter(lambda x: fail_at(3, 9)(x) % 3 != 1)


def with_options(dataset: Dataset[Any], *rules: str) -> Dataset[Any]:
    options = Options()
    for rule in rules:
        setattr(options.optimization, rule, True)
    return dataset.with_options(options)


# Orders and epochs

case("repeat")(lambda _: streamed(5).repeat(3))
case("repeat: without end")(lambda _: numbers(3).map(fail_at(1)).repeat().take(9))
case("shuffle: below the count")(lambda _: numbers().shuffle(5, seed=1).repeat(2))
case("shuffle: of a stream")(lambda _: streamed().shuffle(5, seed=1).repeat(2))
case("shuffle: equal to the count")(lambda _: numbers().shuffle(13, seed=1).repeat(2))
case("shuffle: of a stream, equal to the count")(lambda _: streamed().shuffle(13, seed=1).repeat(2))
case("shuffle: above the count")(lambda _: numbers().shuffle(50, seed=1, reshuffle_each_iteration=False).repeat(2))
case("shuffle: of a stream, above the count")(lambda _: streamed().shuffle(50, seed=1).repeat(3))
case("shuffle: over all")(lambda _: numbers().shuffle(None, seed=1).repeat(2).map(lambda x: x + 1))
case("shuffle: of a stream, over all")(lambda _: streamed().map(fail_at(3)).shuffle(None, seed=1).repeat(2))
case("shuffle: behind repeat")(lambda _: numbers(7).repeat(3).shuffle(10, seed=1))
case("shuffle: without a seed", repeatable=False)(lambda _: streamed().shuffle(5).repeat(2).batch(4).shuffle(None))
case("shuffle: twice")(lambda _: streamed().shuffle(4, seed=1).map(lambda x: x + 1).shuffle(4, seed=2).repeat(2))
case("shuffle: of texts")(lambda _: streamed().map(lambda x: (b"%d" % x, x)).shuffle(4, seed=1).batch(3))
case("shuffle: of ragged rows")(lambda _: rows().shuffle(4, seed=1).ragged_batch(3))
case("shuffle: of ragged tensors")(
    lambda _: Dataset.range(9).map(lambda x: RaggedTensor.from_rows([[x] * (x % 3), [1]])).shuffle(4, seed=1)
)
case("concatenate")(lambda _: numbers(6).concatenate(streamed(5)).repeat(2))
case("zip")(lambda _: Dataset.zip(streamed(9), numbers(12).shuffle(4, seed=1)))
case("sample_from_datasets: with a schedule")(
    lambda _: Dataset.sample_from_datasets(
        [numbers(9), streamed(9)], [(0, [1, 3]), (5, [0, 1]), (12, [2, 1])], seed=3, interpolation="linear"
    ).repeat(2)
)
case("sample_from_datasets: with a function, repeated")(
    lambda _: Dataset.sample_from_datasets(
        [numbers(3), streamed(4)], lambda n: [1, n % 3], seed=3, on_empty="repeat"
    ).take(20)
)
case("sample_from_datasets")(
    lambda _: Dataset.sample_from_datasets([numbers(9), streamed(6).map(lambda x: -x)], [0.7, 0.3], seed=3)
)
case("sample_from_datasets: in epochs")(
    lambda _: Dataset.sample_from_datasets(
        [streamed(5), numbers(4).map(lambda x: -x)], seed=3, rerandomize_each_iteration=True
    ).repeat(2)
)
case("sample_from_datasets: in exact shares")(
    lambda _: Dataset.sample_from_datasets([numbers(9), streamed(6).map(lambda x: -x)], [0.7, 0.3], exact=True)
)
case("choose_from_datasets")(
    lambda _: Dataset.choose_from_datasets(
        [numbers(9), streamed(6).map(lambda x: -x), numbers(3)],
        numbers(40).map(lambda x: x * x % 3),
        stop_on_empty_dataset=False,
    )
)
case("rejection_resample")(
    lambda _: streamed(50).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=1).repeat(2)
)
case("rejection_resample: shares not given")(
    lambda _: numbers(50).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=1)
)

# Datasets in datasets

case("flat_map")(lambda _: streamed(6).flat_map(lambda x: Dataset.range(x % 4)))
case("flat_map: with failures, inside and outside")(
    lambda _: numbers(6).map(fail_at(2)).flat_map(lambda x: Dataset.range(int(fail_at(4)(x))).map(fail_at(1)))
)
case("interleave")(
    lambda _: numbers(6).interleave(lambda x: Dataset.range(x, x + 4), cycle_length=3, block_length=2).repeat(2)
)
case("interleave: by threads")(
    lambda _: streamed(7).interleave(
        lambda x: Dataset.range(x, x + 4).map(fail_at(3)).shuffle(2, seed=1), cycle_length=3, num_parallel_calls=2
    )
)
case("interleave: by threads, in any order", in_order=False)(
    lambda _: streamed(7).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 4), cycle_length=3, num_parallel_calls=3, deterministic=False
    )
)
case("window")(lambda _: streamed().window(4, 2).flat_map(lambda window: window.batch(4)))
case("window: itself")(lambda _: numbers().window(3, 5, 2, drop_remainder=True))
case("group_by_reducer")(
    lambda _: numbers(25).group_by_reducer(
        lambda x: x % 4,
        Reducer(
            lambda key: (key, 0), lambda state, x: (state[0], state[1] + fail_at(7)(x)), lambda key, total: key * total
        ),
    )
)
case("group_by_window")(
    lambda _: numbers(25).group_by_window(lambda x: x % 3, lambda _, group: group.batch(2), window_size=4)
)
case("group_by_window: in epochs")(
    lambda _: (
        streamed(11)
        .group_by_window(lambda x: x % 2, lambda key, group: group.map(lambda x: (key, x)), window_size=3)
        .repeat(2)
    )
)

# Batches

case("batch")(lambda _: numbers(30).batch(4))
case("batch: of failures")(lambda _: numbers(30).map(fail_at(1, 8, 11, 12)).batch(4))
case("batch: by threads")(lambda _: streamed(30).batch(4, num_parallel_calls=2))
case("padded_batch")(lambda _: rows().padded_batch(3).repeat(2))
case("ragged_batch")(lambda _: rows(30).ragged_batch(4))
case("sparse_batch")(
    lambda _: Dataset.range(12).map(lambda x: np.full(int(x) % 4 + 1, x)).sparse_batch(3, (None,)).repeat(2)
)
case("rebatch")(lambda _: numbers(40).batch(7).rebatch([3, 4, 2]))
case("unbatch")(lambda _: numbers(20).batch(7).unbatch())
case("batch_by_tokens")(lambda _: rows(40).batch_by_tokens(9, window=11, seed=4).repeat(2))
case("batch_by_tokens: ragged, with a length function")(
    lambda _: rows(40).map(fail_at_length(2)).batch_by_tokens(9, length=len, window=7, layout="ragged", shuffle=False)
)
case("batch_by_tokens: packed, of a stream, by threads")(
    lambda _: (
        streamed(40)
        .map(lambda x: np.full(int(x) % 9, x), num_parallel_calls=2)
        .batch_by_tokens(9, window=8, layout="packed", seed=4, across_processes=2)
        .shard_by_process(1, 2)
    )
)
case("batch_by_tokens: of elements in any order", in_order=False)(
    lambda _: (
        streamed(20)
        .map(lambda x: np.full(3, x), num_parallel_calls=3, deterministic=False)
        .batch_by_tokens(3, window=4, seed=4)
    )
)
case("concat_split")(lambda _: rows(40).concat_split(6, separator=-1).repeat(2))
case("concat_split: of a stream, by threads")(
    lambda _: (
        streamed(40).map(lambda x: np.full(int(x) % 9, x), num_parallel_calls=2).concat_split(5, drop_remainder=True)
    )
)
case("concat_split: of elements in any order", in_order=False)(
    lambda _: streamed(20).map(lambda x: np.full(6, x), num_parallel_calls=3, deterministic=False).concat_split(3)
)
case("pack")(lambda _: rows(40).pack(6, window=9).repeat(2))
case("pack: shuffled, in epochs")(
    lambda _: rows(40).map(fail_at_length(3)).pack(6, window=9, boundaries="cu_seqlens", shuffle=True, seed=2).repeat(2)
)
case("pack: of a stream, by threads")(
    lambda _: streamed(40).map(lambda x: np.full(int(x) % 9, x), num_parallel_calls=2).pack(5, window=7).prefetch(2)
)
case("pack: of elements in any order", in_order=False)(
    lambda _: (
        streamed(20).map(lambda x: np.full(3, x), num_parallel_calls=3, deterministic=False).pack(3, window=4).select(0)
    )
)
case("bucket_by_sequence_length")(
    lambda _: rows(40).bucket_by_sequence_length(len, [2, 4], [4, 3, 2]).map(lambda batch: batch + 1)
)
case("bucket_by_sequence_length: padded to the boundaries")(
    lambda _: rows(40).bucket_by_sequence_length(
        len, [3, 6], [4, 3, 2], padded_shapes=(None,), pad_to_bucket_boundary=True
    )
)

# Kept elements

case("cache")(lambda _: streamed(7).cache().repeat(3))
case("cache: of a shuffled order", repeatable=False)(lambda _: streamed(7).shuffle(4).cache().shuffle(3, 1).repeat(3))
case("cache: with failures")(lambda _: numbers(7).map(fail_at(0, 3, 6)).cache().repeat(3))
case("cache: of a random source", repeatable=False)(lambda _: Dataset.random().take(5).cache().repeat(3))
case("cache: twice")(lambda _: streamed(5).cache().repeat(2).cache().repeat(2))
case("cache: batched, ahead")(
    lambda _: streamed(9).map(lambda x: x + 1, num_parallel_calls=2).cache().repeat(2).batch(4).prefetch(2)
)
case("cache: in files")(lambda files: streamed(7).cache(files.scratch / "cache").repeat(3))
case("cache: in files, of a shuffled order, ahead", repeatable=False)(
    lambda files: streamed(7).shuffle(4).cache(files.scratch / "cache").prefetch(2).repeat(3)
)
case("cache: at a place that is chosen")(lambda _: streamed(7).map(lambda x: x + 1).cache(AUTOTUNE).repeat(4))
case("cache: at a place that is chosen, before random ops")(
    lambda _: streamed(7).map(slow).map(str).shuffle(4, 1).batch(2).cache(AUTOTUNE).repeat(4)
)
case("cache: at a place that is chosen, with failures")(
    lambda _: numbers(7).map(fail_at(0, 3, 6)).map(slow).cache(AUTOTUNE).repeat(3)
)
case("cache: at a place that is chosen, in files, ahead")(
    lambda files: (
        streamed(7).map(slow).shuffle(4, 1).cache(AUTOTUNE, directory=files.scratch / "cache").prefetch(2).repeat(4)
    )
)
case("cache: in files, with failures")(
    lambda files: numbers(7).map(fail_at(0, 3, 6)).cache(files.scratch / "cache").repeat(3)
)
case("snapshot")(lambda files: streamed(7).snapshot(files.scratch / "snapshot").repeat(3))
case("snapshot: read by a function")(
    lambda files: (
        numbers(9)
        .snapshot(files.scratch / "snapshot", reader_func=lambda shards: shards.flat_map(lambda shard: shard))
        .repeat(2)
    )
)
case("snapshot: in shards")(
    lambda files: numbers(9).snapshot(files.scratch / "snapshot", "GZIP", shard_func=lambda x: x % 3).repeat(2)
)

# Background work and options

case("prefetch")(lambda _: streamed(20).prefetch(3))
case("prefetch: of failures")(lambda _: streamed(20).map(fail_at(0, 6, 7, 19)).prefetch(2))
case("prefetch: twice")(lambda _: streamed(20).prefetch(3).batch(2).prefetch(1).unbatch().map(lambda x: x + 1))
case("prefetch: in epochs")(lambda _: streamed(6).shuffle(3, seed=1).prefetch(4).repeat(3))
case("prefetch: inside of flat_map")(lambda _: numbers(4).flat_map(lambda x: Dataset.range(x + 2).prefetch(2)))
case("with_options")(lambda _: with_options(numbers().map(lambda x: x + 1).batch(3), "inject_prefetch"))


@case("with_options: in any order", in_order=False)
def _(_: Files) -> Dataset[Any]:
    options = Options()
    options.deterministic = False
    parallel = streamed(8).map(lambda x: x * 10, num_parallel_calls=3)
    spread = parallel.interleave(lambda x: Dataset.range(x, x + 3), cycle_length=2, num_parallel_calls=2)
    return spread.prefetch(2).map(lambda x: x + 1, num_parallel_calls=2).with_options(options)


@case("with_options: without the optimizer")
def _(_: Files) -> Dataset[Any]:
    options = Options()
    options.optimization.enabled = False
    return numbers(9).map(lambda x: x + 1).filter(lambda x: x % 3 > 0).shuffle(4, 1).repeat(2).with_options(options)


BY_PROCESSES: dict[str, Make] = {
    "map": lambda _: streamed(24).map(fail_at(0, 7, 23), num_parallel_calls=2, executor="process"),
    "map and batch": lambda _: (
        numbers(24).shuffle(6, seed=1).map(np.sqrt, num_parallel_calls=2, executor="process").batch(4).prefetch(1)
    ),
}
"""Only a few, because processes start slowly."""

NO_OPS = {
    "plan": "is data",
    "options": "is data",
    "element_spec": "is data",
    "cardinality": "is data",
    "fingerprint": "is data",
    "explain": "is data",
    "get_single_element": "is a whole pass",
    "reduce": "is a whole pass",
    "write_tfrecord": "is a whole pass",
    "save": "is a whole pass; its own checkpoints are in ops/test_save_load_checkpoints.py",
    "as_numpy_iterator": "is an iterator",
    "profile": "is a measurement",
    "progress": "is an iterator",
    "to_queue": "goes to a queue",
    "to_ray": "goes to another library",
    "to_tf": "goes to another library",
    "to_keras": "goes to another library",
}
"""Public members of Dataset that do not create an op."""

ELSEWHERE = {
    "distribute": "ops/distribute/test_distribute.py",
    "from_queue": "queues/test_from_queue.py",
    "from_ray": "ops/distribute/test_distribute_ray.py",
    "from_tf": "adapters/test_from_tf.py",
    "from_torch": "adapters/test_from_torch.py",
    "from_huggingface": "adapters/test_from_huggingface.py",
    "to_torch": "adapters/test_to_torch_state.py",
    "to_jax": "adapters/test_to_jax.py",
}
"""Members that are tested in other files, because they need processes, queues or a library that is slow to import."""

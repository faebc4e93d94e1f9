"""Implementation of write_tfrecord(path_pattern), which writes the elements of a dataset to TFRecord files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dataset.amounts import STEP_BYTES, STEP_ELEMENTS
from dataset.io.example.encode import encode_example
from dataset.io.tfrecord.progress_line import ProgressLine
from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
from dataset.io.tfrecord.writer import TFRecordOptions
from dataset.ops.map import Map
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_bool, require_callable, require_int
from dataset.plan.node import Node, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.iteration.chunk_scan import ChunkScan
from dataset.world import time

STEP_SECONDS = 0.05  # if elements are slow, this keeps the progress line current and memory use small


def write_tfrecord(
    plan: Node,
    open_pass: Callable[[Node], ChunkScan],
    path_pattern: Any,
    num_shards: int,
    compression: str | None,
    encode: Callable[..., Any] | None,
    compression_level: int | None,
    progress: bool | None,
) -> list[str]:
    """Run ``plan`` with ``open_pass``, and write its elements; return the names of the files."""
    num_shards = require_int("write_tfrecord", "num_shards", num_shards, minimum=1)
    if progress is not None:
        require_bool("write_tfrecord", "progress", progress)
    total = plan.cardinality()
    if total == INFINITE_CARDINALITY:
        raise ValueError("write_tfrecord(): the dataset is infinite; use take() first")
    if encode is None:
        _check_spec(plan)
    else:
        require_callable("write_tfrecord", "encode", encode)
        plan = Map(plan, encode)
    try:
        options = TFRecordOptions(compression, compression_level)
        writer = ShardedTFRecordWriter(path_pattern, num_shards, options)
    except ValueError as error:
        raise ValueError(f"write_tfrecord(): {error}") from None
    records_of = _bytes_of if encode is None else _encoded_bytes_of
    with writer, ProgressLine("write_tfrecord", total if total >= 0 else None, progress) as line:
        with open_pass(plan) as elements:
            _write_all(elements, writer, records_of, line)
        writer.close()
    return writer.paths


def _write_all(
    elements: ChunkScan,
    writer: ShardedTFRecordWriter,
    records_of: Callable[[Chunk, int], Sequence[bytes]],
    line: ProgressLine,
) -> None:
    step, position = 1, 0
    while True:
        started = time.perf_counter()
        chunk = elements.pull(step)
        if chunk is None:
            return
        records = records_of(chunk, position)
        writer.write_all(records)
        nbytes = sum(map(len, records))
        position += len(records)
        line.add(len(records), nbytes)
        share = max(nbytes / STEP_BYTES, (time.perf_counter() - started) / STEP_SECONDS)
        step = max(1, min(2 * step, STEP_ELEMENTS, int(len(records) / max(share, 1e-9))))


def _bytes_of(chunk: Chunk, position: int) -> Sequence[bytes]:
    """Return the records of a chunk: its bytes, or its dicts encoded as Examples."""
    rows = chunk.rows()
    if isinstance(rows[0], Mapping):
        return [_example(row, position + index) for index, row in enumerate(rows)]
    return _checked(rows, position, _WAYS_OUT)


def _encoded_bytes_of(chunk: Chunk, position: int) -> Sequence[bytes]:
    return _checked(chunk.rows(), position, "encode must return the bytes of one record")


def _checked(rows: list[Any], position: int, way_out: str) -> Sequence[bytes]:
    if set(map(type, rows)) == {bytes}:
        return rows
    index, row = next((index, row) for index, row in enumerate(rows) if type(row) is not bytes)
    raise TypeError(
        f"write_tfrecord(): element {position + index} is {row!r:.100} of type {type(row).__name__}; {way_out}"
    )


def _example(features: Mapping[str, Any], position: int) -> bytes:
    try:
        return encode_example(features)
    except Exception as error:
        error.add_note(f"in write_tfrecord(), element {position}, as a tf.train.Example")
        raise


def _check_spec(plan: Node) -> None:
    """Raise TypeError if the static element_spec shows that the elements can't be records."""
    if not spec_is_static(plan):
        return
    spec = plan.element_spec
    is_record = isinstance(spec, TensorSpec) and spec.is_compatible_with(TensorSpec((), bytes))
    if not is_record and not isinstance(spec, Mapping):
        raise TypeError(f"write_tfrecord(): elements are {spec!r:.200}; {_WAYS_OUT}")


_WAYS_OUT = (
    "elements must be bytes, which are written unchanged, or dicts, which io.encode_example encodes; convert them with "
    "map(), or pass a function as encode="
)

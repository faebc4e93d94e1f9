"""Implementation of save(path), which writes the elements of a dataset to a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataset.errors import StateError
from dataset.io.elements.checkpoints import Checkpoints
from dataset.io.elements.codec import RECORD_BYTES, RECORD_ELEMENTS
from dataset.io.elements.dataset_shards import ShardNumbers, by_function
from dataset.io.elements.dataset_writer import ElementsWriter, static_spec
from dataset.io.elements.metadata import compression_of_elements
from dataset.io.elements.write_session import RunWriter
from dataset.io.files.atomic import make_directory
from dataset.io.files.opening import local_folder
from dataset.ops.cache.caching import RefusedElementError
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_callable
from dataset.plan.node import Node
from dataset.plan.origin import Origin, caller, function_name
from dataset.runtime.iteration.chunk_scan import ChunkScan
from dataset.world.interrupts import check, guarded, installed


@guarded
def save(
    plan: Node,
    open_pass: Callable[[dict[str, Any] | None], ChunkScan],
    path: Any,
    compression: str | None,
    shard_func: Callable[..., Any] | None,
    checkpoint_args: Any,
) -> None:
    """Run ``plan`` with ``open_pass``, which takes a state to continue from, and write its elements to ``path``."""
    name = local_folder("save", path)
    named = compression_of_elements("save", compression)
    if shard_func is not None:
        require_callable("save", "shard_func", shard_func)
    if plan.cardinality() == INFINITE_CARDINALITY:
        raise ValueError("save(): the dataset is infinite; use take() first")
    spec = static_spec("save", plan)
    checkpoints = None
    if checkpoint_args is not None:
        checkpoints = Checkpoints(checkpoint_args, {"path": os.path.realpath(name), "compression": named})
    make_directory(Path(name))
    shards = None if shard_func is None else _by_function(shard_func, caller())

    def opened(place: dict[str, Any] | None = None) -> ElementsWriter:
        return ElementsWriter(RunWriter(name, named, place), spec, shards, place)

    with installed():
        resumed = None if checkpoints is None else checkpoints.resume(opened)
        writer, state = (opened(), None) if resumed is None else resumed
        try:
            with open_pass(state) as elements:
                write_all(elements, writer, checkpoints)
                writer.publish({})
            if checkpoints is not None:
                checkpoints.remove()
        except StateError as error:
            error.add_note(
                "in save(): delete the checkpoints, or use another directory for them, to write all elements again"
            )
            raise
        finally:  # neither call affects a published run
            writer.discard() if checkpoints is None else writer.run.leave()


def write_all(elements: ChunkScan, writer: ElementsWriter, checkpoints: Checkpoints | None) -> None:
    """Write all elements, in steps of about one record. Errors are raised."""
    step = 1
    while (chunk := elements.pull(step if checkpoints is None else checkpoints.limited(step))) is not None:
        try:
            writer.add(chunk.read_only())
        except RefusedElementError as refused:
            if not getattr(refused.error, "__notes__", None):
                refused.error.add_note(f"in save(), element {writer.count}")
            raise refused.error from None
        if checkpoints is not None and checkpoints.is_due(chunk.length, chunk.nbytes):
            checkpoints.write(writer.count, writer.place(), elements.state_dict())
        per_record = RECORD_BYTES * chunk.length // max(chunk.nbytes, 1)
        step = max(1, min(per_record, RECORD_ELEMENTS, 2 * step))
        check()


def _by_function(shard_func: Callable[..., Any], origin: Origin) -> ShardNumbers:
    def with_location(error: Exception, position: int) -> Exception:
        error.add_note(f"in save(shard_func={function_name(shard_func)}) from {origin}, element {position}")
        return error

    return by_function(shard_func, "save", with_location)

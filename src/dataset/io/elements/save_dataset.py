"""Implementation of save(path), which writes the elements of a dataset to a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dataset.io.elements.checkpoints import Checkpoints
from dataset.io.elements.codec import RECORD_BYTES, RECORD_ELEMENTS
from dataset.io.elements.dataset_shards import ShardNumbers, by_function
from dataset.io.elements.dataset_writer import ElementsWriter
from dataset.io.elements.metadata import compression_of_elements
from dataset.io.elements.write_session import RunGoneError, RunWriter
from dataset.io.files.opening import local_folder
from dataset.ops.cache.caching import RefusedElementError
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_callable
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.node import Node, spec_is_static
from dataset.plan.origin import Origin, caller, function_name
from dataset.plan.skeleton import spec_to_plain
from dataset.plan.spec import flatten_spec
from dataset.runtime.iteration.chunk_scan import ChunkScan
from dataset.runtime.resources.interrupts import check, guarded


@guarded
def save(
    plan: Node,
    open_pass: Callable[[], ChunkScan],
    path: Any,
    compression: str | None,
    shard_func: Callable[..., Any] | None,
    checkpoint_args: Any,
) -> None:
    """Run ``plan`` with ``open_pass``, and write its elements to the directory ``path``."""
    name = local_folder("save", path)
    named = compression_of_elements("save", compression)
    if shard_func is not None:
        require_callable("save", "shard_func", shard_func)
    if plan.cardinality() == INFINITE_CARDINALITY:
        raise ValueError("save(): the dataset is infinite; use take() first")
    spec = static_spec("save", plan)
    checkpoints = None
    if checkpoint_args is not None:
        about = {"path": os.path.realpath(name), "compression": named, "pipeline": fingerprint(plan)}
        checkpoints = Checkpoints(checkpoint_args, about)
    os.makedirs(name, exist_ok=True)  # noqa: PTH103  # keeps the name as the user wrote it
    numbers = _numbers(shard_func, caller())
    with open_pass() as elements:
        writer = _opened(name, named, numbers, checkpoints, elements)
        try:
            write_all(elements, writer, checkpoints)
            writer.finish(spec, {})
            if checkpoints is not None:
                checkpoints.remove()
        finally:
            # Neither call affects a finished run.
            writer.discard() if checkpoints is None else writer.run.leave()


def _opened(
    path: str, compression: str, numbers: ShardNumbers | None, checkpoints: Checkpoints | None, elements: ChunkScan
) -> ElementsWriter:
    """Return the writer of a new run, or of the last checkpoint's run; then set ``elements`` to that position, too."""
    state = None if checkpoints is None else checkpoints.latest()
    if state is not None:
        try:
            writer = ElementsWriter(RunWriter(path, compression, state["writer"]["run"]), numbers)
        except RunGoneError:  # its files were removed, so everything has to be written again
            pass
        else:
            writer.go_to(state["writer"])
            elements.load_state_dict(state["operator"])
            return writer
    if checkpoints is not None:
        checkpoints.remove()
    return ElementsWriter(RunWriter(path, compression), numbers)


def write_all(elements: ChunkScan, writer: ElementsWriter, checkpoints: Checkpoints | None) -> None:
    """Write all elements, in steps of about one record. Errors are raised."""
    step = 1
    while (chunk := elements.pull(_limited(step, checkpoints))) is not None:
        try:
            writer.add(chunk.read_only())
        except RefusedElementError as refused:
            if not getattr(refused.error, "__notes__", None):
                refused.error.add_note(f"in save(), element {writer.count}")
            raise refused.error from None
        if checkpoints is not None and checkpoints.is_due(chunk.length, chunk.nbytes):
            checkpoints.write(writer.count, {"writer": writer.place(), "operator": elements.state_dict()})
        per_record = RECORD_BYTES * chunk.length // max(chunk.nbytes, 1)
        step = max(1, min(per_record, RECORD_ELEMENTS, 2 * step))
        check()


def _limited(step: int, checkpoints: Checkpoints | None) -> int:
    room = None if checkpoints is None else checkpoints.room()
    return step if room is None else min(step, room)


def static_spec(op: str, plan: Node) -> Any:
    """Return the spec of a plan if it is known without running user code, else None.

    Raises:
        TypeError: elements of this spec cannot be written.
    """
    if not spec_is_static(plan):
        return None
    structure, components = flatten_spec(plan.element_spec)
    for index, component in enumerate(components):
        try:
            spec_to_plain(component)
        except TypeError as error:
            raise TypeError(f"{op}(): {structure.component_name(index)}: {error}") from None
    return plan.element_spec


def _numbers(shard_func: Callable[..., Any] | None, origin: Origin) -> ShardNumbers | None:
    if shard_func is None:
        return None

    def with_location(error: Exception, position: int) -> Exception:
        error.add_note(f"in save(shard_func={function_name(shard_func)}) from {origin}, element {position}")
        return error

    return by_function(shard_func, "save", with_location)

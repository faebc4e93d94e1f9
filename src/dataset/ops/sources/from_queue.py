"""Node and operator of from_queue(queue): the elements that other threads or processes put into a queue."""

from __future__ import annotations

import asyncio
import multiprocessing.queues
import queue as thread_queues
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.ops.sources.queue_readers import (
    AsyncQueueReader,
    ElementQueueReader,
    ProcessQueueReader,
    QueueReader,
    SimpleQueueReader,
    ThreadQueueReader,
    running_loop,
)
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.spec import flatten_spec
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.ownership import own
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.resources.exceptions import with_location


@dataclass(frozen=True, eq=False)
class FromQueue(Node, pure=False, stable=False):
    """Source node over the elements of a queue. Each is taken once, by one of its readers."""

    op: ClassVar[str] = "from_queue"
    queue: Any
    signature: Any = None
    loop: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.signature is None:
            self._set("signature", getattr(self.queue, "element_spec", None))
        if self.signature is not None:
            flatten_spec(self.signature)
        if _kind_of_reader(self.queue) is AsyncQueueReader:
            self._set("loop", running_loop())

    def reader(self) -> QueueReader:
        """Return a new reader of the queue."""
        kind = _kind_of_reader(self.queue)
        return kind(self.queue) if self.loop is None else AsyncQueueReader(self.queue, self.loop)

    @lazy_property
    def traits(self) -> Traits:
        return replace(super().traits, static_spec=self.signature is not None)

    def parameters(self) -> dict[str, Any]:
        return {"queue": self.queue, "signature": repr(self.signature)}

    def fingerprint_fields(self) -> Any:
        return repr(self.signature)

    def _element_spec(self) -> Any:
        if self.signature is None:
            raise SpecError(f"{self}: the spec of elements that are yet to come is unknown; pass element_spec")
        return self.signature

    def label(self) -> str:
        return f"{self.op}({type(self.queue).__name__})"

    def lower(self, context: ExecutionContext) -> Operator:
        context.mark_not_replayable()
        return FromQueueOperator(self, context)


def _kind_of_reader(queue: Any) -> type[QueueReader]:
    if hasattr(queue, "take_available"):
        return ElementQueueReader
    if isinstance(queue, thread_queues.Queue):
        return ThreadQueueReader
    if isinstance(queue, thread_queues.SimpleQueue):
        return SimpleQueueReader
    if isinstance(queue, multiprocessing.queues.Queue | multiprocessing.queues.SimpleQueue):
        return ProcessQueueReader
    if isinstance(queue, asyncio.Queue):
        return AsyncQueueReader
    raise TypeError(
        "from_queue(): queue must be one of dataset.queues, queue, multiprocessing or asyncio, got "
        f"{queue!r:.100} of type {type(queue).__name__}"
    )


class FromQueueOperator(BufferedOperator):
    """Operator that takes what was requested, and never waits for more than one element.

    A saved state holds the elements that were taken and not returned.
    """

    node: FromQueue

    def __init__(self, node: FromQueue, context: ExecutionContext) -> None:
        super().__init__(node)
        self._reader = node.reader()
        self._coordinator = context.iteration.coordinator
        self._coordinator.register(self, self._reader.close)  # before it waits for threads, which may wait here
        self._rows = SignatureRows(f"{node.label()} received", node.signature, "element_spec")
        self._position = 0  # of the next element of the queue
        self._ended = False

    def produce(self, n: int) -> Chunk | None:
        while not self._ended:
            try:
                values = self._reader.take(n)
            except EOFError:
                self._ended = True
            else:
                self._receive(values)
                del values
                if self.outbox:
                    return self.outbox.give(n)
        return None

    def _receive(self, values: list[Any]) -> None:
        """Put elements into the outbox, and exceptions in their places; StopIteration is the end."""
        rows: list[Any] = []
        for value in values:
            if not isinstance(value, BaseException):
                rows.append(own(value))
                continue
            self._convert(rows)
            rows = []
            if isinstance(value, StopIteration):
                self._ended = True
                return
            self._put(value)
        self._convert(rows)

    def _convert(self, rows: list[Any]) -> None:
        outcomes = self._rows.outcomes(rows) if rows else []
        while outcomes:  # no variable keeps an exception, see runtime/contract.py
            self._put(outcomes.pop(0))

    def _put(self, outcome: Any) -> None:
        if isinstance(outcome, Chunk):
            self.outbox.put(outcome)
            self._position += outcome.length
        else:
            self.outbox.put(with_location(outcome, self.node, self._position))
            self._position += 1

    def save(self) -> State:
        return {**super().save(), "position": self._position, "ended": self._ended}

    def load(self, state: State) -> None:
        super().load(state)
        self._position, self._ended = int(state["position"]), bool(state["ended"])

    def close(self) -> None:
        self._coordinator.unregister(self)
        self._reader.close()
        super().close()
